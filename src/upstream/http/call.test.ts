// Answers whose reads hold several chunks of a body, as chunked encoding has them.

import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { expect, it } from "vitest";
import type { Fault } from "../../protocol/errors.js";
import { type Holder, ownHolder } from "../../runtime/memory/held-bytes.js";
import { blockReading } from "../../runtime/memory/read-blocks.js";
import { LARGE_REPLY_BYTES } from "../link/large-body.js";
import { HttpCall, type HttpCallLink } from "./call.js";
import type { ExchangeHandler } from "./requester.js";

const BLOCK_BYTES = 64 * 1024;
/** Several of them in each read. */
const CHUNK_BYTES = 8 * 1024;

interface Reading {
  buffer(): Buffer;
  callback(this: Socket, length: number, bytes: Buffer): boolean;
}

/** One read of a socket of its own, full of this text's bytes. */
function read(text: string): Buffer {
  const chunks: Buffer[] = [];
  const reading = blockReading() as unknown as Reading;
  const block = reading.buffer();
  block.write(text, "latin1");
  reading.callback.call({ push: (chunk: Buffer) => chunks.push(chunk) > 0 } as unknown as Socket, BLOCK_BYTES, block);
  return chunks[0] as Buffer;
}

/** A call whose answer is fed by hand. */
function callByHand(newHolder = ownHolder): {
  handler: ExchangeHandler;
  large: () => Promise<Buffer>;
  failures: [fault: Fault, sent: boolean][];
} {
  let handler: ExchangeHandler | undefined;
  const failures: [Fault, boolean][] = [];
  const chunks: Buffer[] = [];
  let body: Readable | undefined;
  const link = {
    requester: {
      dispatch: (_options: unknown, one: ExchangeHandler) => {
        handler = one;
        return { pause() {}, resume() {}, abort() {} };
      },
    },
    destination: { path: "/", shown: "the server" },
    postHeaders: () => [],
    inSession: false,
    newHolder,
    onFailed: (_call: unknown, fault: Fault, sent: boolean) => void failures.push([fault, sent]),
    onLargeReply: (_ticket: unknown, head: Buffer, rest: Readable) => {
      chunks.push(head);
      body = rest;
    },
    onFinished: () => {},
  } as unknown as HttpCallLink;
  new HttpCall(link, "{}", { id: 1, method: "tools/call", subject: undefined });
  const large = async () => {
    for await (const chunk of body as Readable) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks);
  };
  return { handler: handler as unknown as ExchangeHandler, large, failures };
}

it("A read in which a body turns out to be large is not read into again while its next chunks wait for their reader [crossed-never]", async () => {
  const start = '{"jsonrpc":"2.0","id":1,"result":{"text":"';
  const whole = `${start}${"a".repeat(LARGE_REPLY_BYTES + BLOCK_BYTES - start.length - 3)}"}}`;
  const { handler, large } = callByHand();
  handler.onHead(200, { "content-type": "application/json" });
  for (let at = 0; at < whole.length; at += BLOCK_BYTES) {
    const bytes = read(whole.slice(at, at + BLOCK_BYTES));
    for (let from = 0; from < bytes.length; from += CHUNK_BYTES)
      handler.onData(bytes.subarray(from, from + CHUNK_BYTES));
  }
  handler.onEnd();
  // Others read as much as they like meanwhile, into whatever blocks are free.
  for (let i = 0; i < 64; i++) read("Z".repeat(BLOCK_BYTES));
  expect((await large()).toString("latin1") === whole).toBe(true);
});

it.each([
  ["JSON", "application/json", '{"jsonrpc":"2.0","id":1,'],
  ["an event", "text/event-stream", 'data: {"jsonrpc":"2.0","id":1,'],
])(
  "An answer in %s that there is no room for belongs to a call that left, and may have taken effect [no-double-effect] [unknown-is-said]",
  (_what, type, start) => {
    const full = { hold: () => false, release() {} } as unknown as Holder;
    const { handler, failures } = callByHand(() => full);
    handler.onHead(200, { "content-type": type });
    handler.onData(Buffer.from(start));
    expect(failures).toMatchObject([[{ code: "limit", wire: { left: true } }, true]]);
    expect(failures[0]?.[0].message).toMatch(/answer .* was thrown away|Whether the call took effect is unknown/);
  },
);
