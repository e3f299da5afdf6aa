import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { HeldBytes } from "../../runtime/memory/held-bytes.js";
import { KIB, MIB } from "../../runtime/sizes.js";
import type { SocketEvents } from "../../sockets/socket.js";
import { BARE_WINDOW, BEAT_MS, MAX_UNDER_WAY, MAX_WINDOW } from "../wire/limits.js";
import { PeerConnection, type PeerSocket } from "./peer-connection.js";
import type { Consumer } from "./queue-terms.js";

const log = { debug() {}, info() {}, warn() {}, error() {} } as never;
/** Those who take messages, as the broker knows them. */
const consumers: Consumer[] = [];
/** A broker that takes all at once. */
const quick = {
  peers: { arrive() {}, leave() {}, changed() {} },
  deliver: () => Promise.resolve(),
  cancel: () => Promise.resolve(true),
  subscribe: (_address: string, consumer: Consumer) => void consumers.push(consumer),
};

interface Greeted {
  readonly peer: { id: string; role: string; maySendTo: undefined };
  readonly address: string;
  onRefused(why: string): void;
}

/** What a peer says, and what it is told. */
class Peer implements PeerSocket {
  waiting = 0;
  readonly told: Record<string, unknown>[] = [];
  readonly beats: number[] = [];
  readonly connection: PeerConnection;
  #events: SocketEvents | undefined;

  constructor(version: number | undefined, held?: HeldBytes, broker: object = quick, over: Partial<Greeted> = {}) {
    const peer = { id: "worker", role: "researcher", maySendTo: undefined };
    const { address = "worker", ...others } = over;
    const options = { log, peer, held, identify: () => undefined, onEnd() {}, onRefused() {}, ...others };
    this.connection = new PeerConnection(this, { ...options, broker: broker as never });
    this.say({ kind: "hello", agent: { session_id: address }, version });
    this.told.length = 0;
  }

  say(frame: object): void {
    this.#events?.onMessage(Buffer.from(JSON.stringify(frame)));
  }

  deliver(id: string, body: unknown = {}): void {
    this.say({ kind: "deliver", to: "studio", message: { id, kind: "mcp_request", body } });
  }

  end(): void {
    this.#events?.onClose("it went");
  }

  attach(events: SocketEvents): void {
    this.#events = events;
  }

  send(frame: string): void {
    this.told.push(JSON.parse(frame) as Record<string, unknown>);
  }

  beat(everyMs: number): void {
    this.beats.push(everyMs);
  }

