// A run's hold on its gateway: the connection by which its secret is good, taken again when the gateway was started
// anew. Says nothing while the agent has the terminal; what went wrong is told at the end.

import type { Duplex } from "node:stream";
import type { RunLine, RunRequest, RunSummary } from "../../contracts/runs.js";
import { CodedError } from "../../runtime/expected-error.js";
import { LineSplitter } from "../../runtime/line-splitter.js";
import { KIB } from "../../runtime/sizes.js";
import { sleepUnref } from "../../runtime/wait.js";

/** Facts of a run, or the closing figures of one. */
const MAX_LINE_BYTES = 64 * KIB;
/** A gateway that comes back is found at once; one that does not costs a look at a socket. */
const FIRST_WAIT_MS = 100;
const LAST_WAIT_MS = 2_000;
/** What several gateways, one after another, said of one run. */
function sumOf(one: RunSummary, other: RunSummary): RunSummary {
  const refused = new Map(one.refused.map(({ rule, count }) => [rule, count]));
  for (const { rule, count } of other.refused) refused.set(rule, (refused.get(rule) ?? 0) + count);
  return {
    calls: one.calls + other.calls,
    refused: [...refused].map(([rule, count]) => ({ rule, count })).sort((a, b) => b.count - a.count),
    restarts: one.restarts + other.restarts,
    queued: one.queued + other.queued,
  };
}

const NOTHING: RunSummary = { calls: 0, refused: [], restarts: 0, queued: 0 };

/** Whoever waits for the shell's prompt does not wait longer for a line of figures. */
const SUMMARY_MS = 2_000;

export type HeldLine = Extract<RunLine, { readonly kind: "held" }>;

/** A connection to the gateway, or to the next one; undefined where there is none now. */
export type ConnectRun = (before: HeldLine | undefined) => Promise<Duplex | undefined>;

/** Why a gateway did not take a run. */
export class RunRefused extends CodedError<string> {
  override readonly name = "RunRefused";
}

/** Answers that say that the next gateway should be asked. */
const PASSING: ReadonlySet<string> = new Set(["closing", "gone"]);

export class RunHold {
  readonly first: HeldLine;
  readonly #connect: ConnectRun;
  readonly #problems: string[] = [];
  #link: Link;
  #isOver = false;
  /** Why the gateway could not be reached or started when it was last tried; undefined while it is there. */
  #failure: string | undefined;
  /** What the gateways did that are gone, as far as they told. */
  #before = NOTHING;
  #restarts = 0;

  private constructor(connect: ConnectRun, link: Link, first: HeldLine) {
    this.#connect = connect;
    this.#link = link;
    this.first = first;
    link.onGone = () => void this.#comeBack();
  }

  /** How often another gateway took the place of the one before: what that did in its last moment is not known. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Rejects with a RunRefused, or with what `connect` does. Undefined where the gateway went away meanwhile. */
  static async begin(connect: ConnectRun, request: RunRequest, signal?: AbortSignal): Promise<RunHold | undefined> {
    const socket = await connect(undefined);
    if (socket === undefined) return undefined;
    const link = new Link(socket);
    // A person who does not want it any more waits for no server.
    const leave = () => link.close();
    if (signal?.aborted === true) leave();
    else signal?.addEventListener("abort", leave, { once: true });
    const answer = await link.ask(request);
    signal?.removeEventListener("abort", leave);
    if (answer.kind === "held") return new RunHold(connect, link, answer);
    const refused = refusal(answer);
    if (PASSING.has(refused.code)) return undefined;
    throw refused;
  }

  /** What the user should know of when the agent has ended. */
  get problems(): readonly string[] {
    return this.#problems;
  }

  /** Lets go. Undefined where the gateway cannot say what was done. */
  async end(): Promise<RunSummary | undefined> {
    this.#isOver = true;
    if (this.#failure !== undefined) {
      this.#problems.push(`The gateway went away, and could not be had again: ${this.#failure}`);
    }
    const timer = setTimeout(() => this.#link.close(), SUMMARY_MS);
    const answer = await this.#link.ask({ kind: "end" });
    clearTimeout(timer);
    this.#link.close();
    if (answer.kind === "ended") return sumOf(this.#before, answer);
    // It went with what it did last untold.
    const known = sumOf(this.#before, this.#link.figures);
    return known.calls > 0 ? known : undefined;
  }

  async #comeBack(): Promise<void> {
    const { run, secret = "", url } = this.first;
    for (let waitMs = FIRST_WAIT_MS; !this.#isOver; waitMs = Math.min(waitMs * 2, LAST_WAIT_MS)) {
      await sleepUnref(waitMs);
      const socket = await this.#tryAgain();
      if (socket === undefined) continue;
      const link = new Link(socket);
      const answer = await link.ask({ kind: "resume", run, secret });
      if (answer.kind === "held") {
        this.#failure = undefined;
        this.#before = sumOf(this.#before, this.#link.figures);
        this.#restarts++;
        this.#link = link;
        link.onGone = () => void this.#comeBack();
        if (answer.url !== url) {
          this.#problems.push(`The gateway came back at another address, ${answer.url}: the agent did not reach it.`);
        }
        return;
      }
      const refused = refusal(answer);
      if (PASSING.has(refused.code)) continue;
      this.#failure = undefined;
      this.#problems.push(`The gateway was started anew and did not take this run back: ${refused.message}`);
      return;
    }
  }

  /** One that cannot be started now may be later. */
  async #tryAgain(): Promise<Duplex | undefined> {
    try {
      return await this.#connect(this.first);
    } catch (error) {
      this.#failure = (error as Error).message;
      return undefined;
    }
  }
}

function refusal(answer: RunLine): RunRefused {
  return answer.kind === "error"
    ? new RunRefused(answer.code, answer.message)
    : new RunRefused("gone", "The gateway went away.");
}

/** One connection: a line is asked, a line answers. */
class Link {
  onGone: () => void = () => {};
  /** What was done by way of it, as it was last told. */
  figures = NOTHING;
  readonly #socket: Duplex;
  #answer: ((line: RunLine) => void) | undefined;

  constructor(socket: Duplex) {
    this.#socket = socket;
    const gone: RunLine = { kind: "error", code: "gone", message: "The gateway went away." };
    const lines = new LineSplitter(
      { onLine: (line) => this.#take(JSON.parse(line.toString()) as RunLine), onOversize: () => socket.destroy() },
      MAX_LINE_BYTES,
    );
    socket.on("data", (chunk: Buffer) => lines.push(chunk));
    socket.on("error", () => socket.destroy());
    socket.once("end", () => socket.end());
    socket.once("close", () => {
      this.#take(gone);
      this.onGone();
    });
  }

  ask(line: RunRequest | { readonly kind: "end" }): Promise<RunLine> {
    return new Promise((done) => {
      this.#answer = done;
      if (this.#socket.destroyed) this.#take({ kind: "error", code: "gone", message: "The gateway went away." });
      else this.#socket.write(`${JSON.stringify(line)}\n`);
    });
  }

  close(): void {
    this.onGone = () => {};
    this.#socket.destroy();
  }

  #take(line: RunLine): void {
    if (line.kind === "figures") {
      this.figures = line;
      return;
    }
    const answer = this.#answer;
    this.#answer = undefined;
    answer?.(line);
  }
}
