// What one peer may have of what brokers on one engine share: lines to others, and memory.

import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import type { Partitions } from "../../contracts/engine/partitions.js";
import { PeerError } from "../../contracts/engine/peers.js";
import { HeldBytes } from "../../runtime/memory/held-bytes.js";
import { KIB, MIB } from "../../runtime/sizes.js";
import type { SocketEvents } from "../../sockets/socket.js";
import type { Peer, PeerSocket } from "../broker/peer-connection.js";
import { PeerConnection } from "../broker/peer-connection.js";
import { PartitionLine, type PartitionLineEvents, type PeerIntroduction } from "./partition-line.js";
import { SharedBroker } from "./shared-broker.js";
import { SharedPeerConnection } from "./shared-peer-connection.js";

const WORKER: Peer = { id: "worker", role: "dev", maySendTo: undefined };
const HELLO = '{"kind":"hello","agent":{"session_id":"worker"},"version":1}';
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

const partitions: Partitions = {
  count: 64,
  of: (key) => Number(/\d+/.exec(key)?.[0] ?? 0) % 64,
  ownerOf: () => "another",
  mayAct: () => false,
  keeps: () => false,
  run() {},
  gateways: () => [],
  left: () => [],
  onChange: () => () => {},
  onLost: () => () => {},
  release: async () => {},
};

/** A peer's end, of which a test says how much waits there. */
class FakeSocket implements PeerSocket {
  waiting = 0;
  events: SocketEvents | undefined;
  readonly closed: string[] = [];
  readonly sent: string[] = [];
  attach(events: SocketEvents): void {
    this.events = events;
  }
  beat(): void {}
  gather(): void {}
  send(text: string): void {
    this.sent.push(text);
  }
  close(_: number, reason: string): void {
    this.closed.push(reason);
    this.events?.onClose(reason);
  }
  destroy(why: string): void {
    this.close(0, why);
  }
}

/** The other end says no goodbye. */
class SlowSocket extends FakeSocket {
  override close(_: number, reason: string): void {
    this.closed.push(reason);
  }
}

function connectionOn(
  socket: FakeSocket,
  held: HeldBytes,
  serve: (peer: PeerSocket) => PeerConnection | undefined,
  left = () => {},
): SharedPeerConnection {
  const broker = {
    serve: (_: number, peer: PeerSocket) => serve(peer),
    ownerOf: () => undefined,
    connect: () => Promise.reject(new PeerError("away", "nobody")),
    moved: () => new Promise<void>(() => {}),
    now: () => 0,
  };
  return new SharedPeerConnection(socket, {
    broker: {
      partitionOf: partitions.of,
      line: (partition: number, intro: PeerIntroduction, events: PartitionLineEvents) =>
        new PartitionLine(broker, partition, intro, events, () => {}),
      subscribed() {},
      left,
    },
    peer: WORKER,
    held,
    identify: () => undefined,
    onEnd() {},
    onRefused() {},
  });
}

