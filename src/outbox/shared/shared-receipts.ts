// Receipts and the operator's verbs where several gateways keep writes: what is about one write or server is asked of the owner of
// its partition, and what is about all of them of every gateway.

import type { Caller } from "../../contracts/caller.js";
import type { GatewaySeen, Partitions } from "../../contracts/engine/partitions.js";
import { PeerError, type Peers } from "../../contracts/engine/peers.js";
import {
  type OutboxEntry,
  type OutboxFilter,
  type OutboxLane,
  type OutboxLanes,
  type OutboxOperator,
  type OutboxTotals,
  type OutboxView,
  RECEIPT_PLACE,
  RECEIPT_TOOL,
  RECEIPT_URI,
  type Receipt,
  type ReceiptHandler,
  type Receipts,
} from "../../contracts/outbox.js";
import type { AgentCall } from "../../contracts/service.js";
import { Fault } from "../../protocol/errors.js";
import { isObject } from "../../protocol/jsonrpc.js";
import { faultReply, type Reply } from "../../protocol/reply.js";
import { ExpectedError } from "../../runtime/expected-error.js";
import type { ChangeListener } from "../parts.js";
import type { LocalReceiptHandler, ReceiptHandlerOptions } from "../receipts.js";
import { type CallFacts, factsOf, frame, unframe } from "./passed-call.js";
import { type OpenPartition, partitionOfReceipt, type SharedOutbox } from "./shared-outbox.js";

/** What gateways of other versions call it, too. */
const PASS_RECEIPTS = "outbox.handler";
const PASS_OPERATOR = "outbox.operator";
/** Lists are read by people and agents who wait; a gateway that is slower is left out of a principal's, and named to the operator. */
const LIST_MS = 5_000;

class SharedOutboxError extends ExpectedError {
  override readonly name = "SharedOutboxError";
  override readonly kind = "failed";
}

interface SharedReceiptsOptions {
  readonly outbox: SharedOutbox;
  readonly partitions: Partitions;
  readonly peers: Peers;
  readonly self: string;
  /** The partition of a receipt whose id names none: one that was given on a disk, before that was moved into the engine. */
  readonly movedTo: (id: string) => number | undefined;
}

function partitionIn({ partitions, movedTo }: SharedReceiptsOptions, id: string): number | undefined {
  return partitionOfReceipt(id, partitions.count) ?? movedTo(id);
}

type Verb = "list" | "show" | "lanes" | "retry" | "drop" | "hold" | "release" | "resolve" | "of";

/** What may be asked of every gateway's writes. What is said of a promise is of the others'. */
export class SharedReceipts implements Receipts, OutboxOperator {
  readonly #options: SharedReceiptsOptions;

