// Replies of every kind, written under another id or read whole.

import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { Fault, toRpcError } from "./errors.js";
import { faultReply, isRefusal, type Reply, renderReply, replyText, resultBytes, type StreamReply } from "./reply.js";

const bytes = (text: string): Reply => ({ kind: "bytes", bytes: Buffer.from(text), idStart: 0, idEnd: 0 });

function stream(body: Readable): StreamReply {
  return { kind: "stream", open: () => body };
}

describe("renderReply", () => {
  it("puts the asker's id in, whatever its length and whatever is around it", () => {
    const reply = resultBytes('{"ü":1}');
    for (const id of ["1", '"ä long id"', "123456789012345678901234567890"]) {
      expect(renderReply(reply, id).toString()).toBe(`{"jsonrpc":"2.0","id":${id},"result":{"ü":1}}`);
    }
    expect(renderReply({ kind: "result", result: {} }, '"x"').toString()).toBe(
      '{"jsonrpc":"2.0","id":"x","result":{}}',
    );
    const fault = faultReply(new Fault("denied", "No."));
    expect(JSON.parse(renderReply(fault as Exclude<Reply, StreamReply>, "7").toString())).toEqual({
      jsonrpc: "2.0",
      id: 7,
      error: { code: -31007, message: "No.", data: { fault: "denied" } },
    });
  });
});

describe("replyText", () => {
  it("reads a stream whole", async () => {
    expect(await replyText(stream(Readable.from([Buffer.from("a"), Buffer.from("b")])), "1")).toBe("ab");
  });

  it("stops at its limit, and lets go of what it read from [bounded]", async () => {
    const endless = Readable.from(
      (function* () {
        for (;;) yield Buffer.alloc(1024);
      })(),
    );
    await expect(replyText(stream(endless), "1", { maxBytes: 10_000 })).rejects.toMatchObject({ code: "limit" });
    expect(endless.destroyed).toBe(true);
    await expect(replyText(bytes("x".repeat(11)), "1", { maxBytes: 10 })).rejects.toMatchObject({ code: "limit" });
  });

  it("stops when it is told to, before and after it began, and leaves nothing at the signal", async () => {
    for (const early of [true, false]) {
      const silent = new Readable({ read: () => {} });
      const abort = new AbortController();
      if (early) abort.abort(new Error("no more"));
      const reading = replyText(stream(silent), "1", { signal: abort.signal });
      abort.abort(new Error("no more"));
      await expect(reading).rejects.toThrow("no more");
      expect(silent.destroyed).toBe(true);
    }
  });

  it("rejects with what broke the stream", async () => {
    const broken = new Readable({
      read() {
        this.destroy(new Fault("outcome-unknown", "It broke off."));
      },
    });
    await expect(replyText(stream(broken), "1")).rejects.toMatchObject({ code: "outcome-unknown" });
  });
});

it("isRefusal knows errors from results, and takes what cannot be read for no result", () => {
  expect(isRefusal(bytes('{"jsonrpc":"2.0","id":1,"result":{"error":1}}'))).toBe(false);
  expect(isRefusal(bytes('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'))).toBe(true);
  expect(isRefusal(bytes(`{"jsonrpc":"2.0","id":1,"result":{${" ".repeat(5_000)}oops}}`))).toBe(true);
  expect(isRefusal({ kind: "result", result: {} })).toBe(false);
  expect(isRefusal(faultReply(new Fault("timeout", "Late.")))).toBe(true);
});

it("what is not a fault says nothing of its cause", () => {
  expect(toRpcError(new TypeError("secret"))).toEqual({ code: -32603, message: expect.not.stringContaining("secret") });
  expect(toRpcError(new Fault("not-found", "No such.", { data: { uri: "x" } }))).toEqual({
    code: -32602,
    message: "No such.",
    data: { uri: "x" },
  });
});