  gather(): void {}
  close(): void {}
  destroy(): void {}
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** All that follows without time. */
const turn = () => vi.advanceTimersByTimeAsync(0);

it("a peer whose address is too long is told so at its hello, with how long the id of its token may be [told-why]", () => {
  const refused: string[] = [];
  const inbox = `#mcp-${"0123456789abcdef"}`;
  const greeted = (id: string) =>
    new Peer(1, undefined, quick, {
      peer: { id, role: "researcher", maySendTo: undefined },
      address: inbox,
      onRefused: (why) => void refused.push(why),
    });
  greeted("w".repeat(107));
  expect(refused).toEqual([]);
  greeted("w".repeat(108));
  expect(refused).toEqual([expect.stringMatching(/has 129 characters .*make a token with an id of 107 at most$/)]);
});

describe("what a peer hears of its deliveries", () => {
  it("comes at once to one that knows the bare frames alone", async () => {
    const peer = new Peer(undefined);
    peer.deliver("m-1");
    peer.deliver("m-2");
    await turn();
    expect(peer.told).toEqual(["m-1", "m-2"].map((id) => ({ kind: "delivered", id })));
  });

  it("comes to others with the next frame, before it, or within five milliseconds in one of its own", async () => {
    const peer = new Peer(1);
    peer.deliver("m-1");
    await turn();
    peer.deliver("m-2");
    await turn();
    expect(peer.told).toEqual([]);
    await vi.advanceTimersByTimeAsync(5);
    expect(peer.told).toEqual([{ kind: "delivered", ids: ["m-1", "m-2"] }]);
    peer.deliver("m-3");
    await turn();
    peer.say({ kind: "cancel", to: "studio", correlation_id: "m-3" });
    await turn();
    expect(peer.told.slice(1)).toEqual([
      { kind: "delivered", id: "m-3" },
      { kind: "cancelled", correlation_id: "m-3", removed: true },
    ]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(peer.told).toHaveLength(3);
  });

  it("waits for no more than so many, and not for a peer that has gone [bounded]", async () => {
    const peer = new Peer(1);
    for (let n = 0; n < 256; n++) peer.deliver(`m-${n}`);
    await turn();
    expect(peer.told).toHaveLength(1);
    peer.deliver("the last");
    await turn();
    peer.end();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(peer.told).toHaveLength(1);
  });
});

describe("a peer that was sent away", () => {
  const deliver = vi.fn(() => Promise.resolve());
  const left: unknown[] = [];
  const broker = {
    ...quick,
    deliver,
    subscribe() {},
    peers: { ...quick.peers, leave: () => void left.push("its place") },
    unsubscribe: (address: string) => void left.push(address),
  };
  beforeEach(() => {
    deliver.mockClear();
    left.length = 0;
  });

  it("says nothing that counts while its socket takes its time to close, and has no second hello [only-is-all]", async () => {
    const refused: string[] = [];
    const peer = new Peer(1, undefined, broker, { address: "studio", onRefused: (why) => void refused.push(why) });
    for (const address of ["studio", "worker"]) peer.say({ kind: "hello", agent: { session_id: address } });
    peer.deliver("m-1");
    await turn();
    expect(refused).toHaveLength(1);
    expect(peer.told).toEqual([]);
    expect(deliver).not.toHaveBeenCalled();
  });

  it("because its token has ended gives back at once what it holds, and sends nothing more [token-ends]", async () => {
    const peer = new Peer(1, undefined, broker);
    peer.say({ kind: "subscribe" });
    peer.connection.expel("the token has ended");
    expect(left).toEqual(["its place", "worker"]);
    peer.deliver("m-1");
    peer.say({ kind: "subscribe" });
    peer.end();
    await turn();
    expect(deliver).not.toHaveBeenCalled();
    expect(left).toHaveLength(2);
  });

  it("because its broker stops is told what is on disk before that", async () => {
    const peer = new Peer(1, undefined, broker);
    peer.deliver("m-1");
    await turn();
    peer.connection.end("the broker stops");
    expect(peer.told).toEqual([{ kind: "delivered", id: "m-1" }]);
  });
});

describe("a peer", () => {
  it("is asked for a sign of life from its first moment on, so that a half-open one is noticed [bounded]", () => {
    expect(new Peer(undefined).beats).toEqual([BEAT_MS]);
  });

  it("has no more messages in hand than a connection may, and fewer where it knows the bare frames alone [bounded]", () => {
    for (const version of [1, undefined]) new Peer(version).say({ kind: "subscribe" });
    expect(consumers.splice(0).map(({ window }) => window)).toEqual([MAX_WINDOW, BARE_WINDOW]);
  });

  it("has no more deliveries on their way to the disk than a connection may: the next is refused by name, and others go on [bounded]", async () => {
    const waiting: (() => void)[] = [];
    const slow = { ...quick, deliver: () => new Promise<void>((done) => waiting.push(done)) };
    const peer = new Peer(undefined, undefined, slow);
    for (let n = 0; n < MAX_UNDER_WAY; n++) peer.deliver(`m-${n}`);
    expect([waiting.length, peer.told]).toEqual([MAX_UNDER_WAY, []]);
    peer.deliver("one-more");
    expect(peer.told).toEqual([
      { kind: "error", id: "one-more", reason: expect.stringContaining(`${MAX_UNDER_WAY} deliveries`) },
    ]);
    const other = new Peer(undefined, undefined, slow);
    other.deliver("another's");
    expect(waiting.length).toBe(MAX_UNDER_WAY + 1);
    waiting[0]?.();
    await turn();
    peer.deliver("one-more");
    expect(waiting.length).toBe(MAX_UNDER_WAY + 2);
  });
});

describe("what peers do not read", () => {
  it("is counted where each has little of it and there are many, and nothing more is handed to them while there is no room [bounded]", async () => {
    const held = new HeldBytes(16 * MIB);
    const paused: boolean[] = [];
    const sends: ((frame: string) => boolean)[] = [];
    const broker = {
      ...quick,
      subscribe: (_address: string, _: Consumer, send: (frame: string) => boolean) => void sends.push(send),
      unsubscribe() {},
      pause: (_address: string, _: Consumer, isPaused: boolean) => void paused.push(isPaused),
      peers: { ...quick.peers, leave() {} },
    };
    const peers = Array.from({ length: 1_000 }, () => new Peer(1, held, broker));
    for (const peer of peers) peer.say({ kind: "subscribe" });
    const frame = '{"kind":"message"}';
    const isRoomy = peers.map((peer, n) => {
      peer.waiting = 20 * KIB;
      return sends[n]?.(frame);
    });
    // Three quarters of all that may be held.
    expect(isRoomy.filter((one) => one)).toHaveLength(Math.floor((12 * MIB) / (20 * KIB)));
    expect(held.used).toBeLessThanOrEqual(12 * MIB);
    for (const peer of peers) peer.waiting = 0;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(held.used).toBe(0);
    expect(paused).toEqual(isRoomy.filter((one) => !one).map(() => false));
    // What is read at once, or nearly, is not.
    const [peer] = peers;
    if (peer !== undefined) peer.waiting = 8 * KIB - 1;
    sends[0]?.(frame);
    expect(held.used).toBe(0);
    for (const one of peers) one.end();
  });
});

describe("the deliveries of one token that are under way", () => {
  it("count with what is made of them, over all its connections; the next is refused by name [bounded]", async () => {
    const held = new HeldBytes(16 * MIB);
    const peers = [new Peer(undefined, held), new Peer(undefined, held), new Peer(undefined, held)];
    const body = "x".repeat(500 * KIB);
    for (let n = 0; n < 12; n++) peers[n % 3]?.deliver(`m-${n}`, body);
    expect(held.used).toBeGreaterThan(7 * 3 * 500 * KIB);
    expect(held.used).toBeLessThanOrEqual(12 * MIB);
    const refused = peers.flatMap(({ told }) => told.filter(({ kind }) => kind === "error"));
    expect(refused.length).toBe(4);
    expect(refused[0]?.["reason"]).toContain("limits.heldBytes");
    await turn();
    expect(held.used).toBe(0);
  });
});