describe("what one token may have of a broker on an engine", () => {
  it("is a quarter of the lines to others: the next is refused by name, and another token finds some [bounded]", async () => {
    const open: PassThrough[] = [];
    const connect = async () => {
      const stream = new PassThrough();
      open.push(stream);
      return stream;
    };
    const peers = { connect, accept: () => () => {}, answer: () => () => {} };
    const broker = new SharedBroker({
      self: "this",
      partitions,
      peers: peers as never,
      now: () => 0,
      open: () => ({}) as never,
      serve: () => ({}) as never,
    });
    ends.push(() => broker.close());
    for (let n = 0; n < 1_024; n++) await broker.connect("another", n % 64, WORKER);
    await expect(broker.connect("another", 1, WORKER)).rejects.toMatchObject({
      code: "busy",
      message: expect.stringContaining("1024 lines of this token"),
    });
    await broker.connect("another", 1, { ...WORKER, id: "other" });
    open[0]?.destroy();
    await expect.poll(() => broker.connect("another", 1, WORKER).then(() => true)).toBe(true);
  });

  it("is handled in turns: what waited until a mailbox was open [bounded]", async () => {
    const taken: string[] = [];
    let open = (_: string): void => {};
    const connection = {
      onMessage: (bytes: Buffer) => void taken.push(bytes.toString().slice(0, 4)),
      onFrame() {},
      onClose() {},
    };
    const broker = {
      serve: (_: number, socket: PeerSocket) => {
        open = (text) => socket.send(text);
        return connection as never;
      },
      ownerOf: () => undefined,
      connect: () => Promise.reject(new PeerError("away", "nobody")),
      moved: () => new Promise<void>(() => {}),
      now: () => 0,
    };
    const events: PartitionLineEvents = {
      onFrame() {},
      onClose() {},
      waiting: 0,
      early: () => undefined,
      hasRoom: () => true,
    };
    const intro = { peer: WORKER, hello: { kind: "hello", address: "worker" } } as PeerIntroduction;
    const line = new PartitionLine(broker, 1, intro, events, () => {});
    for (let n = 0; n < 6; n++) line.send(`no-${n} ${"x".repeat(600 * KIB)}`);
    await Promise.resolve();
    open('{"kind":"welcome"}');
    taken.length = 0;
    let most = 0;
    while (taken.length < 7) {
      const before = taken.length;
      await new Promise(setImmediate);
      most = Math.max(most, taken.length - before);
      // It overtakes nothing of what waits.
      if (before === 0 && taken.length > 0) line.send("last");
    }
    expect(taken).toEqual(["no-0", "no-1", "no-2", "no-3", "no-4", "no-5", "last"]);
    expect(most).toBeLessThan(6);
  });

  it("is counted: what is said before a mailbox is open, until it is over [bounded]", async () => {
    const held = new HeldBytes(16 * MIB);
    const socket = new FakeSocket();
    const connection = connectionOn(socket, held, () => undefined);
    connection.onMessage(Buffer.from(HELLO));
    const deliver = (n: number) =>
      connection.onMessage(
        Buffer.from(
          JSON.stringify({
            kind: "deliver",
            to: `m-${n % 8}`,
            message: { id: `i-${n}`, kind: "note", body: "x".repeat(512 * KIB) },
          }),
        ),
      );
    for (let n = 0; n < 6; n++) deliver(n);
    // With what is made of each of them.
    expect(held.used).toBeGreaterThan(6 * 3 * 512 * KIB);
    // One principal never has all of it.
    for (let n = 6; n < 40 && socket.closed.length === 0; n++) deliver(n);
    expect(socket.closed).toEqual([expect.stringContaining("limits.heldBytes")]);
    expect(held.used).toBe(0);
  });

  it("is counted once, however many lines of it end here [bounded]", async () => {
    const held = new HeldBytes(64 * MIB);
    const socket = new FakeSocket();
    const broker = {
      peers: { arrive() {}, leave() {}, watch: () => true, retell() {} },
      live() {},
      extend: () => [],
      deliver: async () => {},
    };
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const connection = connectionOn(
      socket,
      held,
      (peer) =>
        new PeerConnection(peer, {
          broker: broker as never,
          log: log as never,
          held,
          peer: WORKER,
          identify: () => undefined,
          onEnd() {},
          onRefused() {},
        }),
    );
    connection.onMessage(Buffer.from(HELLO));
    socket.waiting = 1 * MIB;
    for (let n = 0; n < 20; n++) {
      connection.onMessage(
        Buffer.from(
          JSON.stringify({ kind: "deliver", to: `m-${n}`, message: { id: `i-${n}`, kind: "note", body: {} } }),
        ),
      );
    }
    await expect.poll(() => socket.sent.filter((text) => text.includes('"delivered"')).length).toBe(20);
    expect(held.used).toBeGreaterThanOrEqual(1 * MIB);
    expect(held.used).toBeLessThan(2 * MIB);
    socket.close(1000, "gone");
    expect(held.used).toBe(0);
  });
});

it("a peer that was sent away says nothing that counts, and has left, while its socket takes its time to close", () => {
  let left = 0;
  const say = (socket: FakeSocket, text: string) => socket.events?.onMessage(Buffer.from(text));
  const begun = () => {
    const socket = new SlowSocket();
    const connection = connectionOn(
      socket,
      new HeldBytes(),
      () => undefined,
      () => left++,
    );
    return { socket, connection };
  };
  const refused = begun();
  say(refused.socket, '{"kind":"subscribe"}');
  for (let n = 0; n < 3; n++) say(refused.socket, HELLO);
  expect([refused.connection.address, refused.socket.sent.length, left]).toEqual(["", 1, 1]);
  const expelled = begun();
  say(expelled.socket, HELLO);
  expelled.connection.expel("the token has ended");
  expect([expelled.connection.address, expelled.socket.closed, left]).toEqual(["worker", ["the token has ended"], 2]);
  expelled.socket.events?.onClose("at last");
  expect(left).toBe(2);
});

it.each(["alone", "on an engine"])(
  "a peer of a broker that is %s is refused and sent away by a frame over 1 MiB before its hello, and told of one after it [bounded]",
  (where) => {
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const broker = { peers: { arrive() {}, leave() {} } };
    const begun = () => {
      const socket = new SlowSocket();
      if (where !== "alone") connectionOn(socket, new HeldBytes(), () => undefined);
      else {
        const identify = () => undefined;
        const options = {
          broker: broker as never,
          log: log as never,
          peer: WORKER,
          identify,
          onEnd() {},
          onRefused() {},
        };
        new PeerConnection(socket, options);
      }
      return socket;
    };
    const large = Buffer.alloc(MIB + 1, " ");
    const early = begun();
    early.events?.onMessage(large);
    expect(early.sent).toEqual(['{"kind":"error","reason":"a frame has at most 1048576 bytes"}']);
    expect(early.closed).toEqual(["a frame has at most 1048576 bytes"]);
    early.events?.onMessage(Buffer.from(HELLO));
    expect(early.sent).toHaveLength(1);
    const greeted = begun();
    greeted.events?.onMessage(Buffer.from(HELLO));
    greeted.events?.onMessage(large);
    expect(greeted.sent.at(-1)).toContain("a frame has at most 1048576 bytes");
    expect(greeted.closed).toEqual([]);
    for (const socket of [early, greeted]) socket.events?.onClose("the test ends");
  },
);
