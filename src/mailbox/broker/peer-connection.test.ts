import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { HeldBytes } from "../../runtime/memory/held-bytes.js";
import { KIB, MIB } from "../../runtime/sizes.js";
import type { SocketEvents } from "../../sockets/socket.js";
import { PeerConnection, type PeerSocket } from "./peer-connection.js";

const log = { debug() {}, info() {}, warn() {}, error() {} } as never;
/** A broker that takes all at once. */
const broker = {
  peers: { arrive() {}, leave() {} },
  deliver: () => Promise.resolve(),
  cancel: () => Promise.resolve(true),
} as never;

/** What a peer says, and what it is told. */
class Peer implements PeerSocket {
  readonly waiting = 0;
  readonly told: Record<string, unknown>[] = [];
  #events: SocketEvents | undefined;

  constructor(version: number | undefined, held?: HeldBytes) {
    const peer = { id: "worker", role: "researcher", maySendTo: undefined };
    new PeerConnection(this, { broker, log, peer, held, identify: () => undefined, onEnd() {}, onRefused() {} });
    this.say({ kind: "hello", agent: { session_id: "worker" }, version });
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

  beat(): void {}
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
