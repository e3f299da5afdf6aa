import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { CHARACTER } from "../../test/fixtures/characters.js";
import { HeldBytes } from "../runtime/memory/held-bytes.js";
import { blockReading, giveBack } from "../runtime/memory/read-blocks.js";
import type { Fault } from "./errors.js";
import { EventStreamParser, type LongEvent, Pieces, type StreamEvent } from "./event-stream.js";

interface Read {
  events: { id: string | undefined; event: string | undefined; data: string }[];
  retries: number[];
  faults: Fault[];
  parser: EventStreamParser;
}

function read(chunks: readonly (string | Buffer)[], maxEventBytes?: number): Read {
  const events: Read["events"] = [];
  const retries: number[] = [];
  const faults: Fault[] = [];
  const handler = {
    onEvent(event: StreamEvent) {
      events.push({ id: event.id, event: event.event, data: event.data.toString() });
      if (event.retry !== undefined) retries.push(event.retry);
    },
    onError: (fault: Fault) => faults.push(fault),
  };
  const parser = new EventStreamParser(handler, maxEventBytes);
  for (const chunk of chunks) parser.push(Buffer.from(chunk));
  return { events, retries, faults, parser };
}

function split(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  const chunks: Buffer[] = [];
  let from = 0;
  for (const to of [...at, bytes.length]) {
    chunks.push(bytes.subarray(from, to));
    from = to;
  }
  return chunks;
}

const data = (chunks: readonly (string | Buffer)[]) => read(chunks).events.map((event) => event.data);

