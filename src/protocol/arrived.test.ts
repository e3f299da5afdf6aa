// Replies that are held as they came: in one buffer, in pieces, and copied with other bytes.

import { describe, expect, it } from "vitest";
import { lentPieces } from "../../test/fixtures/lent-pieces.js";
import { PiecedReply, replySize, shared, WholeReply } from "./arrived.js";
import { type BytesReply, renderReply } from "./reply.js";
import { findAnchor, findAnchorIn } from "./reply-id.js";

const TEXT = "ü7".repeat(400);
const HEAD_FORMS = [
  `{"jsonrpc":"2.0","id":17,"result":{"text":"${TEXT}"}}`,
  `  { "id" : 17 , "jsonrpc" : "2.0", "result" : {"text":"${TEXT}","id":5}}\n`,
];
const TAIL_FORMS = [
  `{"result":{"text":"${TEXT}"},"jsonrpc":"2.0","id":17}`,
  `{"jsonrpc":"2.0","result":{"text":"${TEXT}","id":3}, "id": 17 }\r\n`,
];

/** Cut at these places. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [0, ...places, bytes.length].sort((a, b) => a - b);
  return sorted.slice(1).map((end, i) => bytes.subarray(sorted[i], end));
}

describe("a reply in pieces", () => {
  it("is the same as in one piece, wherever it was cut", () => {
    for (const text of [...HEAD_FORMS, ...TAIL_FORMS]) {
      const bytes = Buffer.from(text);
      const whole = findAnchor(bytes);
      expect(whole?.id).toBe(17);
      for (let at = 1; at < bytes.length; at++) {
        const pieces = cut(bytes, [at, (at * 7) % bytes.length, (at * 31) % bytes.length]);
        const anchor = findAnchorIn(pieces);
        expect(anchor).toEqual(whole);
        const reply = new PiecedReply(pieces, anchor as NonNullable<typeof anchor>, undefined);
        expect(replySize(reply)).toBe(bytes.length);
        const written = Buffer.concat(reply.under('"ä"')).toString();
        expect(JSON.parse(written)).toEqual({ ...JSON.parse(text), id: "ä" });
        if (at % 50 === 0) expect(renderReply(reply, '"ä"').toString()).toBe(written);
      }
    }
  });

  it("is left to JSON.parse where its id stands elsewhere", () => {
    const odd = [`{"id":"17","jsonrpc":"2.0","result":"${TEXT}"}`, `[${HEAD_FORMS[0]}]`, `{"x":"${TEXT}","id":17}`];
    for (const text of odd) {
      const pieces = cut(Buffer.from(text), [300]);
      expect(findAnchorIn(pieces)).toBeUndefined();
      expect(Buffer.concat(pieces).toString()).toBe(text);
    }
    expect(findAnchorIn([])).toBeUndefined();
  });

  it("gives its bytes to a copy, and nothing else that a copy with other bytes would be wrong with", () => {
    const pieces = cut(Buffer.from(HEAD_FORMS[0] as string), [500]);
    const reply = new PiecedReply(pieces, { idStart: 22, idEnd: 24 }, "modern");
    const copy = { ...reply };
    expect(copy.bytes.toString()).toBe(HEAD_FORMS[0]);
    expect(replySize({ ...reply, bytes: Buffer.from("{}") })).toBe(2);
  });
});

describe("a reply in one buffer", () => {
  it("does not give its text to a copy with other bytes", () => {
    const text = '{"jsonrpc":"2.0","id":1,"result":{"taskId":"a"}}';
    const reply = new WholeReply(Buffer.from(text), { idStart: 22, idEnd: 23 }, undefined, text);
    expect(reply.latin1).toBe(text);
    const copy: BytesReply = { ...reply, bytes: Buffer.from(text.replace('"a"', '"b"')) };
    expect(copy.latin1).toBeUndefined();
  });
});

describe("the blocks of a reply in pieces", () => {
  const anchor = { idStart: 22, idEnd: 23 };

  it("are read into again when all who asked for them have written them, and it is an error to ask later [crossed-never]", () => {
    const { pieces, reused } = lentPieces();
    const reply = new PiecedReply(pieces, anchor, undefined);
    reply.under("1");
    reply.under("2");
    reply.written();
    expect(reused()).toBe(false);
    reply.written();
    expect(reused()).toBe(true);
    expect(() => reply.under("3")).toThrow(/shares it/);
    expect(() => reply.bytes).toThrow(/shares it/);
    expect(() => reply.first).toThrow(/shares it/);
  });

  it("are never read into again where the reply is for several [crossed-never]", () => {
    const { pieces, reused } = lentPieces();
    const reply = shared(new PiecedReply(pieces, anchor, undefined));
    const before = Buffer.concat(reply.under("1")).toString();
    reply.written();
    expect(reused()).toBe(false);
    expect(Buffer.concat(reply.under("1")).toString()).toBe(before);
    const plain = { kind: "result", result: {} } as const;
    expect(shared(plain)).toBe(plain);
  });
});
