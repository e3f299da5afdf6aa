// The outbox of several gateways: the writes of a server are kept by the owner of its partition, in an outbox of that partition.
// A call that comes to another gateway is passed to the owner, under a key that is minted before the first try: where the answer
// is lost, it is passed again, to whoever owns the partition by then, and the journal knows it.

import { randomBytes } from "node:crypto";
import type { EngineStatus } from "../../contracts/engine/engine.js";
import type { PartitionKeeper, Partitions } from "../../contracts/engine/partitions.js";
import type { PeerError, Peers } from "../../contracts/engine/peers.js";
import { type OwnToolName, ownToolName } from "../../contracts/names.js";
import type { OutboxIntake, OutboxLimits, OutboxTerms, Receipt } from "../../contracts/outbox.js";
import type { AgentCall } from "../../contracts/service.js";
import type { Store } from "../../contracts/store.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import { faultReply } from "../../protocol/reply.js";
import type { Clock } from "../../runtime/clock.js";
import { messageOf } from "../../runtime/expected-error.js";
import { resultWithin, toldWithin } from "../../runtime/wait.js";
import { waitText } from "../../runtime/words/amounts.js";
import { isAnswer } from "../answers.js";
import type { WriteFacts } from "../lanes/write.js";
import type { OutboxOperations } from "../operator.js";
import type { Outbox } from "../outbox.js";
import type { ChangeListener, OutboxParts } from "../parts.js";
import { type CallFacts, decodeReply, encodeReply, factsOf, frame, PassedCall, unframe } from "./passed-call.js";

/** A takeover (10 s), the wait for a commit and for an answer (45 s) would be longer than agents wait: 50 s in all. */
const PASS_MS = 50_000;
/**
 * Nobody can be asked without the engine, and nobody owns anything soon after it went. Whoever is cut off dials the next node at
 * once, and one that hangs holds a dial up for 5 s: where none was found by then, calls are not held for the rest of their time.
 */
const AWAY_MS = 6_000;
/** Where nobody owns the partition, or the owner knows of none: it is looked at again at each change, and this often. */
const LOOK_MS = 250;
/** What may still come back for calls that are under way when a partition is lost. */
const DRAIN_MS = 3_000;
/**
 * The same where the partition is given away, to a gateway that begins or by one that is drained: as long as calls in flight have at
 * the end of a gateway.
 */
const GIVING_MS = 22_000;
/** Others that are being told of changes: what is more is not told, and found when it is asked for. */
const MAX_TELLING = 256;
const TELL_MS = 2_000;

const MAY_BE_KEPT =
  "It is not sent: another gateway may have queued it, which did not answer and is not the one that keeps this server's writes any more. Ask for your receipts before you call again.";

export const PASS_TAKE = "outbox.take";
export const PASS_CANCEL = "outbox.cancel";
const PASS_CHANGED = "outbox.changed";

/** Of an outbox that is one of several. */
export interface PartitionParts {
  readonly store: Store;
  /** Receipts name their partition, so that whoever is asked for one knows whom to ask. */
  readonly idPrefix: string;
  /** Asked right before each delivery. */
  readonly mayAct: () => boolean;
  readonly giveBack: (call: AgentCall, server: string) => void;
  readonly passOn: NonNullable<OutboxParts["passOn"]>;
}

export interface OpenPartition {
  readonly outbox: Outbox;
  readonly operations: OutboxOperations;
}

export interface SharedOutboxOptions {
  readonly self: string;
  readonly partitions: Partitions;
  readonly peers: Peers;
  readonly clock: Clock;
  /** Of the engine that all of them share, by this clock. */
  readonly status: () => EngineStatus;
  /** Tells each change of it, until what it returns is called. */
  readonly watch: (listener: (status: EngineStatus) => void) => () => void;
  readonly make: (parts: PartitionParts) => OpenPartition;
  /** Which server a name means here. */
  readonly targetOf?: (server: string) => string | undefined;
  readonly termsOf?: (server: string, tool: OwnToolName) => OutboxTerms | undefined;
  /** Sends a call that is not kept, past policy. */
  readonly deliver: (call: AgentCall, server: string, tool: OwnToolName) => void;
  readonly giveBack: (call: AgentCall, server: string) => void;
  /** How often an owner is looked for where no change is told. */
  readonly lookMs?: number;
}

