// The gateway's outbox: keeps writes in the state while the config names tools for it, or some are left from before. Its
// parts are loaded with the first of either. What may still be delivered is asked here, of all who have a say.

import type { Catalog } from "../../catalog/catalog.js";
import type { GatewayEngine } from "../../contracts/engine/engine.js";
import type { OwnToolName } from "../../contracts/names.js";
import {
  type OutboxIntake,
  type OutboxLimits,
  type OutboxOperator,
  type OutboxTerms,
  RECEIPT_PLACE,
  RECEIPT_TOOL,
  RECEIPT_URI,
  type ReceiptHandler,
  type WriteEnded,
} from "../../contracts/outbox.js";
import type { Target } from "../../contracts/server-spec.js";
import type { Servers } from "../../contracts/servers.js";
import type { AgentCall } from "../../contracts/service.js";
import type { Log } from "../../observe/log.js";
import type { WriteFacts } from "../../outbox/lanes/write.js";
import type { DeliveryVerdict, OutboxParts } from "../../outbox/parts.js";
import type { LocalReceiptHandler, ReceiptHandlerOptions } from "../../outbox/receipts.js";
import { OPERATOR } from "../../pipeline/access.js";
import type { Pipeline } from "../../pipeline/pipeline.js";
import { hashText } from "../../protocol/canonical.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import { systemClock } from "../../runtime/clock.js";
import { serverIdentity } from "../state/server-identity.js";
import type { GatewayState } from "../state/state.js";

interface OutboxConfig {
  readonly servers: readonly {
    readonly name: string;
    readonly outbox?: ReadonlyMap<OwnToolName, OutboxTerms> | undefined;
    readonly target?: Target | undefined;
  }[];
  readonly outbox: OutboxLimits;
}

interface GatewayOutboxParts {
  readonly state: GatewayState;
  readonly log: Log;
  readonly pipeline: Pipeline;
  readonly catalog: Catalog;
  readonly servers: () => Servers;
  /** A call that goes out without its agent, for what is told of it. */
  readonly observed: (call: AgentCall, server: string, tool: OwnToolName) => AgentCall;
  /** It has no servers, and never will: others keep the writes. */
  readonly isBroker: boolean;
  readonly ended?: WriteEnded;
}

export type OutboxModule = typeof import("../../outbox/index.js");

/** The outbox of this gateway alone, or of several. */
interface RunningOutbox extends OutboxIntake {
  start(): void;
  poke(server?: string): void;
  answers(server: string): void;
  limits: OutboxLimits;
  /** Deliveries end; what is under way is waited for, for so long. */
  stop(drainMs: number): Promise<void>;
  close(): Promise<void>;
}

/** What is loaded. */
export interface OpenOutbox {
  readonly outbox: RunningOutbox;
  readonly operator: OutboxOperator;
  readonly handler: LocalReceiptHandler;
  /** Where agents ask: the same, or what asks those of other gateways too. */
  readonly receipts: ReceiptHandler;
}

export class GatewayOutbox implements OutboxIntake {
  readonly #parts: GatewayOutboxParts;
  #terms: ReadonlyMap<string, ReadonlyMap<OwnToolName, OutboxTerms>> = new Map();
  /** Which servers the names of the config mean: writes go to no other. */
  #targets: ReadonlyMap<string, string> = new Map();
  /** By server. */
  #credentials: ReadonlyMap<string, string> = new Map();
  #limits: OutboxLimits = { maxWrites: 0, maxBytes: 0 };
  #opening: Promise<OpenOutbox> | undefined;
  #open: OpenOutbox | undefined;
  #mayDeliver = false;
  #isStopped = false;

  constructor(parts: GatewayOutboxParts) {
    this.#parts = parts;
  }

  /** Undefined where no tool is named for it and nothing is left from before, and while it is being opened. */
  get operator(): OutboxOperator | undefined {
    return this.#open?.operator;
  }

