import { describe, expect, it } from "vitest";
import type { MailboxPresence } from "../wire/broker-frames.js";
import { MAX_WATCHED } from "../wire/limits.js";
import { MAX_MAILBOXES } from "./limits.js";
import { type LivePeer, LivePeers } from "./live-peers.js";
import type { Consumer } from "./queue-terms.js";

class Peer implements LivePeer {
  readonly sender;
  readonly version = 1;
  consumer: Consumer | undefined;
  readonly frames: string[] = [];
  readonly presences: MailboxPresence[] = [];

  constructor(address: string) {
    this.sender = { address, owner: address, role: "r", maySendTo: undefined };
  }
  pass(frame: string): void {
    this.frames.push(frame);
  }
  tellPresence(presence: MailboxPresence): void {
    this.presences.push(presence);
  }
}

const all = { kinds: undefined } as Consumer;

describe("the peers of a broker", () => {
  it("watch so many mailboxes and no more, and are told again what they missed [bounded]", () => {
    const peers = new LivePeers(() => 0);
    const watcher = new Peer("w");
    peers.arrive(watcher);
    for (let n = 0; n < MAX_WATCHED; n++) expect(peers.watch(watcher, `m-${n}`)).toBe(true);
    expect(peers.watch(watcher, "one more")).toBe(false);
    expect(peers.watch(watcher, "m-1")).toBe(true);
    watcher.presences.splice(0);
    peers.retell(watcher);
    expect(watcher.presences).toHaveLength(MAX_WATCHED);
  });

  it("hear of a change once, and nothing after they have left", () => {
    let nowMs = 1_000;
    const peers = new LivePeers(() => nowMs);
    const watcher = new Peer("w");
    const one = new Peer("m");
    const two = new Peer("m");
    for (const peer of [watcher, one, two]) peers.arrive(peer);
    peers.watch(watcher, "m");
    for (const peer of [one, two]) {
      peer.consumer = all;
      peers.changed("m");
    }
    nowMs = 2_000;
    peers.leave(one);
    peers.leave(two);
    peers.leave(two);
    expect(watcher.presences.map(({ connected, since }) => [connected, since?.slice(17, 19)])).toEqual([
      [false, undefined],
      [true, "01"],
      [false, "02"],
    ]);
    peers.leave(watcher);
    peers.arrive(one);
    peers.changed("m");
    expect(watcher.presences).toHaveLength(3);
  });

  it("are remembered for as many mailboxes as there may be [bounded]", () => {
    const peers = new LivePeers(() => 0);
    for (let n = 0; n <= MAX_MAILBOXES; n++) {
      const peer = new Peer(`m-${n}`);
      peer.consumer = all;
      peers.arrive(peer);
      peers.changed(`m-${n}`);
      peers.leave(peer);
    }
    expect(peers.presenceOf("m-0").since).toBeUndefined();
    expect(peers.presenceOf(`m-${MAX_MAILBOXES}`).since).toBeDefined();
  });
});
