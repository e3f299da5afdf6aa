import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { CHARACTER } from "../../../test/fixtures/characters.js";
import {
  decoded,
  type Frame,
  readFrame,
  renderBrokenDelta,
  renderDelta,
  renderError,
  renderNotification,
  renderRequest,
  renderResult,
} from "./frame.js";
import { BODY_DELTA, UPLOAD } from "./protocol.js";

const RUNS = { numRuns: histories(2_000) };

const method = fc.constantFrom(BODY_DELTA, UPLOAD);
/** Ours, and what only the long way can read: quotes, backslashes, control characters, any script. */
const requestId = fc.oneof(
  fc.nat().map((n) => `http-${n}`),
  fc.string({ unit: CHARACTER, maxLength: 400 }),
);
const data = fc.uint8Array({ maxLength: 3_000 }).map((bytes) => Buffer.from(bytes));
const id = fc.oneof(fc.integer(), fc.string());

const read = (text: string | Buffer): Frame => readFrame(Buffer.from(text));

/** As the exec-server writes it: the same order, and an error that is always named. */
const codexDelta = (params: { requestId: string; seq: number; data: Buffer; done: boolean }): string =>
  JSON.stringify({
    method: BODY_DELTA,
    params: {
      requestId: params.requestId,
      seq: params.seq,
      deltaBase64: params.data.toString("base64"),
      done: params.done,
      error: null,
    },
  });

/** The same message in a form that the short way does not know. */
function roundabout(text: string | Buffer): Buffer {
  return Buffer.from(JSON.stringify(JSON.parse(text.toString()), undefined, 1));
}

describe("pieces of bodies", () => {
  it("come back as they were sent", () => {
    fc.assert(
      fc.property(method, requestId, fc.nat(), data, fc.boolean(), (how, stream, seq, bytes, done) => {
        expect(readFrame(renderDelta(how, stream, seq, bytes, done))).toEqual({
          kind: "delta",
          method: how,
          delta: { requestId: stream, seq, data: bytes, done, error: undefined },
        });
      }),
      RUNS,
    );
  });

  it("are JSON that any other peer reads, in the exec-server's order", () => {
    fc.assert(
      fc.property(method, requestId, fc.nat(), data, fc.boolean(), (how, stream, seq, bytes, done) => {
        const text = renderDelta(how, stream, seq, bytes, done).toString();
        const params = { requestId: stream, seq, deltaBase64: bytes.toString("base64"), done };
        expect(text).toBe(JSON.stringify({ method: how, params }));
      }),
      RUNS,
    );
  });

  it("mean the same the short way and the long way", () => {
    fc.assert(
      fc.property(method, requestId, fc.nat(), data, fc.boolean(), (how, stream, seq, bytes, done) => {
        const frame = renderDelta(how, stream, seq, bytes, done);
        expect(readFrame(frame)).toEqual(readFrame(roundabout(frame)));
      }),
      RUNS,
    );
  });

  it("are read as the exec-server writes them", () => {
    fc.assert(
      fc.property(requestId, fc.nat(), data, fc.boolean(), (stream, seq, bytes, done) => {
        const text = codexDelta({ requestId: stream, seq, data: bytes, done });
        const delta = { requestId: stream, seq, data: bytes, done, error: undefined };
        expect(read(text)).toEqual({ kind: "delta", method: BODY_DELTA, delta });
        expect(readFrame(roundabout(text))).toEqual(read(text));
      }),
      RUNS,
    );
  });

  it("carry an error with the end", () => {
    fc.assert(
      fc.property(method, requestId, fc.nat(), fc.string({ unit: "grapheme" }), (how, stream, seq, error) => {
        const delta = { requestId: stream, seq, data: Buffer.alloc(0), done: true, error };
        expect(read(renderBrokenDelta(how, stream, seq, error))).toEqual({ kind: "delta", method: how, delta });
      }),
      RUNS,
    );
  });

  it("of a megabyte are whole", () => {
    const bytes = Buffer.alloc(1024 * 1024);
    for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 7 + (i >> 8)) & 0xff;
    const frame = readFrame(renderDelta(BODY_DELTA, "http-1", 1, bytes, false));
    expect(frame.kind === "delta" && frame.delta.data.equals(bytes)).toBe(true);
  });

  it.each([5, 1024 * 1024])("are data of their own: of %d bytes, what they were read from is not held", (length) => {
    const frame = renderDelta(BODY_DELTA, "http-1", 1, Buffer.alloc(length, "h"), false);
    const found = readFrame(frame);
    frame.fill(0);
    expect(found.kind === "delta" && found.delta.data.equals(Buffer.alloc(length, "h"))).toBe(true);
  });
});