  /** What the config says of it now. What is queued stays as it was queued. */
  apply({ servers, outbox: limits }: OutboxConfig): void {
    const { state, log, pipeline, isBroker } = this.#parts;
    this.#limits = limits;
    this.#terms = new Map(servers.flatMap(({ name, outbox }) => (outbox === undefined ? [] : [[name, outbox]])));
    this.#targets = new Map(
      servers.flatMap(({ name, target }) => (target === undefined ? [] : [[name, serverIdentity(target)]])),
    );
    this.#credentials = new Map(servers.flatMap(({ name, target }) => sharedCredential(name, target)));
    if (state.store === undefined && state.engine === undefined) {
      if (this.#terms.size > 0) log.warn("without a state directory no call is kept: the outbox is off");
      return;
    }
    pipeline.sender.outbox = this.#terms.size > 0 ? this : undefined;
    let isLeft = this.#opening === undefined && state.store?.map("outbox").entries({ limit: 1 }).next().done === false;
    if (isLeft && state.engine !== undefined) {
      isLeft = false;
      if (!state.isMovedAway) {
        log.warn(
          "calls are kept on this machine's disk from before it had an engine, and are not delivered: stop it and move them with `toolway state move --to engine`",
        );
      }
    }
    // On an engine every gateway takes its share of what all of them keep, whatever its own config says.
    if (this.#terms.size > 0 || isLeft || (state.engine !== undefined && !isBroker)) {
      this.#opened().catch((error: unknown) => log.error("the outbox could not be opened: no call is kept", { error }));
    }
    if (this.#open === undefined) return;
    this.#open.outbox.limits = limits;
    this.#open.outbox.poke();
  }

  /** The servers are started: what is queued may go. */
  start(): void {
    this.#mayDeliver = true;
    this.#open?.outbox.start();
  }

  /** Something changed at a server: it is up, or a tool of it was accepted. */
  poke(server: string): void {
    this.#open?.outbox.poke(server);
  }

  /** The server answers calls again that found something wrong with it before. Not in the turn of the answer itself. */
  answers(server: string): void {
    if (this.#open !== undefined) queueMicrotask(() => this.#open?.outbox.answers(server));
  }

  take(call: AgentCall, server: string, tool: OwnToolName): boolean {
    // What the program and the operator do by hand is answered by the server or not at all.
    if (call.caller.principal === OPERATOR || this.#terms.get(server)?.get(tool) === undefined) return false;
    if (this.#open !== undefined) return this.#open.outbox.take(call, server, tool);
    const { sender } = this.#parts.pipeline;
    void this.#whenOpen(
      call,
      ({ outbox }) => {
        if (!outbox.take(call, server, tool)) sender.deliver(call, server, tool);
      },
      () => sender.giveBack(call, server),
    );
    return true;
  }

  /** True for a question about receipts: it waits until the outbox is open. */
  #askLate(call: AgentCall): boolean {
    if (!this.#asksAfterReceipt(call)) return false;
    void this.#whenOpen(call, ({ receipts }) => {
      if (!receipts.handle(call)) throw new Fault("not-found", "There is no such receipt.");
    });
    return true;
  }

  /** By the method, as whoever answers it goes: a call of another one may have members of the same names. */
  #asksAfterReceipt({ caller, scope, message: { method, params } }: AgentCall): boolean {
    const { hasOutbox, taskIds, keyOf } = this.#handlerParts();
    const { name, uri, taskId } = params ?? {};
    switch (method) {
      case "tools/call":
        return name === RECEIPT_TOOL && hasOutbox(scope);
      case "resources/read":
      case "resources/subscribe":
      case "resources/unsubscribe":
        return typeof uri === "string" && uri.startsWith(RECEIPT_URI) && hasOutbox(scope);
      case "tasks/get":
      case "tasks/cancel":
      case "tasks/update":
        if (caller.era !== "modern" || typeof taskId !== "string") return false;
        return taskIds.open(taskId, keyOf(caller.principal))?.place === RECEIPT_PLACE;
      default:
        return false;
    }
  }