interface TakeHead {
  readonly server: string;
  readonly tool: string;
  readonly minted: string;
  /** Which server its name means where the call came to. */
  readonly target?: string | undefined;
  /** As they are where the call came to: the owner may have none for the tool. Absent where an older gateway passes it on. */
  readonly terms?: OutboxTerms | undefined;
  readonly call: CallFacts;
}

/** A call on its way to the owner. */
export interface CallToOwner {
  readonly call: AgentCall;
  readonly partition: number;
  readonly kind: string;
  readonly head: { readonly call: CallFacts };
  /** We own it by now. False where it is none of what is kept. */
  readonly here: () => boolean;
  /** It is none of what is kept. `mayBeKept`: another was asked before, did not answer, and may have kept it. */
  readonly notKept: (mayBeKept: boolean) => void;
  readonly givesBack: () => void;
  /** It was taken before under its key, and nobody can say whether that was written down. */
  readonly mayBeKept?: boolean | undefined;
}

interface TakenBefore {
  /** As it was, of the agent's or minted. */
  readonly key: string;
  readonly mayBeKept: boolean;
}

/** By its agent, while it was on its way. */
interface TakenBack {
  readonly pass: string;
  readonly reason: string | undefined;
}

/** The partition that a receipt's id names; undefined where it names none. */
export function partitionOfReceipt(id: string, count: number): number | undefined {
  const found = /^p(\d{1,4})_/.exec(id);
  const partition = Number(found?.[1]);
  return found !== null && partition < count ? partition : undefined;
}

export class SharedOutbox implements OutboxIntake, PartitionKeeper {
  readonly #options: SharedOutboxOptions;
  readonly #lookMs: number;
  readonly #open = new Map<number, OpenPartition>();
  /** Those that are being given away, until what is on its way has come back: nothing is begun there, and they are shown. */
  readonly #given = new Map<number, OpenPartition>();
  readonly #listeners = new Set<ChangeListener>();
  /** Calls of other gateways that are waited for, by the id of their pass. */
  readonly #passed = new Map<string, { readonly call: PassedCall; readonly answer: Promise<Uint8Array> }>();
  readonly #unanswer: (() => void)[];
  #mayDeliver = false;
  #telling = 0;
  #isOver = false;

  constructor(options: SharedOutboxOptions) {
    this.#options = options;
    this.#lookMs = options.lookMs ?? LOOK_MS;
    const { peers } = options;
    this.#unanswer = [
      peers.answer(PASS_TAKE, (_, body) => this.#onTake(body)),
      peers.answer(PASS_CANCEL, async (_, body) => {
        const [{ pass, reason }] = unframe<TakenBack>(body);
        this.#passed.get(pass)?.call.onCancel?.(reason);
        return frame({});
      }),
      peers.answer(PASS_CHANGED, async (_, body) => {
        const [{ principal, receipt }] = unframe<{ principal: string; receipt: Receipt }>(body);
        this.#tellHere(principal, receipt);
        return frame({});
      }),
    ];
  }

  // ---- the partitions