describe("the parser", () => {
  it.each([
    ["LF", "data: a\n\ndata: b\n\n"],
    ["CRLF", "data: a\r\n\r\ndata: b\r\n\r\n"],
    ["CR", "data: a\r\rdata: b\r\r"],
    ["mixed", "data: a\r\n\ndata: b\n\r"],
    ["no space", "data:a\n\ndata:b\n\n"],
  ])("ends lines at %s, however the bytes are cut", (_name, text) => {
    const bytes = Buffer.from(text);
    expect(data([text])).toEqual(["a", "b"]);
    expect(data([...bytes].map((byte) => Buffer.from([byte])))).toEqual(["a", "b"]);
  });

  it("does not wait for what follows a CR", () => {
    expect(data(["data: a\r\r"])).toEqual(["a"]);
    expect(data(["data: a\r\n\r", "\ndata: b\r\n\r\n"])).toEqual(["a", "b"]);
  });

  it.each([
    ["several lines are joined", "data: a\ndata:\ndata: b\n\n", ["a\n\nb"]],
    ["one space is taken off, not two", "data:  a\n\n", [" a"]],
    ["a line without a colon is a name", "data\n\ndata\ndata\n\n", ["", "\n"]],
    ["comments are passed over", ":\n: x\ndata: a\n:data: b\n\n", ["a"]],
    ["unknown fields too", "dat: x\ndatas: y\nDATA: z\ndata : w\nfoobar: u\ndata: a\n\n", ["a"]],
    ["an unfinished event is none", "data: a\n\ndata: b\n", ["a"]],
    ["an event without data is none", "event: x\nid: 1\n\ndata: a\n\n", ["a"]],
    ["a field may hold colons", "data: a:b: c\n\n", ["a:b: c"]],
    ["a tab is no space", "data:\ta\n\n", ["\ta"]],
    ["nothing but blank lines", "\n\n\r\n\r\r", []],
    ["NUL in data stays", "data: a\0b\n\n", ["a\0b"]],
  ])("%s", (_name, text, expected) => {
    expect(data([text])).toEqual(expected);
    expect(data(split(Buffer.from(text), [1, 2, 3, 5, 7, 8, 9, 11, 13]))).toEqual(expected);
  });

  it("takes a byte order mark off, whole or cut, and only a whole one", () => {
    const bom = Buffer.from([0xef, 0xbb, 0xbf]);
    const text = Buffer.from("data: a\n\n");
    expect(data([Buffer.concat([bom, text])])).toEqual(["a"]);
    expect(data([bom.subarray(0, 1), bom.subarray(1, 2), Buffer.concat([bom.subarray(2), text])])).toEqual(["a"]);
    expect(data([bom.subarray(0, 2), text, text])).toEqual(["a"]);
    expect(data([Buffer.concat([bom, bom, text]), text])).toEqual(["a"]);
    expect(data([text, Buffer.concat([bom, text])])).toEqual(["a"]);
  });

  it("keeps ids apart from the id to resume from", () => {
    const { events, parser } = read(["id: 1\ndata: a\n\ndata: b\n\nid: 2\n\nid: \0\ndata: c\n\n", "id: 9\ndata: cut"]);
    expect(events.map((event) => event.id)).toEqual(["1", undefined, undefined]);
    expect(parser.lastEventId).toBe("2");
    expect(read(["id: 1\ndata: a\n\nid\ndata: b\n\n"]).parser.lastEventId).toBe("");
  });

  it("reads retry where it is digits alone", () => {
    const { parser, retries } = read(["retry: 500\n\nretry: 1s\nretry:\nretry: -3\nretry: 99999999999\ndata: a\n\n"]);
    expect(parser.retryMs).toBe(500);
    expect(retries).toEqual([]);
    expect(read(["retry:7\ndata: a\n\n"]).retries).toEqual([7]);
  });

  it("gives data of one chunk as a part of it, without a copy", () => {
    const chunk = Buffer.from(`data: ${"x".repeat(1000)}\n\n`);
    let got: Buffer | undefined;
    new EventStreamParser({ onEvent: (event) => (got = event.data), onError: () => {} }).push(chunk);
    expect(got?.buffer).toBe(chunk.buffer);
    expect(got?.byteOffset).toBe(chunk.byteOffset + 6);
  });

  it.each([
    ["one endless line", ["data: ", "x".repeat(600), "x".repeat(600)]],
    ["many lines", Array.from({ length: 40 }, () => `data: ${"x".repeat(30)}\n`)],
    ["lines of nothing", ["data:\n".repeat(1500)]],
    ["a line that fits no field", ["x".repeat(1100)]],
  ])("stops at the bound, once: %s [bounded]", (_name, chunks) => {
    const { events, faults } = read([...chunks, "\n\ndata: a\n\n"], 1000);
    expect(events).toEqual([]);
    expect(faults.map((fault) => fault.code)).toEqual(["limit"]);
  });

  it("reads 16 MiB in chunks of one byte's difference as it was", () => {
    const value = Buffer.alloc(16 * 1024 * 1024, "abcdefghij");
    const bytes = Buffer.concat([Buffer.from("data: "), value, Buffer.from("\n\n")]);
    let got: Buffer | undefined;
    const parser = new EventStreamParser({ onEvent: (event) => (got = event.data), onError: () => {} });
    for (let i = 0; i < bytes.length; i += 65_537) parser.push(bytes.subarray(i, i + 65_537));
    expect(got?.equals(value)).toBe(true);
  });

  it("reads what eventsource-parser reads, however the bytes are cut", () => {
    const line = fc.oneof(
      fc.constantFrom("data: a", "data:", "data", "data:  b", "id: 7", "id", "id:\0", "event: e", "event:", ": c"),
      fc.constantFrom("retry: 12", "retry: x", "foo: bar", "", "", "", "data: ü€😀", "\u{feff}data: x", "datax: 1"),
      fc.string({ maxLength: 12 }).map((text) => `data: ${text}`),
      fc.string({ unit: CHARACTER, maxLength: 12 }),
    );
    const end = fc.constantFrom("\n", "\n", "\r\n", "\r");
    const text = fc.array(fc.tuple(line, end), { maxLength: 40 }).map((lines) => lines.flat().join(""));
    fc.assert(
      fc.property(text, fc.array(fc.nat(), { maxLength: 30 }), (body, cuts) => {
        // A line at the end that shows what a trailing CR was; the reference waits for it. No mark at the start:
        // the reference leaves that to its caller.
        const whole = `\n${body}:\n`;
        const expected: Read["events"] = [];
        const reference = createParser({
          onEvent: ({ id, event, data: value }) => expected.push({ id, event, data: value }),
        });
        reference.feed(whole);
        expect(read(split(Buffer.from(whole), cuts)).events).toEqual(expected);
      }),
      { numRuns: histories(3000) },
    );
  });
});

