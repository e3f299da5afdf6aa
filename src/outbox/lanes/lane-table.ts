// Where the lanes of all servers are, which of them may go now, and which wait for a time. It decides nothing about a
// write.

import { fullJitter } from "../../runtime/backoff.js";
import { type Hold, isHeld, type KeptWrite, LaneServer, laneKey, WriteLane } from "./lane.js";
import { HELD_LOOK_MS, RETRY_BACKOFF, SHORT_WAIT_MS } from "./limits.js";

/** What servers that send the same credential have in common; undefined where a server has one of its own, or none. */
export type CredentialOf = (server: string) => string | undefined;

export class LaneTable {
  readonly servers = new Map<string, LaneServer>();
  readonly #random: () => number;
  readonly #credentialOf: CredentialOf;
  /** When the first of what waits for a time is due. */
  nextWakeMs = Number.POSITIVE_INFINITY;

  constructor(random: () => number, credentialOf: CredentialOf) {
    this.#random = random;
    this.#credentialOf = credentialOf;
  }

  soon(ms: number): void {
    if (ms < this.nextWakeMs) this.nextWakeMs = ms;
  }

  server(name: string): LaneServer {
    let server = this.servers.get(name);
    if (server === undefined) {
      server = new LaneServer(name);
      // A credential that is refused elsewhere is refused here: that is tried with one write for all.
      for (const { away } of this.sharing(server)) if (away?.kind === "login") server.away = away;
      this.servers.set(name, server);
    }
    return server;
  }

  /** The server, and those of its credential. */
  sharing(server: LaneServer): LaneServer[] {
    const credential = this.#credentialOf(server.name);
    if (credential === undefined) return [server];
    const others = [...this.servers.values()].filter(
      (one) => one !== server && this.#credentialOf(one.name) === credential,
    );
    return [server, ...others];
  }

  lane(write: KeptWrite): WriteLane {
    const server = this.server(write.facts.server);
    const key = laneKey(write);
    let lane = server.lanes.get(key);
    if (lane === undefined) {
      lane = new WriteLane(key, server);
      server.lanes.set(key, lane);
    }
    return lane;
  }

  /** A lane that has nothing, and says nothing, is not kept; nor is a server without lanes. */
  tidy(lane: WriteLane): void {
    const { server } = lane;
    if (lane.writes.length > 0 || lane.hold !== undefined || lane.notBeforeMs > 0) return;
    server.lanes.delete(lane.key);
    server.ready.delete(lane);
    server.delayed.delete(lane);
    if (server.lanes.size === 0 && server.away === undefined && !server.isHeld) this.servers.delete(server.name);
  }

  takePlace(lane: WriteLane, write: KeptWrite): void {
    lane.sending = write;
    lane.server.sending++;
    lane.server.ready.delete(lane);
    write.state = "sending";
  }

  /** True where it was the one write that tried its server. */
  givePlaceBack(lane: WriteLane, write: KeptWrite): boolean {
    const { server } = lane;
    const wasProbe = server.away?.probing === write;
    lane.sending = undefined;
    server.sending--;
    // Servers that share a credential may have two such by now, of which each would wait for it.
    for (const { away } of this.servers.values()) if (away?.probing === write) away.probing = undefined;
    return wasProbe;
  }

  jitter(tries: number): number {
    return Math.ceil(fullJitter(tries, this.#random(), RETRY_BACKOFF));
  }

  /** The same, of one that has not been there for so long. */
  awayJitter(tries: number, awayMs: number): number {
    return Math.min(this.jitter(tries), Math.max(SHORT_WAIT_MS, awayMs));
  }

  /** The server said that it is to wait, for so long at least. */
  delay(lane: WriteLane, nowMs: number, leastMs: number): void {
    this.#delayUntil(lane, nowMs + Math.max(leastMs, this.jitter(lane.tries++)), false);
  }

  /** The server was not there, or lost a call. */
  delayForServer(lane: WriteLane, nowMs: number): void {
    if (lane.tries === 0) lane.failingSinceMs = nowMs;
    this.#delayUntil(lane, nowMs + this.awayJitter(lane.tries++, nowMs - lane.failingSinceMs), true);
  }

  #delayUntil(lane: WriteLane, ms: number, isForServer: boolean): void {
    lane.notBeforeMs = ms;
    lane.isForServer = isForServer;
    lane.server.ready.delete(lane);
    lane.server.delayed.add(lane);
    this.soon(ms);
  }

  holdLane(lane: WriteLane, hold: Hold, nowMs: number): void {
    lane.hold = hold;
    lane.server.ready.delete(lane);
    if (hold.kind !== "quarantine") return;
    lane.lookMs = nowMs + HELD_LOOK_MS;
    lane.server.delayed.add(lane);
    this.soon(lane.lookMs);
  }

  makeReady(lane: WriteLane): void {
    if (lane.writes.length === 0 || lane.sending !== undefined || isHeld(lane)) return;
    if (!lane.server.delayed.has(lane)) lane.server.ready.add(lane);
  }

  /** Lanes whose time has come are ready. */
  look(server: LaneServer, nowMs: number): void {
    for (const lane of server.delayed) {
      const isLooked = lane.hold?.kind === "quarantine";
      const dueMs = isLooked ? lane.lookMs : lane.notBeforeMs;
      if (dueMs > nowMs) {
        this.soon(dueMs);
        continue;
      }
      if (isLooked) lane.hold = undefined;
      lane.wasHastened = false;
      this.undelay(lane);
      this.tidy(lane);
    }
  }

  undelay(lane: WriteLane): void {
    lane.notBeforeMs = 0;
    lane.server.delayed.delete(lane);
    this.makeReady(lane);
  }
}
