// `toolway doctor --engine`: real writes, reads and a lease for some seconds in a stream of its own, which is gone
// afterwards, and sentences about what that means. It knows nothing of what gateways keep there.

import { randomBytes, randomUUID } from "node:crypto";
import { JetStreamApiError, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { EngineAccess } from "../../contracts/settings.js";
import { messageOf } from "../../runtime/expected-error.js";
import { sleep } from "../../runtime/wait.js";
import { type Engine, engineAddress, openEngine } from "../../store/nats/connection.js";
import { type EngineFacts, type EnginePromise, enginePromises } from "../../store/nats/versions.js";
import { engineFacts } from "./facts.js";
import { engineKeys } from "./keyring.js";

/** Long enough to see a slow disk and a busy neighbour, short enough to be waited for. */
const TRIAL_MS = 10_000;
/** Of the first connection: a person waits. */
const CONNECT_MS = 10_000;
/** As many writes under way as a gateway with some load has. */
const WRITERS = 8;
/** About a queued call. */
const WRITE_BYTES = 300;
const LEASE_EVERY_MS = 200;
/** Of one request. Past it the engine has no leader, or none that we can reach. */
const REQUEST_MS = 5_000;
/** A stream of a doctor that was killed is taken away by the next one; one that is younger may be another's. */
const LEFT_OVER_MS = 10 * 60_000;
/** The longest that Toolway's own messages may be without this warning: what NATS allows by default. */
const USUAL_PAYLOAD = 1024 * 1024;
/** So many times are kept of each kind: a minute of the fastest engine that was measured. */
const MAX_TIMES = 1_000_000;

export interface Times {
  readonly count: number;
  readonly medianMs: number;
  readonly slowestMs: number;
}

export interface EngineReport {
  readonly ok: boolean;
  readonly address: string;
  /** What has to be mended before a gateway can run on it. */
  readonly problems: readonly string[];
  /** The rest is undefined where it could not be tried. */
  readonly facts: EngineFacts | undefined;
  readonly node: string | undefined;
  readonly promises: readonly EnginePromise[];
  readonly writes: Times | undefined;
  readonly reads: Times | undefined;
  readonly leases: Times | undefined;
  /** Requests that were not answered, or with an error, and were made again. */
  readonly failed: number;
  /** What the numbers mean, and what to set. */
  readonly advice: readonly string[];
}

export interface ExamineOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  readonly trialMs?: number;
  readonly connectMs?: number;
}

/** Never throws for what is wrong with the engine: that is in the report. */
export async function examineEngine(settings: EngineAccess, options: ExamineOptions): Promise<EngineReport> {
  const problems = keyProblems(settings, options.env);
  const base: EngineReport = {
    ok: false,
    address: engineAddress(settings),
    problems,
    facts: undefined,
    node: undefined,
    promises: [],
    writes: undefined,
    reads: undefined,
    leases: undefined,
    failed: 0,
    advice: [],
  };
  let engine: Engine;
  try {
    const { env, signal, connectMs = CONNECT_MS } = options;
    engine = await openEngine(settings, { env, signal, firstConnectMs: connectMs, name: "toolway doctor" });
  } catch (error) {
    options.signal.throwIfAborted();
    return { ...base, problems: [...problems, messageOf(error)] };
  }
  try {
    return await examineOpen(engine, base, options);
  } finally {
    await engine.close();
  }
}

function keyProblems({ key }: EngineAccess, env: NodeJS.ProcessEnv): string[] {
  try {
    engineKeys(key, env);
    return [];
  } catch (error) {
    return [messageOf(error)];
  }
}

