import { describe, expect, it } from "vitest";
import { readBrokerFrame } from "./broker-frames.js";
import { type Deliver, type LiveFrame, type Release, readFrame, refuseHeavy, textOfFrame } from "./frames.js";
import { MAX_FRAME_NAMES, MAX_FRAME_VALUES, MAX_REASON_CHARS } from "./limits.js";

const BODIES = [
  "1e3",
  "12345678901234567890.50",
  '{ "a" : 1, "a" : 2 }',
  '"\\ud800 \\u0041 \\/"',
  '[{"body":"}"}, "\\"", {}]',
  "null",
  '{"message":{"body":1}}',
];

describe("an address", () => {
  it.each(["worker-1#\u001b[2J", "#mcp-\u0007", "a\u202eb", "a\u2028b"])(
    "has nothing in it that a terminal would obey: case %# [terminal-inert]",
    (session_id) => {
      const hello = JSON.stringify({ kind: "hello", agent: { session_id } });
      expect(() => readFrame(hello)).toThrow('"session_id" has a control character');
    },
  );
});

describe("an id", () => {
  it("has 128 characters, whichever: what has two places in a text is one, and what has more of them or bytes is refused [bounded]", () => {
    const cancel = (id: string) => () => readFrame(JSON.stringify({ kind: "cancel", to: "a", correlation_id: id }));
    for (const good of [
      "x".repeat(128),
      "é".repeat(128),
      "漢".repeat(128),
      "🦊".repeat(128),
      "🦊".repeat(64) + "x".repeat(64),
    ]) {
      expect(cancel(good)()).toMatchObject({ correlationId: good });
    }
    for (const bad of ["x".repeat(129), "漢".repeat(129), "🦊".repeat(129), "x".repeat(1_024)]) {
      expect(cancel(bad)).toThrow("at most 128 characters and 512 bytes");
    }
  });
});

describe("a frame that gives a message back", () => {
  it("says why in so many characters at most [bounded]", () => {
    const release = { kind: "release", id: "m-1", from: "worker-1", failed: true, reason: "x".repeat(900_000) };
    expect((readFrame(JSON.stringify(release)) as Release).reason).toHaveLength(MAX_REASON_CHARS);
  });
});

describe("the body of a frame", () => {
  it.each(BODIES)("is what was written, wherever it stands: %s", (body) => {
    const deliver = (text: string) => (readFrame(text) as Deliver).message.body;
    expect(deliver(`{"kind":"deliver","to":"a","message":{"id":"m","kind":"k","body":${body}}}`)).toBe(body);
    expect(deliver(`{ "message" : { "body" :\n${body} , "id":"m","kind":"k"}, "kind":"deliver","to":"a"}`)).toBe(body);
    expect(deliver(`{"kind":"deliver","to":"a","message":{"id":"m","b\\u006fdy":${body},"kind":"k"}}`)).toBe(body);
    const live = readFrame(`{"kind":"live","body":${body},"to":"a"}`) as LiveFrame;
    expect(live.body).toBe(body);
    const from = '"from":{"session_id":"w","role":"r"}';
    expect(readBrokerFrame(`{"kind":"live",${from},"body": ${body} }`)).toMatchObject({ live: { body } });
    const message = `{"id":"m",${from},"kind":"k","body":${body},"created_at":""}`;
    expect(readBrokerFrame(`{"kind":"message","left_ms":5,"message":${message}}`)).toMatchObject({ message: { body } });
  });

  it("is null where there is none, and must not stand twice, nor its message", () => {
    const frame = (members: string, more = "") =>
      `{"kind":"deliver","to":"a","message":{"id":"m","kind":"k"${members}}${more}}`;
    expect((readFrame(frame("")) as Deliver).message.body).toBe("null");
    expect(() => readFrame(frame(',"body":1,"body":2'))).toThrow('"body" stands twice');
    expect(() => readFrame(frame(',"body":1,"b\\u006fdy":2'))).toThrow('"body" stands twice');
    expect(() => readFrame(frame(',"body":1', ',"message":{"id":"m","kind":"k","body":2}'))).toThrow(
      '"message" stands twice',
    );
  });

  it("has to be JSON", () => {
    for (const body of ["", "1,", "{", "'x'", "01"]) {
      expect(() => readFrame(`{"kind":"live","to":"a","body":${body}}`)).toThrow("JSON");
    }
  });
});

describe("a role", () => {
  it("is a text or left out, also of a pairing: another one is not taken for the usual one", () => {
    expect(readFrame('{"kind":"pair","role":"dev"}')).toEqual({ kind: "pair", role: "dev" });
    for (const frame of ['{"kind":"pair"}', '{"kind":"pair","role":null}']) {
      expect(readFrame(frame)).toEqual({ kind: "pair", role: undefined });
    }
    expect(() => readFrame('{"kind":"pair","role":5}')).toThrow('"role" is a text, or is left out');
    expect(() => readFrame('{"kind":"hello","agent":{"session_id":"a","role":5}}')).toThrow('"role" is a text');
  });
});

describe("a broker's frame", () => {
  it("of a kind that is not known is passed over, and one that lacks something is an error", () => {
    expect(readBrokerFrame('{"kind":"dance"}')).toBeUndefined();
    expect(() => readBrokerFrame("[]")).toThrow("object");
    expect(() => readBrokerFrame('{"kind":"delivered"}')).toThrow('"id" is missing');
  });
});

describe("a frame with many small values", () => {
  const frame = (body: string, id = '"m-1"') =>
    Buffer.from(`{"kind":"deliver","to":"a","message":{"id":${id},"kind":"k","body":${body}}}`);
  const list = (value: string, count: number) => `[${Array.from({ length: count }, () => value).join()}]`;
  const names = (count: number) => `{${Array.from({ length: count }, (_, n) => `"${n.toString(36)}":1`).join()}}`;

  it("is refused before it is parsed, for its message, where there are too many [bounded]", () => {
    const many = MAX_FRAME_VALUES + 1;
    for (const body of [
      list("{}", many),
      list("[[]]", many / 2),
      list("1", many),
      `${"[".repeat(many)}${"]".repeat(many)}`,
    ]) {
      expect(() => textOfFrame(frame(body))).toThrow(
        expect.objectContaining({
          message: "the frame has more than 201000 values (members and elements)",
          id: "m-1",
          frameKind: "deliver",
        }),
      );
    }
    expect(() => refuseHeavy(frame(names(1.5 * MAX_FRAME_NAMES)))).toThrow(
      "more than 40000 different names of members",
    );
    // A message without a good id is nobody's.
    for (const id of ["1", `"${"x".repeat(129)}"`, '"\\u00zz"'])
      expect(() => textOfFrame(frame(list("{}", many), id))).toThrow(expect.objectContaining({ id: undefined }));
  });

  it("is taken with as many as a body may have over HTTP, or one reply has that goes in a frame", () => {
    for (const body of [list("{}", 199_999), names(37_000)]) {
      expect((readFrame(textOfFrame(frame(body))) as Deliver).message.body).toBe(body);
    }
  });
});
