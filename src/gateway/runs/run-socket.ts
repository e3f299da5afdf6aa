// `toolway run` at the operator's socket: its run has a secret for as long as the connection is open, and is given its
// closing figures at the end. Lines of JSON.

import type { Duplex } from "node:stream";
import type { RunLine, RunRequest, RunSummary } from "../../contracts/runs.js";
import { DEFAULT_ROLE } from "../../contracts/settings.js";
import type { ContextChanges } from "../../policy/contexts.js";
import { fromHere } from "../../runtime/addresses.js";
import { LineSplitter } from "../../runtime/line-splitter.js";
import { KIB } from "../../runtime/sizes.js";
import { resultWithin } from "../../runtime/wait.js";
import { isObject } from "../../runtime/words/json-object.js";
import { objectIn } from "../../runtime/words/json-values.js";
import type { HeldRun, Runs } from "./runs.js";

export interface RunGateway {
  readonly runs: Pick<Runs, "expect" | "begin" | "resume" | "release" | "onClosing">;
  /** The address that agents use; begins to listen where nobody does yet. Rejects where it cannot be bound. */
  endpoint(): Promise<string>;
  /** Each resolves when a server of which nothing is known yet has been tried. */
  firstTries(): readonly unknown[];
  /** Throws where the config has no such role. */
  demandRole(role: string): void;
  setContext(principal: string, changes: ContextChanges): Promise<unknown>;
  /** How often servers that had been up were so again, all together. */
  restarts(): number;
  readonly forRuns: boolean;
  readonly noAuth: boolean;
}

/** A run waits so long for servers of which nothing is known yet; one that needs longer is not worth a person's wait. */
const FIRST_TRY_MS = 10_000;

/** 32 keys of a context with their values, and a few words. */
const MAX_LINE_BYTES = 64 * KIB;

/** A run is told what changed so often: so much is not in its closing line where the gateway was killed. */
const FIGURES_MS = 1_000;

export function serveRun(socket: Duplex, gateway: RunGateway): void {
  let held: Promise<HeldRun | undefined> | undefined;
  const restartsBefore = gateway.restarts();
  const send = (line: RunLine) => {
    if (!socket.writableEnded && !socket.destroyed) socket.write(`${JSON.stringify(line)}\n`);
  };
  const fail = (error: unknown) => {
    const { code } = error as { code?: unknown };
    send({ kind: "error", code: typeof code === "string" ? code : "internal", message: (error as Error).message });
    socket.end();
  };
  let follow: { stop(): void } | undefined;
  const begin = async (request: RunRequest): Promise<HeldRun | undefined> => {
    const begun = gateway.runs.expect();
    try {
      const { run, line } = await take(request, gateway);
      send(line);
      const summary = () => summaryOf(run, gateway.restarts() - restartsBefore);
      if (!socket.destroyed) {
        follow = followFigures(summary, gateway.runs, (figures) => send({ kind: "figures", ...figures }));
      }
      return run;
    } catch (error) {
      fail(error);
      return undefined;
    } finally {
      begun();
    }
  };
  const end = async () => {
    const run = await held;
    if (run === undefined) return;
    follow?.stop();
    send({ kind: "ended", ...summaryOf(run, gateway.restarts() - restartsBefore) });
    gateway.runs.release(run.run);
    socket.end();
  };
  const lines = new LineSplitter(
    {
      onLine: (text) => {
        const said = objectIn(text.toString()) ?? {};
        if (held === undefined) held = begin(said as unknown as RunRequest);
        else if (said["kind"] === "end") void end();
      },
      onOversize: () => socket.destroy(),
    },
    MAX_LINE_BYTES,
  );
  socket.on("data", (chunk: Buffer) => lines.push(chunk));
  socket.once("end", () => socket.end());
  // Whatever ended the run, the kernel has closed its connection.
  socket.once("close", () => {
    follow?.stop();
    void held?.then((run) => run !== undefined && gateway.runs.release(run.run));
  });
}

/** Tells of figures when they have changed, and a last time when the gateway closes. */
function followFigures(
  summary: () => RunSummary,
  runs: RunGateway["runs"],
  tell: (figures: RunSummary) => void,
): { stop(): void } {
  let told = 0;
  const look = () => {
    const figures = summary();
    const { calls, queued, restarts, refused } = figures;
    // Each of them is counted up, so that the sum says whether one was.
    const sum = calls + queued + restarts + refused.reduce((all, { count }) => all + count, 0);
    if (sum !== told) tell(figures);
    told = sum;
  };
  const timer = setInterval(look, FIGURES_MS).unref();
  const forget = runs.onClosing(look);
  return {
    stop() {
      clearInterval(timer);
      forget();
    },
  };
}

async function take(request: RunRequest, gateway: RunGateway): Promise<{ run: HeldRun; line: RunLine }> {
  const { runs, forRuns, noAuth } = gateway;
  if (request.kind === "resume") {
    const run = await runs.resume(String(request.run), String(request.secret));
    return { run, line: { ...factsOf(run), url: fromHere(await gateway.endpoint()), forRuns, noAuth } };
  }
  const { as, role, client, context, process } = request;
  if (role !== undefined) gateway.demandRole(role);
  // An agent on this machine uses the nearest of its addresses.
  const url = fromHere(await gateway.endpoint());
  // Some clients read the list once: an agent is started when there is something in it, or when that takes too long.
  await resultWithin(Promise.all(gateway.firstTries()), FIRST_TRY_MS);
  const run = await runs.begin({ as, role: role ?? DEFAULT_ROLE, client: String(client), process });
  try {
    if (isObject(context)) await gateway.setContext(run.principal.id, context as ContextChanges);
  } catch (error) {
    runs.release(run.run);
    throw error;
  }
  return { run, line: { ...factsOf(run), url, forRuns, noAuth, secret: run.secret } };
}

function factsOf({ run, principal }: HeldRun) {
  return { kind: "held", run, principal: principal.id, role: principal.role } as const;
}

function summaryOf({ tally }: HeldRun, restarts: number): RunSummary {
  const refused = [...tally.refused]
    .map(([rule, count]) => ({ rule, count }))
    .sort((a, b) => b.count - a.count || a.rule.localeCompare(b.rule));
  return { calls: tally.calls, refused, restarts, queued: tally.queued };
}
