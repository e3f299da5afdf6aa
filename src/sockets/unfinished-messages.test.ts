import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { KIB } from "../runtime/sizes.js";
import { MAX_HALF_READ_BYTES } from "./limits.js";
import { UnfinishedMessages } from "./unfinished-messages.js";

/** So many connections of one token may be open at a door of mailboxes. */
const CONNECTIONS = 16_000;
const SHARE = 4 * KIB;

class Connection {
  readonly wire = new EventEmitter();
  readonly messages = new EventEmitter();
  readonly move: (owner: string) => void;
  said: string | undefined;

  constructor(unfinished: UnfinishedMessages, owner: string, connections = CONNECTIONS) {
    const tooMuch = (why: string) => {
      this.said = why;
    };
    this.move = unfinished.watch(owner, { connections, wire: this.wire, messages: this.messages, tooMuch });
  }

  read(bytes: number): this {
    this.wire.emit("data", Buffer.allocUnsafe(bytes));
    return this;
  }
}

it("what is half read by many connections of one token is bounded, however little each has, and others are heard [bounded]", () => {
  const unfinished = new UnfinishedMessages();
  const each = 200 * KIB;
  const all = Array.from({ length: 2_000 }, () => new Connection(unfinished, "worker").read(each));
  const ended = all.filter(({ said }) => said !== undefined);
  expect(ended.length).toBe(2_000 - Math.floor(MAX_HALF_READ_BYTES / each));
  // Who has read no more than its share stays, and so does everybody else.
  expect(new Connection(unfinished, "worker").read(SHARE).said).toBeUndefined();
  expect(new Connection(unfinished, "other").read(each).said).toBeUndefined();
  // Where few may come, a share is more.
  expect(new Connection(unfinished, "worker", 256).read(each).said).toBeUndefined();
});

it("what is half read is that token's to whom the connection turns out to belong [bounded]", () => {
  const unfinished = new UnfinishedMessages();
  const stranger = new Connection(unfinished, "").read(MAX_HALF_READ_BYTES);
  expect(new Connection(unfinished, "").read(2 * SHARE).said).toBeDefined();
  stranger.move("worker");
  expect(new Connection(unfinished, "").read(2 * SHARE).said).toBeUndefined();
  expect(new Connection(unfinished, "worker").read(2 * SHARE).said).toBeDefined();
  stranger.messages.emit("message");
  expect(new Connection(unfinished, "worker").read(2 * SHARE).said).toBeUndefined();
});
