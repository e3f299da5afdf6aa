// Calls of modern agents that wait for their retry while a server waits for an answer: who they are, how many there
// may be and for how long. The table is pure; ParkedCalls drives it with a timer.

import { randomBytes } from "node:crypto";
import type { Clock } from "../../runtime/clock.js";
import type { EndpointLimits } from "../session/limits.js";

export interface Parkable {
  readonly principalId: string;
  /** The digest of the request, see requestDigest(). */
  readonly digest: string;
  /** Called when nobody came back for it in time. */
  expire(): void;
}

interface ParkedEntry<C> {
  readonly call: C;
  /** Undefined while a retry has taken the call over. */
  deadline: number | undefined;
}

type Bounds = Pick<EndpointLimits, "parked" | "parkedPerPrincipal" | "parkedMs">;

/** Ids have 128 bits and cannot be guessed, though they are sealed as well. */
const ID_BYTES = 16;

export class ParkingTable<C extends Parkable> {
  readonly #bounds: Bounds;
  readonly #places = new Map<string, ParkedEntry<C>>();
  readonly #perPrincipal = new Map<string, number>();

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  get size(): number {
    return this.#places.size;
  }

  /** A place for a call, taken before its first question is sent; undefined where there is none left. */
  enter(call: C): string | undefined {
    const { parked, parkedPerPrincipal } = this.#bounds;
    const own = this.#perPrincipal.get(call.principalId) ?? 0;
    if (this.#places.size >= parked || own >= parkedPerPrincipal) return undefined;
    const id = randomBytes(ID_BYTES).toString("base64url");
    this.#places.set(id, { call, deadline: undefined });
    this.#perPrincipal.set(call.principalId, own + 1);
    return id;
  }

  /** From now on the call waits. */
  wait(id: string, nowMs: number): void {
    const place = this.#places.get(id);
    if (place !== undefined) place.deadline = nowMs + this.#bounds.parkedMs;
  }

  /** The waiting call that a retry belongs to. */
  take(id: string, principalId: string, digest: string, nowMs: number): C | undefined {
    const place = this.#places.get(id);
    if (place === undefined || place.call.principalId !== principalId || place.call.digest !== digest) return undefined;
    if (place.deadline === undefined || place.deadline <= nowMs) return undefined;
    return place.call;
  }

  /** A retry has taken it over, and its time stands still. */
  resume(id: string): void {
    const place = this.#places.get(id);
    if (place !== undefined) place.deadline = undefined;
  }

  leave(id: string): void {
    const place = this.#places.get(id);
    if (place === undefined) return;
    this.#places.delete(id);
    const { principalId } = place.call;
    const left = (this.#perPrincipal.get(principalId) ?? 1) - 1;
    if (left === 0) this.#perPrincipal.delete(principalId);
    else this.#perPrincipal.set(principalId, left);
  }

  /** Takes out those whose time is over. */
  due(nowMs: number): C[] {
    const over: C[] = [];
    for (const [id, { call, deadline }] of [...this.#places]) {
      if (deadline === undefined || deadline > nowMs) continue;
      this.leave(id);
      over.push(call);
    }
    return over;
  }
}

/** A call expires late by a tenth of its time at most, and the timer is not busier than need be. */
const LOOKS = 10;
const MAX_LOOK_MS = 30_000;

export class ParkedCalls<C extends Parkable> extends ParkingTable<C> {
  readonly #clock: Clock;
  readonly #lookMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(bounds: Bounds, clock: Clock) {
    super(bounds);
    this.#clock = clock;
    this.#lookMs = Math.min(MAX_LOOK_MS, bounds.parkedMs / LOOKS);
  }

  override wait(id: string): void {
    super.wait(id, this.#clock.now());
    this.#timer ??= setInterval(() => this.#look(), this.#lookMs).unref();
  }

  override take(id: string, principalId: string, digest: string): C | undefined {
    return super.take(id, principalId, digest, this.#clock.now());
  }

  override leave(id: string): void {
    super.leave(id);
    if (this.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    for (const call of this.due(this.#clock.now())) call.expire();
  }
}
