// Gets to know a server at the start of a connection: which era it is of, and what it says of itself. verdict.ts says
// what an answer means, handshake.ts does the legacy handshake; links and requests are the connection's.

import type { ServerSpec } from "../../contracts/server-spec.js";
import type { ServerIntro } from "../../contracts/upstream.js";
import { Fault } from "../../protocol/errors.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { type Era, Meta, MODERN_VERSION } from "../../protocol/modern.js";
import { resultWithin } from "../../runtime/wait.js";
import { ask, type CallSender, ServerError } from "../link/own-call.js";
import { type HandshakeOffer, shakeHands } from "./handshake.js";
import { classify, type DiscoverOutcome, type EraMemory, type EraVerdict, identityOf } from "./verdict.js";

/**
 * How long the discovery is waited for. Servers that have started answer within milliseconds; one that is silent gets
 * `initialize` then, and on stdio a late answer to the discovery still counts, so a slow start costs nothing.
 */
const PROBE_MS = 5_000;

/** What a meeting needs of its connection, which is not ready for anybody else's calls yet. */
export interface MeetingOptions {
  readonly kind: "stdio" | "http" | "sse";
  readonly spec: ServerSpec;
  readonly eras: EraMemory;
  readonly offer: HandshakeOffer;
  /** Sends past all that is done for an agent's call. */
  readonly direct: CallSender;
  /** Why there is no link any more; undefined while there is. */
  gone(): Fault | undefined;
  /** Closes what is left of the link and opens another: a child is started again. */
  relink(signal: AbortSignal): Promise<void>;
}

/** Rejects with a Fault. The link is open. */
export async function meet(options: MeetingOptions, signal: AbortSignal): Promise<ServerIntro> {
  const { era } = options.spec;
  if (options.kind === "sse") return await shakeHands(options.direct, options.offer, signal);
  if (era === "legacy") return await meetLegacy(options, signal);
  if (era === "modern") return await meetModern(options, options.kind, signal);
  const memory = new Memory(options);
  if (memory.get() === "legacy") {
    try {
      return await shakeHands(options.direct, options.offer, signal);
    } catch (error) {
      if (options.gone() !== undefined || refutesLegacy(error)) memory.put(undefined);
      // A crash says little of the era: the next start probes.
      if (options.gone() !== undefined || !refutesLegacy(error)) throw error;
    }
    await options.relink(signal);
  }
  return await new Meeting(options, options.kind, memory, signal).run();
}

/** The entry says that it is legacy. */
async function meetLegacy(options: MeetingOptions, signal: AbortSignal): Promise<ServerIntro> {
  try {
    return await shakeHands(options.direct, options.offer, signal);
  } catch (error) {
    if (!(error instanceof Fault) || !refutesLegacy(error) || error.reason !== undefined) throw error;
    const { code, plain, fact, data } = error;
    const remedy = 'If it speaks the modern era alone, remove "era": "legacy" from its entry.';
    throw new Fault(code, plain, { forOperator: fact, data, cause: error.cause, reason: "wrong-era", remedy });
  }
}

/** The entry says that it is modern: nothing else is tried, and nothing has to be remembered. */
async function meetModern(options: MeetingOptions, kind: "stdio" | "http", signal: AbortSignal): Promise<ServerIntro> {
  const outcome = await discover(options.direct, kind, signal);
  signal.throwIfAborted();
  const verdict = classify(kind, outcome);
  if (verdict.kind === "modern") return introOf(verdict.result);
  if (verdict.kind === "unusable") throw new Fault("protocol", verdict.message);
  if ("fault" in outcome && (verdict.kind === "none" || outcome.kind === "exited")) throw outcome.fault;
  const message = "It does not answer server/discover as a server of the modern era, which its entry says it is.";
  throw new Fault("protocol", message, { reason: "wrong-era", remedy: 'Remove "era": "modern" from its entry.' });
}

/** The memory of eras, for one server. */
class Memory {
  readonly #options: MeetingOptions;
  readonly #identity: string;