  /** Never rejects. */
  async #whenOpen(call: AgentCall, act: (open: OpenOutbox) => void, refused = () => {}): Promise<void> {
    let isCancelled = false;
    call.onCancel = () => {
      isCancelled = true;
    };
    try {
      const open = await this.#opened();
      if (isCancelled) throw new Fault("cancelled", "Taken back by its agent. It was not sent.");
      call.onCancel = undefined;
      act(open);
    } catch (error) {
      refused();
      refuse(call, error);
    }
  }

  /** Deliveries end first; agents that wait get their results or receipts. */
  async stop(drainMs: number): Promise<void> {
    this.#isStopped = true;
    await this.#open?.outbox.stop(drainMs);
  }

  /** One that is still being opened is waited for: it reads from a store that is closed after this. */
  async close(): Promise<void> {
    this.#isStopped = true;
    const open = await this.#opening?.catch(() => undefined);
    open?.handler.close();
    await open?.outbox.close();
  }

  #opened(): Promise<OpenOutbox> {
    if (this.#opening === undefined) {
      this.#opening = this.#load();
      // A gateway listens before it has read what it keeps, and its agents come back to it at once.
      this.#parts.pipeline.receipts = { handle: (call) => this.#askLate(call) };
    }
    return this.#opening;
  }

  async #load(): Promise<OpenOutbox> {
    const { state } = this.#parts;
    const { LocalReceiptHandler, Outbox, OutboxOperations } = await import("../../outbox/index.js");
    const loaded = { LocalReceiptHandler, Outbox, OutboxOperations };
    const open = state.engine === undefined ? this.#loadOwn(loaded) : await this.#loadShared(loaded, state.engine);
    this.#parts.pipeline.receipts = open.receipts;
    this.#open = open;
    if (this.#mayDeliver && !this.#isStopped) open.outbox.start();
    return open;
  }

  #loadOwn({ LocalReceiptHandler, Outbox, OutboxOperations }: OutboxModule): OpenOutbox {
    const { state, pipeline } = this.#parts;
    if (state.store === undefined) throw new Fault("unavailable", "Without a state directory no call is kept.");
    const giveBack = (call: AgentCall, server: string) => pipeline.sender.giveBack(call, server);
    const outbox = new Outbox({ ...this.#partsOf(() => handler), store: state.store, giveBack });
    const operator = new OutboxOperations(outbox, systemClock);
    const handler = new LocalReceiptHandler({ ...this.#handlerParts(), receipts: operator });
    const running: RunningOutbox = {
      take: (call, server, tool) => outbox.take(call, server, tool),
      start: () => outbox.start(),
      poke: (server) => outbox.poke(server),
      answers: (server) => outbox.answers(server),
      set limits(limits: OutboxLimits) {
        outbox.lanes.room.limits = limits;
      },
      async stop(drainMs) {
        outbox.stop();
        await outbox.drained(drainMs);
      },
      close: () => outbox.close(),
    };
    return { outbox: running, operator, handler, receipts: handler };
  }

  async #loadShared(loaded: OutboxModule, engine: GatewayEngine): Promise<OpenOutbox> {
    const { pipeline } = this.#parts;
    // Loaded by those alone who share one.
    const { openSharedOutbox } = await import("./shared-outbox.js");
    return openSharedOutbox(loaded, engine, {
      parts: (handler) => this.#partsOf(handler),
      limits: () => this.#limits,
      handlerParts: this.#handlerParts(),
      giveBack: (call, server) => pipeline.sender.giveBack(call, server),
    });
  }

  #partsOf(handler: () => LocalReceiptHandler): Omit<OutboxParts, "store" | "giveBack"> {
    const { state, log, pipeline } = this.#parts;
    return {
      clock: systemClock,
      random: Math.random,
      limits: this.#limits,
      terms: (server, tool) => this.#terms.get(server)?.get(tool),
      send: (call, server, tool) => pipeline.sender.deliver(this.#parts.observed(call, server, tool), server, tool),
      judge: (facts) => this.#judge(facts),
      targetOf: (server) => this.#targets.get(server),
      journalOf: (server) => this.#journalOf(server),
      credentialOf: (server) => this.#credentials.get(server),
      pace: (server, chargedMs, nowMs) => pipeline.sender.budgets?.pace(server, chargedMs, nowMs) ?? 0,
      hasToken: (principal) => state.tokens.has(principal),
      receiptReply: ({ caller, notes }, receipt) => {
        if (notes !== undefined) notes.receipt = receipt.id;
        return handler().taken(caller, receipt);
      },
      resultReply: ({ caller }, reply) => handler().withNews(caller, reply),
      log: (level, text) => log[level](text),
      ended: this.#parts.ended,
    };
  }

  #handlerParts(): Omit<ReceiptHandlerOptions, "receipts"> {
    const { state, pipeline, catalog } = this.#parts;
    return {
      keyOf: (principal) => (principal === OPERATOR ? "" : principal.id),
      hasOutbox: (scope) => catalog.hasOutbox(scope),
      tells: (server, tool) => this.#terms.get(server)?.get(tool)?.tells ?? false,
      subscribers: pipeline.sessions.ours,
      taskIds: state.taskIds,
      wall: systemClock.wall,
    };
  }

  #journalOf(server: string): string | undefined {
    for (const { journal } of this.#parts.servers().get(server)?.connections ?? []) return journal;
    return undefined;
  }

  /**
   * Policy once more, by the role that its principal has now; of one without a token, as a run that is over, by the one
   * that it had. Menus are not asked, since they narrow what is begun.
   */
  #judge({ principal: taken, server, tool, byToken }: WriteFacts): DeliveryVerdict {
    const { access } = this.#parts.pipeline;
    const { tokens } = this.#parts.state;
    const role = byToken === true ? tokens.roleOf(taken.id) : undefined;
    const principal = role === undefined ? taken : { id: taken.id, role };
    if (this.#parts.servers().get(server) === undefined) {
      return { kind: "denied", why: `Server "${server}" is not in the config any more, or disabled there.` };
    }
    const decision = access.decideUnderWay(principal, server, tool);
    if (decision.kind === "deny") return { kind: "denied", why: `You may not use tool "${tool}": ${decision.rule}.` };
    if (byToken === true && !tokens.has(principal.id)) {
      return { kind: "revoked", why: `the token of "${principal.id}" was revoked` };
    }
    const quarantined = access.quarantined(server, tool);
    return quarantined === undefined ? undefined : { kind: "quarantine", why: quarantined.message };
  }
}

/** Entries that name one source of a token, or have one in their headers, share it. A login by OAuth is each entry's own. */
function sharedCredential(name: string, target: Target | undefined): [server: string, credential: string][] {
  if (target === undefined || (target.kind !== "http" && target.kind !== "sse")) return [];
  const { auth, headers } = target;
  if (auth !== undefined && auth.from !== "oauth" && auth.from !== "clientCredentials") {
    return [[name, JSON.stringify(auth)]];
  }
  const said = Object.entries(headers).find(([key]) => key.toLowerCase() === "authorization");
  return auth !== undefined || said === undefined ? [] : [[name, hashText(said[1])]];
}

function refuse(call: AgentCall, error: unknown): void {
  call.reply({ kind: "error", error: toRpcError(error), ...(error instanceof Fault ? { fault: error } : {}) });
}