  constructor(options: SharedReceiptsOptions) {
    this.#options = options;
    options.peers.answer(PASS_OPERATOR, async (_, body) => {
      const [{ verb, args, partition }] = unframe<{ verb: Verb; args: unknown[]; partition?: number }>(body);
      const own = partition === undefined ? undefined : options.outbox.at(partition);
      if (partition !== undefined && own === undefined) throw new Error("Another gateway has it by now: try again.");
      if (own !== undefined) return frame({ done: await this.#by(own, verb, args) });
      // A gateway that does not know it says no number, and has all of them.
      if (verb === "lanes" && typeof args[0] === "number") return frame(this.#lanesHere(args[0]));
      return frame({ done: this.#here(verb, args) });
    });
  }

  // ---- of a principal

  /** Of what we own; what others own is asked of them by the handler. */
  get(principal: string, id: string): Receipt | undefined {
    return this.#ownerHere(id)?.operations.get(principal, id);
  }

  async of(principal: string, limit: number): Promise<readonly Receipt[]> {
    const { found } = await this.#everywhere<Receipt>("of", [principal, limit]);
    return found.sort((a, b) => b.takenMs - a.takenMs).slice(0, limit);
  }

  async cancel(principal: string, id: string): Promise<Receipt | undefined> {
    return this.#ownerHere(id)?.operations.cancel(principal, id);
  }

  onChange(listener: ChangeListener): () => void {
    return this.#options.outbox.onChange(listener);
  }

  // ---- of the operator

  get own(): OutboxView {
    return {
      list: (filter) => this.#here("list", [filter]) as OutboxEntry[],
      lanes: () => this.#here("lanes", []) as OutboxLane[],
    };
  }

  async list(filter: OutboxFilter): Promise<readonly OutboxEntry[]> {
    const { found, missing } = await this.#everywhere<OutboxEntry>("list", [filter]);
    demandAll(missing);
    return found.sort((a, b) => b.takenMs - a.takenMs).slice(0, filter.limit);
  }

  async firstLanes(max: number): Promise<OutboxLanes> {
    const { found, missing, more } = await this.#everywhere<OutboxLane>("lanes", [max]);
    demandAll(missing);
    const lanes = found.slice(0, max);
    return { lanes, more: more + found.length - lanes.length };
  }

  /** Of what this gateway owns: others say their own. */
  totals(maxHeld: number): OutboxTotals {
    let [waiting, unknown, heldCount] = [0, 0, 0];
    let [oldestMs, unknownMs]: (number | undefined)[] = [];
    const held: OutboxLane[] = [];
    for (const { operations } of this.#options.outbox.here()) {
      const one = operations.totals(maxHeld);
      waiting += one.waiting;
      unknown += one.unknown;
      heldCount += one.heldCount;
      held.push(...one.held);
      oldestMs = earlier(oldestMs, one.oldestMs);
      unknownMs = earlier(unknownMs, one.unknownMs);
    }
    return { waiting, oldestMs, unknown, unknownMs, heldCount, held: held.slice(0, maxHeld) };
  }

  async show(id: string): Promise<OutboxEntry | undefined> {
    if (partitionIn(this.#options, id) === undefined) return undefined;
    return (await this.#ofWrite("show", id)) as OutboxEntry | undefined;
  }

  async retry(id: string): Promise<OutboxEntry> {
    return (await this.#ofWrite("retry", id)) as OutboxEntry;
  }

  async drop(id: string): Promise<OutboxEntry> {
    return (await this.#ofWrite("drop", id)) as OutboxEntry;
  }

  async resolve(id: string, as: "done" | "failed" | "again"): Promise<OutboxEntry> {
    return (await this.#ofWrite("resolve", id, as)) as OutboxEntry;
  }

  async hold(server: string, lane: string | undefined): Promise<number> {
    return (await this.#atOwner(this.#options.partitions.of(server), "hold", [server, lane])) as number;
  }

  async release(server: string, lane: string | undefined): Promise<number> {
    return (await this.#atOwner(this.#options.partitions.of(server), "release", [server, lane])) as number;
  }

  #ownerHere(id: string): OpenPartition | undefined {
    const partition = partitionIn(this.#options, id);
    return partition === undefined ? undefined : this.#options.outbox.at(partition);
  }

  #ofWrite(verb: Verb, id: string, ...more: unknown[]): Promise<unknown> {
    const partition = partitionIn(this.#options, id);
    if (partition === undefined) throw new SharedOutboxError(`There is no receipt ${id} (\`toolway outbox list\`).`);
    return this.#atOwner(partition, verb, [id, ...more]);
  }

  async #atOwner(partition: number, verb: Verb, args: unknown[]): Promise<unknown> {
    const { outbox, partitions, peers } = this.#options;
    const own = outbox.at(partition);
    if (own !== undefined) return this.#by(own, verb, args);
    const owner = partitions.ownerOf(partition);
    if (owner === undefined)
      throw new SharedOutboxError("No gateway has it in hand just now: try again in some seconds.");
    try {
      const body = await peers.ask(owner, PASS_OPERATOR, frame({ verb, args, partition }), { timeoutMs: LIST_MS });
      return unframe<{ done?: unknown }>(body)[0].done;
    } catch (error) {
      throw error instanceof PeerError ? new SharedOutboxError(error.message) : error;
    }
  }

  async #by({ operations }: OpenPartition, verb: Verb, args: unknown[]): Promise<unknown> {
    const [first, second] = args as [string, string];
    switch (verb) {
      case "show":
        return operations.show(first);
      case "retry":
        return operations.retry(first);
      case "drop":
        return operations.drop(first);
      case "hold":
        return operations.hold(first, second ?? undefined);
      case "release":
        return operations.release(first, second ?? undefined);
      case "resolve":
        return operations.resolve(first, second as "done");
      default:
        throw new SharedOutboxError(`A gateway of another version asked for "${verb}".`);
    }
  }

  /** Of all that we own. */
  #here(verb: Verb, args: unknown[]): unknown[] {
    const found: unknown[] = [];
    for (const { operations } of this.#options.outbox.here()) {
      if (verb === "of") found.push(...operations.of(args[0] as string, args[1] as number));
      else if (verb === "lanes") found.push(...operations.lanes());
      else found.push(...operations.list(args[0] as OutboxFilter));
    }
    return found;
  }

  #lanesHere(max: number): { readonly done: OutboxLane[]; readonly more: number } {
    const done: OutboxLane[] = [];
    let all = 0;
    for (const { operations } of this.#options.outbox.here()) {
      const { lanes, more } = operations.firstLanes(max - done.length);
      done.push(...lanes);
      all += more;
    }
    return { done, more: all };
  }

  /** `more`: beside those that were found, where a number bounds them. */
  async #everywhere<T>(verb: Verb, args: unknown[]): Promise<{ found: T[]; missing: string[]; more: number }> {
    const { partitions, peers, self } = this.#options;
    const own = verb === "lanes" ? this.#lanesHere(args[0] as number) : { done: this.#here(verb, args), more: 0 };
    const found = own.done as T[];
    let { more } = own;
    const missing: string[] = [];
    const others = partitions.gateways().filter(({ gateway }: GatewaySeen) => gateway !== self);
    await Promise.all(
      others.map(async ({ gateway, partitions: held }) => {
        try {
          const body = await peers.ask(gateway, PASS_OPERATOR, frame({ verb, args }), { timeoutMs: LIST_MS });
          const [answer] = unframe<{ done: T[]; more?: number }>(body);
          found.push(...answer.done);
          more += answer.more ?? 0;
        } catch {
          if (held > 0) missing.push(gateway);
        }
      }),
    );
    return { found, missing, more };
  }
}

function demandAll(missing: readonly string[]): void {
  if (missing.length === 0) return;
  const [one] = missing;
  throw new SharedOutboxError(
    `Gateway ${one} did not answer, and keeps writes of its own: try again in some seconds, when another has taken over.`,
  );
}

type SharedReceiptHandlerParts = Pick<ReceiptHandlerOptions, "hasOutbox" | "keyOf" | "taskIds" | "subscribers">;

/** Where agents ask after writes that any of several gateways keeps. */
export class SharedReceiptHandler implements ReceiptHandler {
  readonly #local: LocalReceiptHandler;
  readonly #options: SharedReceiptsOptions;
  readonly #parts: SharedReceiptHandlerParts;

  constructor(local: LocalReceiptHandler, options: SharedReceiptsOptions, parts: SharedReceiptHandlerParts) {
    this.#local = local;
    this.#options = options;
    this.#parts = parts;
    options.peers.answer(PASS_RECEIPTS, async (_, body) => {
      const [{ call, partition }] = unframe<{ call: CallFacts; partition: number }>(body);
      if (options.outbox.at(partition) === undefined) return frame({ kind: "not-owner" });
      return options.outbox.run(call, (passed) => this.#local.handle(passed));
    });
  }

  handle(call: AgentCall): boolean {
    const partition = this.#partitionOf(call);
    if (partition === undefined || this.#options.outbox.at(partition) !== undefined) return this.#local.handle(call);
    const { method, params } = call.message;
    if (method === "resources/subscribe") void this.#subscribe(call, String(params?.["uri"]), partition);
    else if (method === "resources/unsubscribe") return this.#local.handle(call);
    else this.#pass(call, partition);
    return true;
  }

  taken(caller: Caller, receipt: Receipt): Reply {
    return this.#local.taken(caller, receipt);
  }

  withNews(caller: Caller, reply: Reply): Reply {
    return this.#local.withNews(caller, reply);
  }

  /** Undefined where the call is about no receipt, or about all of them. */
  #partitionOf({ message: { method, params }, scope, caller }: AgentCall): number | undefined {
    const { hasOutbox, keyOf, taskIds } = this.#parts;
    const { partitions } = this.#options;
    const ofReceipt = (id: unknown) =>
      typeof id === "string" && hasOutbox(scope) ? partitionIn(this.#options, id) : undefined;
    switch (method) {
      case "tools/call": {
        const args = params?.["arguments"];
        return params?.["name"] === RECEIPT_TOOL && isObject(args) ? ofReceipt(args["id"]) : undefined;
      }
      case "resources/read":
      case "resources/subscribe":
      case "resources/unsubscribe": {
        const uri = params?.["uri"];
        return typeof uri === "string" && uri.startsWith(RECEIPT_URI)
          ? ofReceipt(uri.slice(RECEIPT_URI.length))
          : undefined;
      }
      case "tasks/get":
      case "tasks/cancel":
      case "tasks/update": {
        const id = params?.["taskId"];
        if (caller.era !== "modern" || typeof id !== "string") return undefined;
        const task = taskIds.open(id, keyOf(caller.principal));
        return task?.place === RECEIPT_PLACE ? partitions.of(task.server) : undefined;
      }
      default:
        return undefined;
    }
  }

  #pass(call: AgentCall, partition: number, facts: CallFacts = factsOf(call), answered = call): void {
    const here = () => this.#local.handle(call);
    const notKept = () => {
      here();
    };
    const head = { call: facts, partition };
    const callToOwner = { call: answered, partition, kind: PASS_RECEIPTS, head, here, notKept, givesBack: () => {} };
    void this.#options.outbox.pass(callToOwner);
  }

  /** The owner says whether there is such a receipt; what changes of it is told to all, so that we tell the session. */
  async #subscribe(call: AgentCall, uri: string, partition: number): Promise<void> {
    const read = { jsonrpc: "2.0", id: 0, method: "resources/read", params: { uri } };
    const facts = { ...factsOf(call), text: JSON.stringify(read) };
    const reply = await new Promise<Reply>((resolve) => {
      const asked: AgentCall = {
        caller: call.caller,
        message: call.message,
        scope: call.scope,
        onCancel: undefined,
        reply: resolve,
      };
      this.#pass(call, partition, facts, asked);
    });
    if (reply.kind === "error") {
      call.reply(reply);
      return;
    }
    const kept = this.#parts.subscribers.subscribe(call.caller.sessionKey, uri);
    call.reply(kept instanceof Fault ? faultReply(kept) : { kind: "result", result: {} });
  }
}

function earlier(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}