  constructor(options: MeetingOptions) {
    this.#options = options;
    this.#identity = identityOf(options.spec.target);
  }

  get(): Era | undefined {
    return this.#options.eras.get(this.#options.spec.name, this.#identity);
  }

  put(era: Era | undefined): void {
    this.#options.eras.put(this.#options.spec.name, this.#identity, era);
  }
}

/** The server is there and does not take initialize: it may be of the other era by now. */
function refutesLegacy(error: unknown): boolean {
  return error instanceof Fault && (error.cause instanceof ServerError || error.code === "protocol");
}

class Meeting {
  readonly #options: MeetingOptions;
  readonly #kind: "stdio" | "http";
  readonly #memory: Memory;
  readonly #signal: AbortSignal;
  readonly #halfMs: number;

  constructor(options: MeetingOptions, kind: "stdio" | "http", memory: Memory, signal: AbortSignal) {
    this.#options = options;
    this.#kind = kind;
    this.#memory = memory;
    this.#signal = signal;
    this.#halfMs = options.spec.connectTimeoutMs / 2;
  }

  async run(): Promise<ServerIntro> {
    const modernBefore = this.#memory.get() === "modern";
    const giveUp = new AbortController();
    const discovering = discover(this.#options.direct, this.#kind, AbortSignal.any([this.#signal, giveUp.signal]));
    // A server that was modern is waited for: it is slow, not old.
    const patienceMs = modernBefore ? this.#halfMs : Math.min(PROBE_MS, this.#halfMs);
    const outcome = (await resultWithin(discovering, patienceMs)) ?? { kind: "silent" };
    this.#signal.throwIfAborted();
    if (outcome.kind === "exited" && modernBefore) {
      this.#memory.put(undefined);
      throw outcome.fault;
    }
    const verdict = classify(this.#kind, outcome);
    switch (verdict.kind) {
      case "modern":
      case "unusable":
        return this.#modern(verdict);
      case "legacy":
        if (outcome.kind === "silent") return await this.#overlap(discovering, giveUp);
        if (this.#options.gone() !== undefined) await this.#options.relink(this.#signal);
        return await this.#legacy();
      case "none":
        // On HTTP a discovery that is given up is closed, so that nothing is left of it.
        giveUp.abort(new Fault("timeout", "The discovery was given up."));
        return await this.#undecided(outcome, modernBefore);
    }
  }

  async #legacy(): Promise<ServerIntro> {
    const intro = await shakeHands(this.#options.direct, this.#options.offer, this.#signal);
    this.#memory.put("legacy");
    return intro;
  }

  #modern(verdict: Extract<EraVerdict, { kind: "modern" | "unusable" }>): ServerIntro {
    if (verdict.kind === "unusable") throw new Fault("protocol", verdict.message);
    this.#memory.put("modern");
    return introOf(verdict.result);
  }

  /**
   * Nothing can be said of the era. Old servers that fail or hang on what they do not know still get their handshake.
   */
  async #undecided(outcome: DiscoverOutcome, modernBefore: boolean): Promise<ServerIntro> {
    const fault = "fault" in outcome ? outcome.fault : undefined;
    // It took the question and died of it: the next attempt must not ask again. If it is modern, initialize shows that.
    if (outcome.kind === "unreachable" && fault?.code === "outcome-unknown" && !modernBefore)
      this.#memory.put("legacy");
    const mayBeOld = outcome.kind === "silent" || (outcome.kind === "refused" && outcome.status >= 500);
    if (!mayBeOld || modernBefore) throw fault ?? new Fault("timeout", "The server did not answer server/discover.");
    try {
      return await shakeHands(this.#options.direct, this.#options.offer, this.#signal);
    } catch (error) {
      throw refutesLegacy(error) && fault !== undefined ? fault : error;
    }
  }

  /**
   * A child that is silent gets initialize on the same pipe, and whichever answer comes decides. A child that
   * stays silent or ends is started again for initialize alone, since the discovery may be what it stumbled over. What is
   * unanswered when that is decided is taken back by `giveUp`: it would count as a call in flight until its time is over.
   */
  async #overlap(discovering: Promise<DiscoverOutcome>, giveUp: AbortController): Promise<ServerIntro> {
    try {
      return await this.#whicheverAnswers(discovering, AbortSignal.any([this.#signal, giveUp.signal]));
    } finally {
      giveUp.abort(new Fault("timeout", "The era is known by another answer."));
    }
  }

  async #whicheverAnswers(discovering: Promise<DiscoverOutcome>, asking: AbortSignal): Promise<ServerIntro> {
    const restMs = Math.max(0, this.#halfMs - PROBE_MS);
    const initializing = settled(shakeHands(this.#options.direct, this.#options.offer, asking));
    const answer = await resultWithin(initializing, restMs);
    this.#signal.throwIfAborted();
    const discovered = await resultWithin(discovering, 0);
    const late = discovered === undefined ? undefined : classify("stdio", discovered);
    if (answer !== undefined && "value" in answer) {
      // A server of both eras may have been switched to this one by initialize: it is right for this connection.
      this.#memory.put(late?.kind === "modern" ? "modern" : "legacy");
      return answer.value;
    }
    if (late?.kind === "modern") return this.#modern(late);
    if (answer !== undefined && this.#options.gone() === undefined) throw answer.error;
    await this.#options.relink(this.#signal);
    return await this.#legacy();
  }
}

/** Asks for the era, and says what came of it. Never rejects. */
export async function discover(
  sender: CallSender,
  kind: "stdio" | "http",
  signal: AbortSignal,
): Promise<DiscoverOutcome> {
  try {
    const { result } = await ask(sender, "server/discover", {}, signal);
    return { kind: "result", result };
  } catch (error) {
    if (error instanceof ServerError) {
      return { kind: "error", code: error.code, message: error.message, data: error.data };
    }
    const fault = error instanceof Fault ? error : new Fault("protocol", String(error), { cause: error });
    if (kind === "stdio") return { kind: "exited", fault };
    const status = statusOf(fault);
    if (status !== undefined) return { kind: "refused", status, fault };
    // It answered, with something that is no message.
    if (fault.code === "protocol" && fault.cause === undefined) return { kind: "refused", status: 200, fault };
    return { kind: "unreachable", fault };
  }
}

/** The HTTP status that caused a fault; undefined where none did. */
export function statusOf(fault: Fault): number | undefined {
  const status = isObject(fault.data) ? fault.data["status"] : undefined;
  return typeof status === "number" ? status : undefined;
}

/** What we answer ourselves when we are asked who we are, or keep elsewhere. */
const DISCOVERED: ReadonlySet<string> = new Set([
  "resultType",
  "supportedVersions",
  "capabilities",
  "instructions",
  "ttlMs",
  "cacheScope",
  "_meta",
]);

function introOf(result: JsonObject): ServerIntro {
  const { capabilities, instructions, _meta } = result;
  const serverInfo = isObject(_meta) ? _meta[Meta.serverInfo] : undefined;
  const more = Object.fromEntries(Object.entries(result).filter(([name]) => !DISCOVERED.has(name)));
  const meta = Object.entries(isObject(_meta) ? _meta : {}).filter(([name]) => name !== Meta.serverInfo);
  if (meta.length > 0) more["_meta"] = Object.fromEntries(meta);
  return {
    era: "modern",
    version: MODERN_VERSION,
    capabilities: isObject(capabilities) ? capabilities : {},
    serverInfo: isObject(serverInfo) ? serverInfo : {},
    instructions: typeof instructions === "string" ? instructions : undefined,
    ...(Object.keys(more).length === 0 ? {} : { more }),
  };
}

function settled<T>(promise: Promise<T>): Promise<{ value: T } | { error: unknown }> {
  return promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
}
