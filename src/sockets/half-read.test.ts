import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { KIB } from "../runtime/sizes.js";
import { HalfRead } from "./half-read.js";
import { MAX_HALF_READ_BYTES } from "./limits.js";

/** So many connections of one token may be open at a door of mailboxes. */
const CONNECTIONS = 16_000;
const SHARE = 4 * KIB;

class Connection {
  readonly wire = new EventEmitter();
  readonly messages = new EventEmitter();
  readonly move: (owner: string) => void;
  said: string | undefined;

  constructor(halfRead: HalfRead, owner: string, connections = CONNECTIONS) {
    const tooMuch = (why: string) => {
      this.said = why;
    };
    this.move = halfRead.watch(owner, { connections, wire: this.wire, messages: this.messages, tooMuch });
  }

  read(bytes: number): this {
    this.wire.emit("data", Buffer.allocUnsafe(bytes));
    return this;
  }
}

it("what is half read by many connections of one token is bounded, however little each has, and others are heard [bounded]", () => {
  const halfRead = new HalfRead();
  const each = 200 * KIB;
  const all = Array.from({ length: 2_000 }, () => new Connection(halfRead, "worker").read(each));
  const ended = all.filter(({ said }) => said !== undefined);
  expect(ended.length).toBe(2_000 - Math.floor(MAX_HALF_READ_BYTES / each));
  // Who has read no more than its share stays, and so does everybody else.
  expect(new Connection(halfRead, "worker").read(SHARE).said).toBeUndefined();
  expect(new Connection(halfRead, "other").read(each).said).toBeUndefined();
  // Where few may come, a share is more.
  expect(new Connection(halfRead, "worker", 256).read(each).said).toBeUndefined();
});

it("what is half read is that token's to whom the connection turns out to belong [bounded]", () => {
  const halfRead = new HalfRead();
  const stranger = new Connection(halfRead, "").read(MAX_HALF_READ_BYTES);
  expect(new Connection(halfRead, "").read(2 * SHARE).said).toBeDefined();
  stranger.move("worker");
  expect(new Connection(halfRead, "").read(2 * SHARE).said).toBeUndefined();
  expect(new Connection(halfRead, "worker").read(2 * SHARE).said).toBeDefined();
  stranger.messages.emit("message");
  expect(new Connection(halfRead, "worker").read(2 * SHARE).said).toBeUndefined();
});