async function examineOpen(engine: Engine, base: EngineReport, options: ExamineOptions): Promise<EngineReport> {
  const { connection } = engine;
  const { facts, problem } = await engineFacts(engine);
  const problems = [...base.problems, ...(problem === undefined ? [] : [problem])];
  const known = { ...base, facts, node: engine.status.node, promises: enginePromises(facts) };
  let trial: Trial;
  try {
    trial = await Trial.open(engine);
  } catch (error) {
    return { ...known, problems: [...problems, trialProblem(error, facts)] };
  }
  try {
    await trial.run(options.trialMs ?? TRIAL_MS, options.signal);
  } finally {
    await trial.remove();
  }
  options.signal.throwIfAborted();
  const [writes, reads, leases] = [timesOf(trial.writes), timesOf(trial.reads), timesOf(trial.leases)];
  if (writes === undefined) problems.push("Not one write was acknowledged: look into the logs of the nodes.");
  problems.push(...trial.differences);
  const maxPayload = connection.info?.max_payload ?? USUAL_PAYLOAD;
  return {
    ...known,
    ok: problems.length === 0,
    problems,
    writes,
    reads,
    leases,
    failed: trial.failed,
    advice: adviceOf({ facts, writes, failed: trial.failed, maxPayload }),
  };
}

/** What a person is told of the numbers. */
export function adviceOf(of: {
  readonly facts: EngineFacts;
  readonly writes: Times | undefined;
  readonly failed: number;
  readonly maxPayload: number;
}): string[] {
  const { facts, writes, failed, maxPayload } = of;
  const advice: string[] = [];
  if (writes !== undefined && writes.slowestMs > SLOW_COMMIT_MS) {
    advice.push(
      `The slowest commit took ${Math.round(writes.slowestMs)} ms, which is long: leases of 10 s hold, but each queued ` +
        "write waits for its commit. Give JetStream a disk of its own.",
    );
  }
  advice.push(
    facts.replicas > 1
      ? "The loss of a leader holds writes up for 4 to 15 s, as measured on three versions; it was not tried here."
      : "While the one node is away nothing is written, and what needs a write is refused with the time of the next try.",
  );
  if (failed > 0) {
    advice.push(
      `${failed} request${failed === 1 ? " was" : "s were"} not answered in time and made again: a leader was elected ` +
        "meanwhile, or the nodes have too little to run on.",
    );
  }
  if (maxPayload < USUAL_PAYLOAD) {
    advice.push(
      `Messages may have ${maxPayload} bytes here, and calls with larger arguments or results cannot be queued: set ` +
        "`max_payload: 1MB` in the servers' config.",
    );
  }
  return advice;
}

/** Ten times what a busy disk takes for an fsync. */
const SLOW_COMMIT_MS = 500;

function trialProblem(error: unknown, { nodes, replicas }: EngineFacts): string {
  const message = messageOf(error);
  if (error instanceof JetStreamApiError && /replicas|resource|peers|placement/i.test(message) && replicas > 1) {
    const count = `${nodes} node${nodes === 1 ? "" : "s"}`;
    return (
      `The engine cannot keep ${replicas} copies (${message}): it has ${count}. ` +
      'Run as many nodes, with the same `cluster` name, or set "replicas" to 1.'
    );
  }
  if (/jetstream.*not enabled|no responders/i.test(message)) {
    return "JetStream is not enabled, or has no leader now: start the nodes with `jetstream { store_dir: … }`, and try again.";
  }
  return `A stream could not be made (${message}): the account that we come in by needs the rights for it.`;
}

/** The stream of one examination. */
class Trial {
  readonly writes: number[] = [];
  readonly reads: number[] = [];
  readonly leases: number[] = [];
  /** What was made otherwise than it was asked for: a server leaves out what it does not know, without a word. */
  readonly differences: string[] = [];
  failed = 0;
  readonly #engine: Engine;
  readonly #manager: JetStreamManager;
  readonly #name: string;
  readonly #subject: string;

  private constructor(engine: Engine, manager: JetStreamManager, id: string) {
    this.#engine = engine;
    this.#manager = manager;
    const { prefix } = engine.settings;
    this.#name = `${prefix}_doctor_${id}`;
    this.#subject = `${prefix}.doctor.${id}`;
  }