  async taken(partition: number, store: Store): Promise<void> {
    const mayAct = () => this.#options.partitions.mayAct(partition);
    const giveBack = (call: AgentCall, server: string) => {
      // Where it was passed on, that is told to the gateway which charged for it.
      if (call instanceof PassedCall) call.isGivenBack = true;
      else this.#options.giveBack(call, server);
    };
    const passOn: PartitionParts["passOn"] = (call, write, error) => {
      const { code } = error as { code?: string };
      // What it wrote last before it was frozen may have come through, and too much was written since to see that: the key says it.
      const mayBeKept = code === "unknown";
      // Else nothing was written. Who was frozen may have lost its connection too, and learns by that alone that another has it by now.
      if (code !== "fenced" && ((code !== "away" && !mayBeKept) || mayAct())) return false;
      if (call instanceof PassedCall) call.moved(mayBeKept);
      else void this.#takeAgain(call, write, mayBeKept);
      return true;
    };
    const one = this.#options.make({ store, idPrefix: `p${partition}_`, mayAct, giveBack, passOn });
    one.outbox.onChange((principal, receipt) => this.#changed(principal, receipt));
    this.#open.set(partition, one);
    if (this.#mayDeliver) one.outbox.start();
  }

  async lost(partition: number, isInTime = false): Promise<void> {
    const one = this.#open.get(partition);
    this.#open.delete(partition);
    if (one === undefined) return;
    one.outbox.stop();
    if (isInTime) this.#given.set(partition, one);
    // Whoever has it next would send what is on its way once more, or not know what became of it, and go on in its lane meanwhile.
    await one.outbox.drained(isInTime ? GIVING_MS : DRAIN_MS);
    await one.outbox.close();
    this.#given.delete(partition);
  }

  /** The outboxes that we own, to be read. */
  *here(): Iterable<OpenPartition> {
    for (const partition of this.#open.keys()) {
      const one = this.at(partition);
      if (one !== undefined) yield one;
    }
    const { partitions, self } = this.#options;
    for (const [partition, one] of this.#given) if (partitions.ownerOf(partition) === self) yield one;
  }

  /** Undefined where another owns it, or nobody does. */
  at(partition: number): OpenPartition | undefined {
    return this.#options.partitions.mayAct(partition) ? this.#open.get(partition) : undefined;
  }

  // ---- the gateway's

  start(): void {
    this.#mayDeliver = true;
    this.#options.partitions.run(this);
  }

  set limits(limits: OutboxLimits) {
    for (const { outbox } of this.#open.values()) outbox.lanes.room.limits = limits;
  }

  poke(server?: string): void {
    if (server !== undefined) this.#open.get(this.#options.partitions.of(server))?.outbox.poke(server);
    else for (const { outbox } of this.#open.values()) outbox.poke();
  }

  answers(server: string): void {
    this.#open.get(this.#options.partitions.of(server))?.outbox.answers(server);
  }

  /** Hands the partitions over. Calls that come meanwhile are passed to whoever has them. */
  async stop(drainMs: number): Promise<void> {
    await resultWithin(this.#options.partitions.release(), Math.max(drainMs, DRAIN_MS));
  }

  async close(): Promise<void> {
    this.#isOver = true;
    for (const end of this.#unanswer) end();
    await this.#options.partitions.release();
    await Promise.all([...this.#open.keys()].map((partition) => this.lost(partition)));
  }

  // ---- calls

  take(call: AgentCall, server: string, tool: OwnToolName, before?: TakenBefore): boolean {
    const partition = this.#options.partitions.of(server);
    const own = this.at(partition);
    if (own !== undefined)
      return own.outbox.take(call, server, tool, before === undefined ? {} : { minted: before.key });
    if (call.caller.beforeSend !== undefined || isAnswer(call.message)) return false;
    const minted = before?.key ?? randomBytes(16).toString("base64url");
    const { targetOf, termsOf } = this.#options;
    const [target, terms] = [targetOf?.(server), termsOf?.(server, tool)];
    const head: TakeHead = { server, tool, minted, target, terms, call: factsOf(call) };
    void this.pass({
      call,
      partition,
      kind: PASS_TAKE,
      head,
      here: () => this.at(partition)?.outbox.take(call, server, tool, { minted }) ?? false,
      notKept: (mayBeKept) => this.#notKept(call, server, tool, mayBeKept),
      givesBack: () => this.#options.giveBack(call, server),
      mayBeKept: before?.mayBeKept,
    });
    return true;
  }

  /** What may be kept is delivered by whoever keeps it: sent from here too, it would be done twice. */
  #notKept(call: AgentCall, server: string, tool: OwnToolName, mayBeKept: boolean): void {
    if (mayBeKept) call.reply(faultReply(new Fault("outcome-unknown", MAY_BE_KEPT)));
    else this.#options.deliver(call, server, tool);
  }

  /** It was taken here, and another had the partition before it was written down: this gateway was frozen, say. Never rejects. */
  async #takeAgain(call: AgentCall, { server, tool, key }: WriteFacts, mayBeKept: boolean): Promise<void> {
    const taken = { call, givesBack: () => this.#options.giveBack(call, server) };
    let isCancelled = false;
    call.onCancel = () => {
      isCancelled = true;
    };
    await this.#moved(this.#options.partitions.of(server), this.#lookMs);
    const here = () => {
      if (isCancelled) throw mayBeKept ? unknown("its agent took it back.") : notSentAnyMore(undefined);
      return this.take(call, server, tool, { key, mayBeKept });
    };
    const notKept = () => this.#notKept(call, server, tool, mayBeKept);
    this.#takeHere({ ...taken, here, notKept }, mayBeKept);
  }

  /** Passes a call to the owner of its partition, until it is answered or its time is over. Never rejects. */
  async pass(callToOwner: CallToOwner): Promise<void> {
    const { call, partition, kind, head } = callToOwner;
    const { partitions, clock, self, status } = this.#options;
    const body = frame(head);
    const untilMs = clock.now() + PASS_MS;
    let asked: string | undefined;
    let isAsked = callToOwner.mayBeKept === true;
    let isOver = false;
    let takenBack = undefined as TakenBack | undefined;
    const refuse = (fault: Fault) => {
      isOver = true;
      call.onCancel = undefined;
      if (!isAsked) callToOwner.givesBack();
      call.reply(faultReply(fault));
    };
    call.onCancel = (reason) => {
      takenBack = { pass: head.call.pass, reason };
      if (!isAsked) refuse(notSentAnyMore(reason));
      else void this.#tellTakenBack(asked, takenBack);
    };
    while (!isOver) {
      const leftMs = untilMs - clock.now();
      if (leftMs <= 0 || this.#isOver) break;
      // What was asked for and not answered may be kept: asked for again, it would be taken anew where it is not.
      if (takenBack !== undefined && !isAsked) return refuse(notSentAnyMore(takenBack.reason));
      if (takenBack !== undefined && status().state === "connected") {
        await this.#tellTakenBack(asked, takenBack);
        return refuse(unknown("its agent took it back before the gateway that it was passed to had answered."));
      }
      if (this.at(partition) !== undefined && takenBack === undefined) {
        call.onCancel = undefined;
        this.#takeHere(callToOwner, isAsked);
        return;
      }
      const absence = this.#absence();
      if (absence !== undefined) return refuse(isAsked ? unknown(absence) : notSent(absence));
      const owner = partitions.ownerOf(partition);
      let isInHand = owner !== undefined && owner !== self;
      if (owner !== undefined && isInHand && takenBack === undefined) {
        asked = owner;
        const wasAsked: boolean = isAsked;
        isAsked = true;
        try {
          const answer = decodeReply(await this.#ask(owner, partition, kind, body, leftMs));
          if (answer.kind === "replied") {
            call.onCancel = undefined;
            if (answer.isGivenBack && !wasAsked) callToOwner.givesBack();
            call.reply(answer.reply);
            return;
          }
          isAsked = wasAsked || (answer.kind === "not-owner" && answer.mayBeKept === true);
          if (answer.kind === "not-kept" && takenBack === undefined) {
            call.onCancel = undefined;
            attempt(call, () => callToOwner.notKept(wasAsked));
            return;
          }
          isInHand = false;
        } catch (error) {
          const { code } = error as PeerError;
          if (code === "away" || code === "busy" || code === "large") isAsked = wasAsked;
          if (code === "large") return refuse((isAsked ? unknown : notSent)(messageOf(error)));
          if (code !== "away" && code !== "busy" && code !== "late") {
            const text = `The gateway that keeps this server's writes could not take it: ${messageOf(error)}`;
            return refuse(new Fault("unavailable", text));
          }
          isInHand = code !== "away";
        }
      }
      // Who has it in hand has to be written down too: until there is room, or somebody leads the engine, nobody will.
      const { full, mute } = status();
      const why = full ?? mute?.why;
      if (!isInHand && why !== undefined) return refuse(isAsked ? unknown(why) : notSent(why));
      await this.#moved(partition, Math.min(leftMs, this.#lookMs));
    }
    if (isOver) return;
    const time = `${PASS_MS / 1000} s`;
    if (!isAsked) {
      return refuse(notSent(`no gateway had this server's writes in hand for ${time}. Call again.`));
    }
    refuse(unknown(`the gateway that keeps this server's writes did not answer for ${time}.`));
  }

  /** Resolves when it was heard, or could not be. Who does not have it has nothing to take back. */
  async #tellTakenBack(gateway: string | undefined, takenBack: TakenBack): Promise<void> {
    if (gateway === undefined) return;
    await this.#options.peers.ask(gateway, PASS_CANCEL, frame(takenBack), { timeoutMs: TELL_MS }).catch(() => {});
  }

  /** Given up, as `late`, where another owns it by then, and where we are cut off: an answer that is sent meanwhile does not come. */
  async #ask(owner: string, partition: number, kind: string, body: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
    const { partitions, peers, watch } = this.#options;
    const given = new AbortController();
    const unwatch = partitions.onChange((changed) => {
      if (changed === partition && partitions.ownerOf(partition) !== owner) given.abort();
    });
    const unwatchEngine = watch(({ state }) => {
      if (state !== "connected") given.abort();
    });
    try {
      return await peers.ask(owner, kind, body, { timeoutMs, signal: given.signal });
    } finally {
      unwatch();
      unwatchEngine();
    }
  }

  /** Runs what another gateway passed on; resolves with what goes back. One that is passed again is the same call. */
  run(facts: CallFacts, handle: (call: PassedCall) => boolean): Promise<Uint8Array> {
    const same = this.#passed.get(facts.pass);
    if (same !== undefined) return same.answer;
    let end = (_: Uint8Array | Promise<Uint8Array>) => {};
    const answer = new Promise<Uint8Array>((resolve) => {
      end = (given) => {
        this.#passed.delete(facts.pass);
        resolve(given);
      };
    });
    const call = new PassedCall(
      facts,
      (reply) => end(encodeReply(reply, call.isGivenBack)),
      (mayBeKept) => end(frame({ kind: "not-owner", mayBeKept })),
    );
    // Bounded by the questions that are answered at one time.
    this.#passed.set(facts.pass, { call, answer });
    try {
      if (!handle(call)) end(frame({ kind: "not-kept" }));
    } catch (error) {
      call.isGivenBack = true;
      call.reply({ kind: "error", error: toRpcError(error) });
    }
    return answer;
  }

  async #onTake(body: Uint8Array): Promise<Uint8Array> {
    const [{ server, tool, minted, target, terms, call }] = unframe<TakeHead>(body);
    const own = this.at(this.#options.partitions.of(server));
    if (own === undefined) return frame({ kind: "not-owner" });
    // It would be sent to another server than its agent called: whoever passed it on sends it, and nobody keeps it. Unless an owner
    // before us did, where the name meant the same.
    const isOther = target !== undefined && target !== this.#options.targetOf?.(server);
    return this.run(call, (passed) => own.outbox.take(passed, server, ownToolName(tool), { minted, isOther, terms }));
  }

  #takeHere(callToOwner: Pick<CallToOwner, "call" | "here" | "notKept" | "givesBack">, isAsked: boolean): void {
    const { call, here, notKept, givesBack } = callToOwner;
    try {
      if (!here()) notKept(isAsked);
    } catch (error) {
      // What may be kept has cost what it cost.
      if (!isAsked) givesBack();
      call.reply({ kind: "error", error: toRpcError(error), ...(error instanceof Fault ? { fault: error } : {}) });
    }
  }

  /** Why nobody will be asked, and when that may change; undefined while the engine is there, or may be back in a moment. */
  #absence(): string | undefined {
    const { status, clock } = this.#options;
    const { state, sinceMs, nextTryMs } = status();
    const nowMs = clock.now();
    if (state === "connected" || nowMs - sinceMs < AWAY_MS) return undefined;
    const what = "there is no connection to the engine that this server's writes are kept in.";
    if (nextTryMs === undefined) return what;
    return `${what} The next try to reach it is in ${waitText(nextTryMs - nowMs)}.`;
  }

  /** Resolves when the owner may be another, or after so long. Those that wait go on in the order in which they came. */
  #moved(partition: number, ms: number): Promise<void> {
    const { partitions } = this.#options;
    return toldWithin((told) => partitions.onChange((one) => one === partition && told()), ms);
  }

  // ---- what changes

  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tellHere(principal: string, receipt: Receipt): void {
    for (const listener of this.#listeners) listener(principal, receipt);
  }

  /** Its agent may be at any gateway. */
  #changed(principal: string, receipt: Receipt): void {
    this.#tellHere(principal, receipt);
    const { partitions, peers, self } = this.#options;
    const others = partitions.gateways().filter(({ gateway }) => gateway !== self);
    if (others.length === 0 || this.#telling + others.length > MAX_TELLING) return;
    const body = frame({ principal, receipt });
    for (const { gateway } of others) {
      this.#telling++;
      peers
        .ask(gateway, PASS_CHANGED, body, { timeoutMs: TELL_MS })
        .catch(() => {})
        .finally(() => this.#telling--);
    }
  }
}

/** `why` is a sentence, as all of these are. */
function notSent(why: string): Fault {
  return new Fault("unavailable", `Not sent, and not queued: ${why}`);
}

function notSentAnyMore(reason: string | undefined): Fault {
  return new Fault("cancelled", `${reason ?? "taken back by its agent"}. It was not sent.`);
}

/** Another gateway was asked to keep it, and nothing was heard of it since. */
function unknown(why: string): Fault {
  const text = `Whether it was queued is unknown: ${why} Ask for your receipts before you call again.`;
  return new Fault("outcome-unknown", text);
}

function attempt(call: AgentCall, send: () => void): void {
  try {
    send();
  } catch (error) {
    call.reply({ kind: "error", error: toRpcError(error), ...(error instanceof Fault ? { fault: error } : {}) });
  }
}