describe("what is not as both ends write it", () => {
  const start = `{"method":"${BODY_DELTA}","params":{"requestId":"a","seq":1,"deltaBase64":"`;

  it.each([
    ["a letter too few", "aGVsbG8", "without requestId, seq or deltaBase64"],
    ["letters that are none", "aGVs!G8=", "without requestId, seq or deltaBase64"],
    ["padding in the middle", "aG==bG8=", "without requestId, seq or deltaBase64"],
    ["padding alone", "====", "without requestId, seq or deltaBase64"],
    ["a line break", "aGVs\\nG8=", "without requestId, seq or deltaBase64"],
    ["a raw line break", "aGVs\nbG8=", "not JSON"],
    ["bytes that are no text", "aGVs\u00ffG8=", "without requestId, seq or deltaBase64"],
  ])("is no base64: %s", (_, text, why) => {
    const found = read(`${start}${text}","done":false}}`);
    expect(found).toEqual({ kind: "broken", why: expect.stringContaining(why) });
    // A large piece is judged as a small one is.
    expect(read(`${start}${"AAAA".repeat(256 * 1024)}${text}","done":false}}`)).toEqual(found);
  });

  it("is read where JSON may escape it", () => {
    const found = read(`${start}Pz8\\/","done":false}}`);
    expect(found.kind === "delta" && found.delta.data.toString()).toBe("???");
  });

  it.each([
    ["another field behind", `${start}aGk=","done":false,"more":{"a":1}}}`, false],
    ["the end's text inside", `${start}aGk=","note":"\\",\\"done\\":true}}","done":false}}`, false],
    ["a field twice: the last counts", `${start}aGk=","done":true,"done":false}}`, false],
    ["data twice: the last counts", `${start}AAAA","deltaBase64":"aGk=","done":true}}`, true],
    ["spaces", `${start}aGk=" , "done" : true }}`, true],
    ["no word of an end", `${start}aGk="}}`, false],
  ])("goes the long way: %s", (_, text, done) => {
    const delta = { requestId: "a", seq: 1, data: Buffer.from("hi"), done, error: undefined };
    expect(read(text)).toEqual({ kind: "delta", method: BODY_DELTA, delta });
  });

  it.each([
    ["nothing", ""],
    ["no JSON", "hello"],
    ["half of it", `${start}aGk=","done":fal`],
    [
      "a number with zeros before it",
      `{"method":"${BODY_DELTA}","params":{"requestId":"a","seq":01,"deltaBase64":"","done":true}}`,
    ],
    ["an end and more behind it", `${start}aGk=","done":true}} `.repeat(2)],
    ["a list", "[]"],
    ["a list of messages", '[{"id":1,"method":"a"}]'],
    ["a number", "7"],
    ["null", "null"],
    ["nothing of a message", "{}"],
    ["an id alone", '{"id":1}'],
    ["a result without an id", '{"result":1}'],
    ["a request with an id that is an object", '{"id":{},"method":"a"}'],
    ["a request with an id that is true", '{"id":true,"method":"a"}'],
    ["an error that is text", '{"id":1,"error":"x"}'],
    ["a delta without params", `{"method":"${BODY_DELTA}"}`],
    ["a delta whose params are a list", `{"method":"${BODY_DELTA}","params":[]}`],
    ["a delta without an id", `{"method":"${BODY_DELTA}","params":{"seq":1,"deltaBase64":"","done":true}}`],
    ["a delta whose id is a number", `{"method":"${BODY_DELTA}","params":{"requestId":1,"seq":1,"deltaBase64":""}}`],
    ["a delta with half a number", `{"method":"${BODY_DELTA}","params":{"requestId":"a","seq":1.5,"deltaBase64":""}}`],
    [
      "a delta with a number past all",
      `{"method":"${BODY_DELTA}","params":{"requestId":"a","seq":1e99,"deltaBase64":""}}`,
    ],
    ["a delta without data", `{"method":"${BODY_DELTA}","params":{"requestId":"a","seq":1,"done":true}}`],
  ])("is broken, and says so: %s", (_, text) => {
    expect(read(text)).toEqual({ kind: "broken", why: expect.any(String) });
  });

  it("never throws, and never turns into another message, whatever is cut from one or changed in it", () => {
    fc.assert(
      fc.property(
        data,
        fc.boolean(),
        fc.boolean(),
        fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 3 }),
        (bytes, done, asCodex, changes) => {
          const delta = { requestId: "http-1", seq: 12, data: bytes, done };
          const frame = asCodex ? Buffer.from(codexDelta(delta)) : renderDelta(BODY_DELTA, "http-1", 12, bytes, done);
          for (const [at, value] of changes) frame[at % frame.length] = value;
          for (const [at] of changes) {
            const part = frame.subarray(0, at % (frame.length + 1));
            for (const bytesOf of [frame, part]) expect(shortened(readFrame(bytesOf))).toEqual(byParser(bytesOf));
          }
        },
      ),
      RUNS,
    );
  });

  it("takes any bytes at all", () => {
    const any = fc.uint8Array({ maxLength: 200 });
    fc.assert(
      fc.property(
        any,
        (bytes) => void expect(shortened(readFrame(Buffer.from(bytes)))).toEqual(byParser(Buffer.from(bytes))),
      ),
      RUNS,
    );
  });
});