describe("Pieces", () => {
  it("joins whatever came", () => {
    const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 4000, max: 20_000 })));
    fc.assert(
      fc.property(sizes, (lengths) => {
        const pieces = new Pieces();
        const parts = lengths.map((length, i) => Buffer.alloc(length, i + 1));
        for (const part of parts) pieces.push(part);
        const whole = Buffer.concat(parts);
        expect(pieces.length).toBe(whole.length);
        expect(pieces.take().equals(whole)).toBe(true);
        expect(pieces.length).toBe(0);
        expect(pieces.take().length).toBe(0);
      }),
      { numRuns: histories(300) },
    );
  });
});

it("reads every event as it was written, lines of data joined", () => {
  const name = fc.string({ maxLength: 8 }).filter((text) => !/[\r\n\0]/.test(text));
  // Long ones of a short one again and again: to make up each of their characters takes longer than to read them.
  const long = fc.string({ minLength: 1, maxLength: 60 }).map((text) => text.repeat(Math.ceil(20_000 / text.length)));
  const event = fc.record({ id: name, event: name, data: fc.oneof(fc.string(), long) }, { requiredKeys: ["data"] });
  const spaced = event.chain((one) =>
    fc.array(fc.constantFrom("\n", "\r", "\r\n", "x"), { maxLength: 6 }).map((more) => ({
      ...one,
      data: one.data + more.join(""),
    })),
  );
  fc.assert(
    fc.property(spaced, (one) => {
      const lines = one.data.split(/\r\n|\r|\n/);
      const head = Object.entries({ event: one.event, id: one.id }).filter(([, value]) => value !== undefined);
      const fields = [...head, ...lines.map((line) => ["data", line])].map(([key, value]) => `${key}: ${value}\n`);
      const { events } = read([`${fields.join("")}\n`]);
      expect(events).toEqual([{ id: one.id, event: one.event || undefined, data: lines.join("\n") }]);
    }),
    { numRuns: histories(500) },
  );
});

describe("an event that has not ended", () => {
  it("is counted, and ends its stream with a fault where there is no room for it [bounded]", () => {
    const held = new HeldBytes(1024 * 1024);
    const sizes: number[] = [];
    const faults: Fault[] = [];
    const parser = new EventStreamParser({
      holder: held.holder("a"),
      onEvent: ({ data }) => {
        // Whoever keeps it counts it anew.
        expect(held.used).toBe(0);
        sizes.push(data.length);
      },
      onError: (fault) => faults.push(fault),
    });
    const chunk = Buffer.alloc(64 * 1024, "x");
    parser.push(Buffer.from("data: "));
    for (let i = 0; i < 8; i++) parser.push(chunk);
    expect(held.used).toBeGreaterThanOrEqual(8 * chunk.length);
    parser.push(Buffer.from("\n\ndata: "));
    expect([sizes, held.used]).toEqual([[8 * chunk.length], "data: ".length]);
    for (let i = 0; i < 20; i++) parser.push(chunk);
    expect([held.used, faults.length, faults[0]?.code]).toEqual([0, 1, "limit"]);
    expect(faults[0]?.message).toContain("limits.heldBytes");
  });
});

/** A socket's reads of 64 KiB each, which the parser gets where they lie. */
function reads(parser: EventStreamParser) {
  const bytes = 64 * 1024;
  const blocks: Buffer[] = [];
  const reading = blockReading() as {
    buffer(): Buffer;
    callback(this: unknown, length: number, block: Buffer): boolean;
  };
  const socket = { push: (chunk: Buffer) => parser.push(chunk) };
  const read = (text: string) => {
    const block = reading.buffer();
    blocks.push(block);
    block.write(text.padEnd(bytes, "a"), "latin1");
    reading.callback.call(socket, bytes, block);
  };
  return { bytes, blocks, read };
}

