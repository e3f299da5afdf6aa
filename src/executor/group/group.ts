// The executors of one name, dialled, dialled in, or dialled in at another gateway: each request goes to the one that is ready and has the least to do,
// and to another where one is lost before it got it. How one is talked to is client.ts's.

import type { Principal } from "../../contracts/caller.js";
import type { ExecutorStatus, MemberState, PlaceState, Visitor } from "../../contracts/executors.js";
import { safeAddress } from "../../runtime/redact/safe-url.js";
import { sentence } from "../../runtime/words/sentence.js";
import { MAX_UNACKED_BYTES } from "../../sockets/limits.js";
import type { Close, Socket } from "../../sockets/socket.js";
import { MAX_REQUESTS } from "../wire/limits.js";
import { type AnswerHandler, ExecutorError, type ExecutorRequest, type RequestHandle } from "../wire/types.js";
import { Relay, type RelayOwner } from "./relay.js";

/**
 * An executor that the config names no longer has so long to end what it is at. Event streams never end by themselves.
 */
const RETIRE_MS = 30_000;

/** In the place of one that was told to stop another comes, as a rule: requests wait so long for it. */
const SUCCESSOR_MS = 10_000;

/** By its type alone: the value would be one more file for every start to open. */
const GOING_AWAY: (typeof Close)["goingAway"] = 1001;

/** One that is lost may come back, and in the place of one that stops as a rule another comes. */
const AWAY: ReadonlySet<MemberState> = new Set(["lost", "stopping"]);

/** What a group needs of the client of one executor. */
export interface GroupClient {
  readonly state: MemberState;
  readonly sessionId: string | undefined;
  readonly inFlight: number;
  /** The executor has our extensions. */
  readonly extended: boolean;
  readonly lastError: Error | string | undefined;
  start(request: ExecutorRequest, handler: AnswerHandler): RequestHandle;
  adopt(socket: Socket): void;
  abandon(why: string): void;
  close(): Promise<void>;
}

export type Dial = (signal: AbortSignal) => Promise<Socket>;

/** `dial` is undefined for an executor that dials in. `onState` is called when `state` or `lastError` changes. */
export type MakeClient = (dial: Dial | undefined, onState: () => void) => GroupClient;

export interface GroupOptions {
  readonly name: string;
  readonly makeClient: MakeClient;
  readonly dial: (url: string, token: string | undefined, signal: AbortSignal) => Promise<Socket>;
  /** Milliseconds since 1970, for people. */
  readonly wall: () => number;
  /** One came, went, was lost or is back. */
  readonly onState?: () => void;
  /** Makes the client of what another gateway has of this name. Undefined where this gateway is alone. */
  readonly makePassed?: ((gateway: string, onState: () => void) => PassedMember) | undefined;
  /** Who waits is told as soon as all that are dialled have failed once: for somebody who wants to know, not to get by. */
  readonly isImpatient?: boolean | undefined;
}

/** Executors at another gateway: it says how they are. */
export interface PassedMember extends GroupClient {
  become(state: MemberState): void;
}

interface Member {
  readonly client: GroupClient;
  /** The gateway that has it; undefined where we have. */
  readonly gateway?: string;
  where: string;
  /** URL and token of one that we dial. */
  readonly key: string | undefined;
  /** As it came in last. Undefined for one that we dial. */
  principal: Principal | undefined;
  readonly machine: string | undefined;
  /** Requests under way that end by themselves. */
  calls: number;
  /** It came without a conversation. */
  isAnew: boolean;
  state: MemberState;
  sinceMs: number;
  /** It is given nothing more, and closed when it is idle or this fires. */
  retiring: NodeJS.Timeout | undefined;
}

/** What is known of a member before it has done anything. */
type Facts = Pick<Member, "gateway" | "where" | "key" | "principal" | "machine">;

interface Waiter {
  resolve(): void;
  reject(error: ExecutorError): void;
}

export class ExecutorGroup {
  readonly name: string;
  readonly #options: GroupOptions;
  #members: Member[] = [];
  readonly #waiters = new Set<Waiter>();
  #dialled: boolean = false;
  /** Among equals each has its turn. */
  #turn = 0;
  /** Requests for an executor that is lost and may come back. Not given to it: another may come sooner. */
  readonly #parked = new Set<Relay>();
  #parkedBytes = 0;
  readonly #owner: RelayOwner<Member>;
  /** Of what other gateways pass here: it goes no further. */
  readonly #ownerHere: RelayOwner<Member>;
  /** By the gateways that have them. */
  readonly #elsewhere = new Map<string, PassedMember>();
  #closed: boolean = false;
  /**
   * This gateway stops, and there are others. `leaving`: those that dialled in are sent away as soon as they are quiet, to come back
   * elsewhere. `shut`: nothing more is taken of other gateways. `over`: nobody is waited for any more.
   */
  #end: "leaving" | "shut" | "over" | undefined;
  /** There were some when they were asked to go. */
  #hadVisitors = false;
  /** Who waits for those that dialled in to have no call under way. */
  readonly #quiet: (() => void)[] = [];
  /** Set while the next one may be on its way, after one that was told to stop has gone. */
  #successor: NodeJS.Timeout | undefined;