  static async open(engine: Engine): Promise<Trial> {
    const manager = await jetstreamManager(engine.connection, { timeout: REQUEST_MS, checkAPI: true });
    const trial = new Trial(engine, manager, randomBytes(6).toString("hex"));
    await trial.#removeLeftOver();
    const asked = {
      name: trial.#name,
      subjects: [`${trial.#subject}.>`],
      num_replicas: engine.settings.replicas,
      allow_direct: false,
      max_msgs_per_subject: 1_000,
      duplicate_window: 120_000_000_000,
    };
    const { config } = await manager.streams.add(asked);
    for (const key of ["num_replicas", "allow_direct", "max_msgs_per_subject", "duplicate_window"] as const) {
      // What is false may be left out of an answer.
      if ((config[key] ?? false) === asked[key]) continue;
      trial.differences.push(
        `A stream was made with ${key} ${String(config[key])}, where ${String(asked[key])} was asked for.`,
      );
    }
    return trial;
  }

  async run(forMs: number, signal: AbortSignal): Promise<void> {
    const end = performance.now() + forMs;
    const goesOn = () => performance.now() < end && !signal.aborted;
    const writers = Array.from({ length: WRITERS }, (_, n) => this.#write(n, goesOn));
    await Promise.all([...writers, this.#read(goesOn), this.#hold(goesOn)]);
  }

  /** A leader may be missing at this very moment; the stream is then left for the next one. */
  async remove(): Promise<void> {
    await this.#manager.streams.delete(this.#name).catch(() => {});
  }

  async #removeLeftOver(): Promise<void> {
    const beginning = `${this.#engine.settings.prefix}_doctor_`;
    for await (const { config, created } of this.#manager.streams.list(`${this.#engine.settings.prefix}.doctor.>`)) {
      const isOld = Date.now() - Date.parse(created) > LEFT_OVER_MS;
      if (isOld && config.name.startsWith(beginning)) await this.#manager.streams.delete(config.name);
    }
  }

  async #write(writer: number, goesOn: () => boolean): Promise<void> {
    const messages = jetstream(this.#engine.connection);
    const body = randomBytes(WRITE_BYTES);
    const options = { timeout: REQUEST_MS, expect: { streamName: this.#name } };
    while (goesOn()) {
      const msgID = randomUUID();
      await this.#timed(this.writes, () =>
        messages.publish(`${this.#subject}.write.${writer}`, body, { ...options, msgID }),
      );
    }
  }

  async #read(goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      const query = { last_by_subj: `${this.#subject}.write.0` };
      const found = await this.#timed(this.reads, () => this.#manager.streams.getMessage(this.#name, query));
      // Nothing is there before the first write.
      if (found === undefined || found === null) await sleep(5);
    }
  }

  /** As the owner of a partition does: takes it, and renews it on the revision that it had. */
  async #hold(goesOn: () => boolean): Promise<void> {
    const messages = jetstream(this.#engine.connection);
    let revision = 0;
    while (goesOn()) {
      const expect = { streamName: this.#name, lastSubjectSequence: revision };
      const options = { timeout: REQUEST_MS, msgID: randomUUID(), expect };
      const done = await this.#timed(this.leases, () => messages.publish(`${this.#subject}.lease`, "held", options));
      if (done !== undefined) revision = done.seq;
      else revision = (await this.#revision()) ?? revision;
      await sleep(LEASE_EVERY_MS);
    }
  }

  /** After a renewal without an answer: nobody else writes there, so that what is there is ours. */
  async #revision(): Promise<number | undefined> {
    try {
      return (await this.#manager.streams.getMessage(this.#name, { last_by_subj: `${this.#subject}.lease` }))?.seq;
    } catch {
      return undefined;
    }
  }

  async #timed<T>(times: number[], send: () => Promise<T>): Promise<T | undefined> {
    const began = performance.now();
    try {
      const answer = await this.#engine.ask(WRITE_BYTES, send);
      if (times.length < MAX_TIMES) times.push(performance.now() - began);
      return answer;
    } catch {
      this.failed++;
      // What is refused at once would otherwise be asked again at once.
      await sleep(50);
      return undefined;
    }
  }
}

function timesOf(times: readonly number[]): Times | undefined {
  const sorted = [...times].sort((a, b) => a - b);
  const [median, slowest] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  if (median === undefined || slowest === undefined) return undefined;
  return { count: sorted.length, medianMs: median, slowestMs: slowest };
}