it.each(["joined", "in pieces"])(
  "Of an event that came in many reads and is given %s, those that are its own are read into again, and no other [crossed-never]",
  (how) => {
    const seen: Buffer[] = [];
    const onLongEvent = ({ pieces }: LongEvent) => {
      seen.push(Buffer.concat(pieces));
      for (const piece of pieces) giveBack(piece);
    };
    const parser = new EventStreamParser({
      onEvent: ({ data }) => seen.push(data),
      onError: () => {},
      ...(how === "joined" ? {} : { onLongEvent }),
    });
    const { bytes, blocks, read } = reads(parser);
    // A short event stands before the long one in its first read, another one behind it in its last.
    const before = "b".repeat(50_000);
    read(`data: ${before}\n\ndata: `);
    for (let i = 0; i < 3; i++) read("");
    const after = "c".repeat(50_000);
    read(`${"a".repeat(1000)}\n\ndata: ${after}\n\ndata: `);
    for (let i = 0; i < 6; i++) read("Z".repeat(bytes));
    expect(seen.map((data) => data.toString("latin1"))).toEqual([before, expect.stringMatching(/^a+$/), after]);
    expect(seen[1]?.length).toBe(bytes - before.length - 14 + 3 * bytes + 1000);
    expect(new Set(blocks).size).toBe(blocks.length - 3);
  },
);

describe("A long line of data, where it is wanted in pieces", () => {
  function longRead(chunks: readonly string[], maxEventBytes?: number) {
    const events: (string | { readonly event: string | undefined; readonly long: string })[] = [];
    const faults: string[] = [];
    const handler = {
      onEvent: ({ data }: StreamEvent) => events.push(data.toString()),
      onLongEvent: ({ event, pieces }: LongEvent) => events.push({ event, long: Buffer.concat(pieces).toString() }),
      onError: ({ code }: Fault) => faults.push(code),
    };
    const parser = new EventStreamParser(handler, maxEventBytes);
    for (const chunk of chunks) parser.push(Buffer.from(chunk));
    return { events, faults, parser };
  }
  const long = "ü".repeat(100_000);
  const [half, rest] = [long.slice(0, 50_000), long.slice(50_000)];

  it.each([
    ["behind the name in one piece", [`event: message\ndata: ${half}`, `${rest}\n\n`]],
    ["behind the name alone", ["event: message\ndata: ", half, rest, "\n", "\n"]],
    ["without a space", [`event: message\ndata:${half}`, rest, "\r\n\r\n"]],
  ])("is given so, %s", (_name, chunks) => {
    expect(longRead(chunks).events).toEqual([{ event: "message", long }]);
  });

  it("is joined where its name is cut, where it came in one piece, and with other lines of its event", () => {
    expect(longRead(["dat", `a: ${half}`, `${rest}\n\n`]).events).toEqual([long]);
    expect(longRead([`data: ${long}\n\n`]).events).toEqual([long]);
    expect(longRead([`data: ${half}`, `${rest}\ndata: b\n\n`]).events).toEqual([`${long}\nb`]);
    expect(longRead(["data: a\n", `data: ${half}`, `${rest}\n\n`]).events).toEqual([`a\n${long}`]);
    expect(longRead([`other: ${half}`, `${rest}\n\n`, "data: a\n\n"]).events).toEqual(["a"]);
  });

  it("gives its id, and counts until its event has ended [bounded]", () => {
    const { events, parser } = longRead([`id: 7\ndata: ${half}`, `${rest}\n`]);
    expect([events, parser.lastEventId]).toEqual([[], ""]);
    parser.push(Buffer.from("\n"));
    expect([events.length, parser.lastEventId]).toEqual([1, "7"]);
    const bounded = longRead([`data: ${half}`, `${rest}\n`, `: ${"x".repeat(200_000)}`, "\n\n"], 300_000);
    expect([bounded.events, bounded.faults]).toEqual([[], ["limit"]]);
  });
});
