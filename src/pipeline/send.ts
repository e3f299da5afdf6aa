// The second half of a call's way, once its server is known: roles, guard and pins, budget, outbox, cache, upstream. Which server
// it is was the catalog's to say (pipeline.ts).

import type { Cache } from "../cache/cache.js";
import type { Caller } from "../contracts/caller.js";
import type { WindowAsked } from "../contracts/engine/budgets.js";
import type { OwnToolName } from "../contracts/names.js";
import type { OutboxIntake } from "../contracts/outbox.js";
import type { ServerHandle, Servers } from "../contracts/servers.js";
import type { AgentCall, LoginHandler } from "../contracts/service.js";
import type { Upstream } from "../contracts/upstream.js";
import { type Budgets, budgetFault, isCharged } from "../policy/budget.js";
import { Fault } from "../protocol/errors.js";
import type { ParamHeader } from "../protocol/param-headers.js";
import type { Reply } from "../protocol/reply.js";
import { type Access, countRefusal, OPERATOR } from "./access.js";
import type { AgentNotifications } from "./agent-notifications.js";
import { type Destination, Forward, judgedTool, type SecondJudge } from "./forward.js";
import { LegacyOutput } from "./legacy-output.js";
import { NAME } from "./name-at.js";
import { concernsTasks, TASK_METHODS, type Tasks } from "./tasks.js";

export interface SenderDeps {
  readonly access: Access;
  readonly sessions: AgentNotifications;
  readonly cache: Cache;
  readonly tasks: Tasks;
  readonly now: () => number;
  /** What the schema of a tool wants in the headers of a modern call. */
  readonly paramHeaders: (server: string, tool: OwnToolName) => readonly ParamHeader[];
  /** Whether legacy agents are told that the tool's structured output is wrapped. */
  readonly wrapsOutput: (server: string, tool: OwnToolName) => boolean;
  readonly servers: () => Servers;
  /** Answers a call that goes no further; what was not foreseen is logged, too. */
  readonly refuse: (call: AgentCall, error: unknown) => void;
}