/** A delta in three words, anything else as its kind. */
function shortened(frame: Frame): unknown {
  if (frame.kind !== "delta") return frame.kind;
  const { requestId: stream, seq, done, data: bytes } = frame.delta;
  return { stream, seq, done, data: bytes.toString("base64") };
}

/** What a parser alone says of it: the measure of the short way. */
function byParser(bytes: Buffer): unknown {
  let spaced: Buffer;
  try {
    // The short way knows no space before the first brace.
    JSON.parse(bytes.toString());
    spaced = Buffer.concat([Buffer.from(" "), bytes]);
  } catch {
    return "broken";
  }
  return shortened(readFrame(spaced));
}

describe("the other messages", () => {
  it("come back as they were sent", () => {
    fc.assert(
      fc.property(id, fc.string(), fc.jsonValue(), (one, name, value) => {
        if (name === BODY_DELTA || name === UPLOAD) return;
        const plain = JSON.parse(JSON.stringify(value));
        expect(read(renderRequest(one, name, value))).toEqual({
          kind: "request",
          id: one,
          method: name,
          params: plain,
        });
        expect(read(renderNotification(name, value))).toEqual({ kind: "notification", method: name, params: plain });
        expect(read(renderResult(one, value))).toEqual({ kind: "result", id: one, result: plain });
        const error = { code: -32603, message: name, data: value };
        expect(read(renderError(one, error))).toEqual({ kind: "error", id: one, error: { ...error, data: plain } });
      }),
      RUNS,
    );
  });

  it("have no params where none were given, and no jsonrpc field", () => {
    expect(renderNotification("initialized")).toBe('{"method":"initialized"}');
    expect(renderRequest(1, "a", {})).toBe('{"id":1,"method":"a","params":{}}');
  });

  it("are read as the exec-server writes them", () => {
    const failed = { code: -32600, message: "unknown session id nope" };
    expect(read(JSON.stringify({ error: failed, id: 100 }))).toEqual({ kind: "error", id: 100, error: failed });
    expect(read(JSON.stringify({ error: failed, id: -1 }))).toMatchObject({ kind: "error", id: -1 });
    expect(read('{"id":null,"error":{"code":-32700,"message":"x"}}')).toMatchObject({ kind: "error", id: null });
    expect(read('{"jsonrpc":"2.0","id":"a","result":null}')).toEqual({ kind: "result", id: "a", result: null });
  });

  it("with an error that says little are errors all the same", () => {
    expect(read('{"id":1,"error":{}}')).toEqual({ kind: "error", id: 1, error: { code: 0, message: "no message" } });
  });
});

describe("base64", () => {
  const letter = fc.constantFrom("A", "b", "9", "+", "/", "-", "_", "=", " ", "é");

  it("is decoded, or refused as a whole", () => {
    fc.assert(
      fc.property(data, (bytes) => void expect(decoded(bytes.toString("base64"))).toEqual(bytes)),
      RUNS,
    );
    fc.assert(
      fc.property(fc.string({ unit: letter, maxLength: 16 }), (text) => {
        const isBase64 = /^(?:[\w+/-]{4})*(?:[\w+/-]{2}==|[\w+/-]{3}=)?$/.test(text);
        expect(decoded(text) !== undefined).toBe(isBase64);
      }),
      RUNS,
    );
  });
});

describe("what would cost more than its bytes", () => {
  const large = (member: string) => Buffer.from(`{"id":1,"method":"x","params":[${`${member},`.repeat(600_000)}0]}`);

  it.each(["{}", "[]", "1", '""'])("a large message of %s is not read", (member) => {
    expect(readFrame(large(member))).toMatchObject({ kind: "broken", why: expect.stringContaining("large message") });
  });

  it("a large body with many headers is read", () => {
    const headers = Array.from({ length: 256 }, (_, n) => ({ name: `h${n}`, value: ",".repeat(200) }));
    const result = { status: 200, headers, bodyBase64: Buffer.alloc(2 * 1024 * 1024).toString("base64") };
    expect(readFrame(Buffer.from(JSON.stringify({ id: 1, result })))).toEqual({ kind: "result", id: 1, result });
  });

  it("an id of more characters than the bound is refused", () => {
    const message = (letters: number) => Buffer.from(JSON.stringify({ id: "i".repeat(letters), method: "x" }));
    expect(readFrame(message(256))).toMatchObject({ kind: "request" });
    expect(readFrame(message(257))).toMatchObject({ kind: "broken" });
  });
});