  constructor(options: GroupOptions) {
    this.name = options.name;
    this.#options = options;
    this.#owner = {
      choose: () => this.#choose(),
      park: (relay) => this.#park(relay),
      unpark: (relay) => this.#unpark(relay),
      engaged: (member, isCall) => {
        if (isCall) member.calls++;
      },
      relieved: (member, isCall) => {
        if (isCall) member.calls--;
        this.#relieved(member);
      },
      none: () => this.#none(),
    };
    this.#ownerHere = { ...this.#owner, choose: () => this.#chooseHere() };
  }

  /** Which executors are dialled from now on. Those that stay are not touched, and those that dialled in either. */
  configure(urls: readonly string[], token: string | undefined): void {
    if (this.#closed) return;
    this.#dialled = urls.length > 0;
    const wanted = new Map(urls.map((url) => [`${url} ${token ?? ""}`, url]));
    for (const member of [...this.#members]) {
      if (member.key === undefined || wanted.delete(member.key)) continue;
      this.#retire(member);
    }
    for (const [key, url] of wanted) {
      this.#join((signal) => this.#options.dial(url, token, signal), {
        where: safeAddress(new URL(url)),
        key,
        principal: undefined,
        machine: undefined,
      });
    }
  }

  /** An executor dialled in, for the first time or again. */
  adopt(socket: Socket, visitor: Visitor): void {
    if (this.#closed) {
      socket.destroy("there is no such executor any more");
      return;
    }
    const { sessionId, address, machine, principal } = visitor;
    const where = machine === undefined ? address : `${address} (${machine})`;
    const known = this.#members.find(
      (one) => one.principal?.id === principal.id && sessionId !== undefined && one.client.sessionId === sessionId,
    );
    if (known !== undefined) {
      known.principal = principal;
      known.where = where;
      known.client.adopt(socket);
      return;
    }
    if (this.#end !== undefined) {
      socket.close(GOING_AWAY, "the gateway stops: come back, to another one");
      return;
    }
    const member = this.#join(undefined, { where, key: undefined, principal, machine });
    member.isAnew = sessionId === undefined;
    member.client.adopt(socket);
  }

  /** Never throws, and the handler is called after it has returned. */
  start(request: ExecutorRequest, handler: AnswerHandler): RequestHandle {
    const relay = new Relay(request, handler, this.#owner);
    relay.begin();
    return relay;
  }

  /** Those that dialled in are to come back at another gateway: each is sent away when it has no call under way, and used until then. */
  leave(): void {
    this.#begin("leaving");
    for (const member of [...this.#members]) this.#relieved(member);
    this.#options.onState?.();
  }

  /** Takes nothing more of other gateways. Resolves when those that dialled in have no call under way. */
  async shut(): Promise<void> {
    this.#begin("shut");
    this.#options.onState?.();
    if (this.#isQuiet) return;
    await new Promise<void>((resolve) => this.#quiet.push(resolve));
  }

  /** Nobody is waited for any more: what is said to servers at the end goes by who is there, or not at all. */
  giveUp(): void {
    this.#begin("over");
    clearTimeout(this.#successor);
    this.#successor = undefined;
    this.#letGo();
  }

  #begin(end: "leaving" | "shut" | "over"): void {
    this.#hadVisitors ||= this.#members.some(isVisitor);
    this.#end = end;
  }

  get #isQuiet(): boolean {
    return this.#members.every((member) => !isVisitor(member) || member.calls === 0);
  }

  /** As `start`, by an executor that this gateway has itself. */
  startHere(request: ExecutorRequest, handler: AnswerHandler): RequestHandle {
    const relay = new Relay(request, handler, this.#ownerHere);
    if (this.#end === "shut" || this.#end === "over") queueMicrotask(() => relay.fail(this.#none()));
    else relay.begin();
    return relay;
  }

  /** What other gateways have of this name now. What is under way at one that has none any more ends as that one says. */
  setElsewhere(places: ReadonlyMap<string, PlaceState>): void {
    const { makePassed } = this.#options;
    if (this.#closed || makePassed === undefined) return;
    let hasStopped = false;
    for (const [gateway, client] of [...this.#elsewhere]) {
      if (places.has(gateway)) continue;
      this.#elsewhere.delete(gateway);
      this.#members = this.#members.filter((one) => one.client !== client);
      hasStopped ||= client.state === "stopping";
    }
    for (const [gateway, state] of places) {
      const client = this.#elsewhere.get(gateway) ?? this.#joinElsewhere(gateway, makePassed);
      client.become(state);
    }
    if (hasStopped && !this.#isReady) this.#awaitSuccessor();
    this.#told();
    this.#options.onState?.();
  }

  /** How those are that dialled in here; undefined where there is none. Those that we dial, others dial themselves. */
  get here(): PlaceState | undefined {
    const states = this.#members.filter(isVisitor).map(({ client }) => client.state);
    const isGoing = this.#end === "shut" || this.#end === "over";
    if (isGoing || states.length === 0) return this.#hadVisitors ? "stopping" : undefined;
    if (states.includes("ready")) return "ready";
    return states.some((state) => AWAY.has(state)) ? "lost" : undefined;
  }

  /** Resolves when a request can be made; rejects with why none can when `signal` says that nobody waits any longer. */
  ready(signal: AbortSignal): Promise<void> {
    if (this.#isReady) return Promise.resolve();
    if (this.#closed || signal.aborted) return Promise.reject(this.#none());
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiters.delete(waiter);
        signal.removeEventListener("abort", giveUp);
      };
      const giveUp = (): void => waiter.reject(this.#none());
      const waiter: Waiter = {
        resolve: () => {
          leave();
          resolve();
        },
        reject: (error) => {
          leave();
          reject(error);
        },
      };
      this.#waiters.add(waiter);
      signal.addEventListener("abort", giveUp, { once: true });
    });
  }

  status(): ExecutorStatus {
    const members = this.#members.map(({ client, where, sinceMs }) => ({
      where,
      state: client.state,
      inFlight: client.inFlight,
      extended: client.extended,
      since: new Date(sinceMs).toISOString(),
      lastError: textOf(client.lastError),
    }));
    const ready = this.#isReady;
    return { name: this.name, ready, problem: ready ? undefined : this.#none().message, members };
  }

  /** Executors that came with a token that is no longer good are closed at once. */
  dropPrincipals(ended: (principal: Principal) => boolean): void {
    for (const member of this.#members) {
      if (member.principal !== undefined && ended(member.principal)) this.#remove(member);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#successor);
    this.#successor = undefined;
    const members = this.#members;
    this.#members = [];
    for (const tell of this.#quiet.splice(0)) tell();
    for (const waiter of [...this.#waiters]) waiter.reject(this.#none());
    this.#letGo();
    await Promise.all(members.map((member) => this.#closeMember(member)));
  }

  get #isReady(): boolean {
    return this.#members.some(isUsable);
  }

  #join(dial: Dial | undefined, more: Facts): Member {
    const client = this.#options.makeClient(dial, () => this.#changed(member));
    const member = this.#add(client, more);
    return member;
  }

  #joinElsewhere(gateway: string, makePassed: NonNullable<GroupOptions["makePassed"]>): PassedMember {
    const client = makePassed(gateway, () => this.#changed(member));
    const none = { key: undefined, principal: undefined, machine: undefined };
    const member = this.#add(client, { gateway, where: `gateway ${gateway}`, ...none });
    this.#elsewhere.set(gateway, client);
    return client;
  }

  #add(client: GroupClient, more: Facts): Member {
    const member: Member = {
      client,
      ...more,
      calls: 0,
      isAnew: false,
      state: client.state,
      sinceMs: this.#options.wall(),
      retiring: undefined,
    };
    this.#members.push(member);
    return member;
  }

  #changed(member: Member): void {
    const { state, lastError } = member.client;
    // One that came and is lost for good does not come back as this one; those that we dial are sought for ever.
    if (isVisitor(member) && state === "connecting" && lastError !== undefined) {
      this.#remove(member);
      return;
    }
    if (this.#options.isImpatient === true && this.#members.every(({ client }) => client.lastError !== undefined)) {
      for (const waiter of [...this.#waiters]) waiter.reject(this.#none());
    }
    if (state === member.state) return;
    member.state = state;
    member.sinceMs = this.#options.wall();
    this.#told();
    if (state === "ready" && member.isAnew) this.#succeed(member);
    this.#options.onState?.();
  }

  /** Who waits for one hears of it. */
  #told(): void {
    if (this.#isReady) {
      clearTimeout(this.#successor);
      this.#successor = undefined;
      for (const waiter of [...this.#waiters]) waiter.resolve();
    }
    this.#letGo();
  }

  /** It took the place of one that died on its machine: nobody there knows what that one had under way. */
  #succeed({ machine, principal }: Member): void {
    if (machine === undefined) return;
    for (const one of [...this.#members]) {
      if (one.machine === machine && one.principal?.id === principal?.id) one.client.abandon("it was restarted");
    }
  }

  /** One that is here saves the way over another gateway. */
  #choose(): Member | undefined {
    if (this.#elsewhere.size === 0) return this.#leastBusy(this.#members);
    return this.#chooseHere() ?? this.#leastBusy(this.#members);
  }

  #chooseHere(): Member | undefined {
    if (this.#elsewhere.size === 0) return this.#leastBusy(this.#members);
    return this.#leastBusy(this.#members.filter(({ gateway }) => gateway === undefined));
  }

  /** The ready one with the fewest requests. */
  #leastBusy(members: readonly Member[]): Member | undefined {
    const from = this.#turn++;
    let best: Member | undefined;
    for (let i = 0; i < members.length; i++) {
      const member = members[(from + i) % members.length] as Member;
      if (!isUsable(member)) continue;
      if (best === undefined || member.client.inFlight < best.client.inFlight) best = member;
    }
    return best;
  }

  #park(relay: Relay): boolean {
    if (!this.#mayComeBack || this.#parked.size >= MAX_REQUESTS) return false;
    if (this.#parkedBytes + relay.bytes > MAX_UNACKED_BYTES) return false;
    this.#parked.add(relay);
    this.#parkedBytes += relay.bytes;
    return true;
  }

  #unpark(relay: Relay): void {
    if (this.#parked.delete(relay)) this.#parkedBytes -= relay.bytes;
  }

  /** What waits is let go: to those that are ready, or, where nobody may come back, with an error. */
  #letGo(): void {
    if (this.#parked.size === 0) return;
    const isReady = this.#isReady;
    if (!isReady && this.#mayComeBack) return;
    const parked = [...this.#parked];
    this.#parked.clear();
    this.#parkedBytes = 0;
    for (const relay of parked) {
      if (isReady) relay.begin();
      else relay.fail(this.#none());
    }
  }

  #awaitSuccessor(): void {
    if (this.#end === "over") return;
    clearTimeout(this.#successor);
    this.#successor = setTimeout(() => {
      this.#successor = undefined;
      this.#letGo();
    }, SUCCESSOR_MS).unref();
  }

  get #mayComeBack(): boolean {
    if (this.#end === "over") return false;
    if (this.#successor !== undefined) return true;
    return this.#members.some(({ client, retiring }) => AWAY.has(client.state) && retiring === undefined);
  }

  #relieved(member: Member): void {
    if (this.#quiet.length > 0 && this.#isQuiet) for (const tell of this.#quiet.splice(0)) tell();
    const isLeft = this.#end === "leaving" && isVisitor(member) && member.calls === 0;
    if (isLeft || (member.retiring !== undefined && member.client.inFlight === 0)) this.#remove(member);
  }

  #retire(member: Member): void {
    member.retiring ??= setTimeout(() => this.#remove(member), RETIRE_MS).unref();
    this.#relieved(member);
  }

  #remove(member: Member): void {
    if (!this.#members.includes(member)) return;
    this.#members = this.#members.filter((one) => one !== member);
    const isReplaced = member.state === "stopping" || (this.#end === "leaving" && isVisitor(member));
    if (isReplaced && !this.#isReady) this.#awaitSuccessor();
    void this.#closeMember(member);
    this.#letGo();
    this.#options.onState?.();
  }

  async #closeMember(member: Member): Promise<void> {
    clearTimeout(member.retiring);
    await member.client.close().catch(() => {});
  }

  #none(): ExecutorError {
    const told = this.#members.map(({ client }) => textOf(client.lastError)).find((text) => text !== undefined);
    const why = told === undefined ? "" : ` Last: ${sentence(told)}`;
    // What became of the last attempt says by itself what to do.
    const remedy = this.#dialled
      ? told === undefined
        ? "Is it running there? `toolway executor --listen` starts one."
        : undefined
      : `Start one in its network: \`toolway executor --connect ws://GATEWAY/executors/${encodeURIComponent(this.name)} --allow HOST\`.`;
    return new ExecutorError("unavailable", `No executor "${this.name}" is connected.${why}`, { sent: false, remedy });
  }
}

function isUsable({ client, retiring }: Member): boolean {
  return client.state === "ready" && retiring === undefined;
}

/** It dialled in here. */
function isVisitor({ key, gateway }: Member): boolean {
  return key === undefined && gateway === undefined;
}

function textOf(error: Error | string | undefined): string | undefined {
  return error instanceof Error ? error.message : error;
}