export class Sender implements SecondJudge {
  readonly #deps: SenderDeps;
  /** Undefined where nobody has one. */
  budgets: Budgets | undefined;
  /** Undefined where no tool's calls are kept. */
  outbox: OutboxIntake | undefined;
  /** Undefined where no agent is asked to log in. */
  logins: LoginHandler | undefined;
  /** Judges calls that no agent waits for, and those that are made again after a login. */
  readonly #withoutLogin: SecondJudge = {
    refusal: (call, to) => this.refusal(call, to),
    refund: (call, to, chargedMs) => this.refund(call, to, chargedMs),
  };

  constructor(deps: SenderDeps) {
    this.#deps = deps;
  }

  /** Throws a Fault where the call is refused. */
  send(call: AgentCall, to: Destination): void {
    const { access, tasks } = this.#deps;
    const { server, tool } = to;
    call.notes?.reaches(server, tool);
    const { principal } = call.caller;
    const { tally } = principal;
    if (tally !== undefined && tool !== undefined) tally.calls++;
    // A task was begun before: its agent can see to it whatever menus hide by now.
    if (TASK_METHODS.has(call.message.method)) access.demandUnderWay(principal, server, tool);
    else access.demand(principal, server, tool);
    if (tool !== undefined && call.caller.era === "modern") {
      const error = call.headerMismatch?.(this.#deps.paramHeaders(server, tool));
      if (error !== undefined) {
        call.reply({ kind: "error", error });
        return;
      }
    }
    const judged = judgedTool(call, to);
    if (judged !== undefined) access.demandPinned(server, judged);
    const hosted = this.#deps.servers().get(server);
    if (hosted === undefined) throw new Fault("unavailable", `Server "${server}" is no longer in the config.`);
    const refusal = concernsTasks(call) || call.caller.era === "modern" ? tasks.refusal(call, hosted, tool) : undefined;
    if (refusal !== undefined) {
      call.reply({ kind: "error", error: refusal });
      return;
    }
    const chargedMs = this.#charge(call, server);
    if (typeof chargedMs === "object") void this.#sendWhenCharged(chargedMs, call, to);
    else this.#sendCharged(call, to, hosted, chargedMs);
  }

  /** Its budget is being asked for. Never rejects. */
  async #sendWhenCharged(asked: WindowAsked, call: AgentCall, to: Destination): Promise<void> {
    let isCancelled = false;
    call.onCancel = () => {
      isCancelled = true;
    };
    try {
      let charged: WindowAsked | number | undefined = asked;
      while (typeof charged === "object") {
        await charged.answered;
        if (isCancelled) throw new Fault("cancelled", `${call.message.method} was taken back. Not run.`);
        charged = this.#charge(call, to.server);
      }
      const hosted = this.#deps.servers().get(to.server);
      // What it was judged by may be old by now.
      const refusal =
        hosted === undefined
          ? new Fault("unavailable", `Server "${to.server}" is no longer in the config.`)
          : this.refusal(call, to);
      if (hosted === undefined || refusal !== undefined) {
        this.refund(call, to, charged);
        throw refusal;
      }
      this.#sendCharged(call, to, hosted, charged);
    } catch (error) {
      this.#deps.refuse(call, error);
    }
  }

  #sendCharged(call: AgentCall, to: Destination, hosted: ServerHandle, chargedMs: number | undefined): void {
    const { cache, tasks } = this.#deps;
    const { server, tool } = to;
    const { notes } = call;
    const concerns = concernsTasks(call);
    const watched = this.#asLegacy(concerns ? tasks.watch(call, hosted, tool) : call, to, hosted);
    if (this.outbox !== undefined && tool !== undefined && this.#keeps(this.outbox, watched, to, chargedMs)) return;
    if (!cache.covers(server, call.message.method, tool, hosted.intro?.era === "modern")) {
      this.#forward(watched, to, hosted, chargedMs);
      return;
    }
    // A hit is answered before handle() returns, and the record is made with it.
    if (notes !== undefined) notes.cache = "hit";
    const outcome = cache.handle(watched, server, tool, this.#ownerOf(call.caller, hosted), (one) => {
      if (notes !== undefined) notes.cache = "miss";
      // It may have waited for another's reply, which a change of the tool refused.
      const refusal = this.refusal(one, to);
      if (refusal !== undefined) {
        this.refund(one, to, chargedMs);
        throw refusal;
      }
      this.#forward(one, to, hosted, chargedMs);
    });
    if (outcome === "hit") return;
    if (notes === undefined) return;
    notes.cache = outcome === "bypass" ? "off" : outcome;
    // It waits for the reply to another call.
    if (outcome === "coalesced") notes.enter("server");
  }

  /** A call that its agent itself wants as a task of the server goes its way. */
  #keeps(outbox: OutboxIntake, call: AgentCall, to: Destination, chargedMs: number | undefined): boolean {
    const { method, params } = call.message;
    const { server, tool } = to;
    if (tool === undefined || method !== "tools/call" || params?.["task"] !== undefined) return false;
    try {
      if (!outbox.take(call, server, tool)) return false;
      call.notes?.enter("queued");
      return true;
    } catch (error) {
      this.refund(call, to, chargedMs);
      throw error;
    }
  }

  /** Gives back what was charged for a call that was taken just now, and is not sent after all. */
  giveBack(call: AgentCall, server: string): void {
    this.budgets?.refund(call.caller.principal, server, this.#deps.now(), this.#deps.now());
  }

  /** Sends what was let through before, under the server's own name of the tool. Throws a Fault. */
  deliver(call: AgentCall, server: string, tool: OwnToolName): void {
    this.#forwardJudged(call, { server, tool, subject: tool, named: { path: NAME, own: tool } });
  }

  /** Sends what another gateway let through, as it came. Never throws. */
  pass(call: AgentCall, to: Destination): void {
    try {
      this.#forwardJudged(call, to);
    } catch (error) {
      this.#deps.refuse(call, error);
    }
  }

  #forwardJudged(call: AgentCall, to: Destination): void {
    const { server } = to;
    const hosted = this.#deps.servers().get(server);
    if (hosted === undefined) throw new Fault("unavailable", `Server "${server}" is no longer in the config.`);
    new Forward(call, to, this.#withoutLogin, undefined).sendTo(this.#connection(call.caller, hosted));
  }

  /** What a tool gives a legacy agent is an object, whatever a modern server answers. */
  #asLegacy(call: AgentCall, { server, tool }: Destination, { intro }: ServerHandle): AgentCall {
    const { era, takesAnyOutput } = call.caller;
    if (tool === undefined || era !== "legacy" || takesAnyOutput === true) return call;
    const isWrapped = this.#deps.wrapsOutput(server, tool);
    return isWrapped || intro?.era === "modern" ? new LegacyOutput(call, isWrapped) : call;
  }

  refusal(call: AgentCall, to: Destination): Fault | undefined {
    const tool = judgedTool(call, to);
    return tool === undefined ? undefined : this.#deps.access.quarantined(to.server, tool);
  }

  mends(call: AgentCall, to: Destination, chargedMs: number | undefined, refused: Reply): boolean {
    const again = () => this.#sendAgain(call, to, chargedMs);
    return this.logins?.take(call, to.server, again, () => call.reply(refused)) === true;
  }

  /** What was refused for want of a login was not done: it is sent once more, whatever it is. */
  #sendAgain(call: AgentCall, to: Destination, chargedMs: number | undefined): void {
    try {
      const hosted = this.#deps.servers().get(to.server);
      if (hosted === undefined) throw new Fault("unavailable", `Server "${to.server}" is no longer in the config.`);
      const refusal = this.refusal(call, to);
      if (refusal !== undefined) throw refusal;
      call.notes?.repeated("unauthorized");
      new Forward(call, to, this.#withoutLogin, chargedMs).sendTo(this.#connection(call.caller, hosted));
    } catch (error) {
      this.refund(call, to, chargedMs);
      this.#deps.refuse(call, error);
    }
  }

  refund(call: AgentCall, { server }: Destination, chargedMs: number | undefined): void {
    if (chargedMs === undefined) return;
    this.budgets?.refund(call.caller.principal, server, chargedMs, this.#deps.now());
  }

  /** When it was charged; undefined where it was not. Or that it is being asked: then to be tried again. */
  #charge(call: AgentCall, server: string): number | WindowAsked | undefined {
    if (this.budgets === undefined || !isCharged(call.message.method)) return undefined;
    const nowMs = this.#deps.now();
    const over = this.budgets.charge(call.caller.principal, server, nowMs);
    if (over === undefined) return nowMs;
    if ("answered" in over) return over;
    countRefusal(call.caller.principal, "budget");
    throw budgetFault(over, server);
  }

  #forward(call: AgentCall, to: Destination, hosted: ServerHandle, chargedMs: number | undefined): void {
    const { caller } = call;
    const forward = new Forward(call, to, this, chargedMs);
    const { beforeSend } = caller;
    if (beforeSend === undefined) forward.sendTo(this.#connection(caller, hosted));
    else void this.#sendAfter(beforeSend, call, forward, to, hosted, chargedMs);
  }

  #connection(caller: Caller, hosted: ServerHandle): Upstream {
    // A connection of an agent's own belongs to its session, and outlives the call that opens it.
    return hosted.upstream(hosted.isolation === "shared" ? caller : this.#deps.sessions.sessionOf(caller));
  }

  /** Waits for whoever writes down that the call begins. Never rejects. */
  async #sendAfter(
    beforeSend: NonNullable<Caller["beforeSend"]>,
    call: AgentCall,
    forward: Forward,
    to: Destination,
    hosted: ServerHandle,
    chargedMs: number | undefined,
  ): Promise<void> {
    const { message, caller } = call;
    const { server, tool, subject } = to;
    let isCancelled = false;
    call.onCancel = () => {
      isCancelled = true;
    };
    try {
      const mayRepeat = hosted.mayRepeat?.(message.method, subject) ?? false;
      await beforeSend({ server, tool, message, mayRepeat });
      if (isCancelled) throw new Fault("cancelled", `${message.method} was taken back. Not run.`);
      // What it was judged by may be old by now.
      const refusal = this.refusal(call, to);
      if (refusal !== undefined) throw refusal;
      forward.sendTo(this.#connection(caller, hosted));
    } catch (error) {
      this.refund(call, to, chargedMs);
      this.#deps.refuse(call, error);
    }
  }

  /** Whom a private answer is for. The operator is nobody that a token could name. */
  #ownerOf({ principal, sessionKey, privateTo }: Caller, { isolation }: ServerHandle): string {
    if (isolation === "session") return sessionKey;
    if (privateTo !== undefined) return privateTo;
    return principal === OPERATOR ? "" : principal.id;
  }
}
