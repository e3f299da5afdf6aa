// `toolway executor` at work: opens the door or dials the gateways, tells what happens, and ends when told to.

import { type DialState, dialGateway } from "../executor/dialer.js";
import { createExecutor, type Executor } from "../executor/executor.js";
import { listenForClients } from "../executor/listener.js";
import { Close, type Socket } from "../executor/socket.js";
import type { ExecutorLog } from "../executor/types.js";
import { Exit, type ExitCode, UserError } from "./errors.js";
import { executorBanner, executorFacts } from "./executor-banner.js";
import { destinationsOf } from "./executor-destinations.js";
import type { ConnectPlan, ListenPlan, RunPlan } from "./executor-plan.js";
import { type Io, note, print } from "./io.js";
import { logOf } from "./log-of.js";

type Fields = Readonly<Record<string, unknown>>;

/** A line of `--json`. */
type Tell = (event: string, fields?: Fields) => void;

export async function runExecutor(plan: RunPlan, how: { readonly json: boolean }, io: Io): Promise<ExitCode> {
  const destinations = destinationsOf(plan.rules);
  const tell: Tell = (event, fields) => {
    if (how.json) print(io, JSON.stringify({ event, time: new Date().toISOString(), ...fields }));
  };
  const log = toldOf(io, tell);
  const executor = createExecutor({ destinations, log });
  const sockets = new Set<Socket>();
  const counted: Executor = {
    ...executor,
    serve(socket) {
      const served = executor.serve(socket);
      sockets.add(socket);
      if (plan.kind === "listen") tell("connected");
      void served.closed.then((why) => {
        sockets.delete(socket);
        if (plan.kind === "listen") tell("disconnected", { why });
      });
      return served;
    },
  };
  const begin = (url?: string): void => {
    if (how.json) tell(plan.kind === "listen" ? "listening" : "dialling", executorFacts(plan, url));
    else print(io, executorBanner(plan, url, io));
  };
  try {
    const closeDoors =
      plan.kind === "listen" ? await listen(counted, plan, log, begin) : connect(counted, plan, log, tell, begin);
    await untilStopped(io);
    // As one that does not come back: gateways would wait for it else.
    for (const socket of sockets) socket.close(Close.normal, "the executor stops");
    await closeDoors();
  } finally {
    await executor.close();
  }
  tell("stopped");
  return Exit.ok;
}

/** Opens the door. Returns what closes it. */
async function listen(
  executor: Executor,
  plan: ListenPlan,
  log: ExecutorLog,
  begin: (url: string) => void,
): Promise<() => Promise<void>> {
  const { address, token } = plan;
  const listener = await listenForClients(executor, { ...address, token, log }).catch((error: unknown) => {
    throw unbound(plan, error);
  });
  begin(listener.url);
  return () => listener.close();
}

/** Dials every gateway, and again after each loss. Returns what ends that. */
function connect(
  executor: Executor,
  plan: ConnectPlan,
  log: ExecutorLog,
  tell: Tell,
  begin: () => void,
): () => Promise<void> {
  begin();
  const dialled = plan.gateways.map((url) =>
    dialGateway(executor, {
      url,
      token: plan.token,
      log,
      onState: (state) => tellState(url, state, tell),
    }),
  );
  return async () => void (await Promise.all(dialled.map((one) => one.close())));
}

function tellState(gateway: string, state: DialState, tell: Tell): void {
  if (state.state === "connected") tell("connected", { gateway });
  if (state.state === "waiting") {
    tell("disconnected", { gateway, why: state.why, nextTryInMs: state.retryMs });
  }
}

/** Warnings are events as well: a request or a connection that was refused. */
function toldOf(io: Io, tell: Tell): ExecutorLog {
  const log = logOf(io.env, (line) => void io.stderr.write(line));
  return {
    debug: log.debug,
    info: log.info,
    warn(text, fields) {
      log.warn(text, fields);
      tell("warning", { text, ...fields });
    },
  };
}

async function untilStopped(io: Io): Promise<void> {
  await new Promise<void>((done) => {
    if (io.signal.aborted) done();
    io.signal.addEventListener("abort", () => done(), { once: true });
  });
  if (io.isErrTTY) note(io, "\nStopping.");
}

const UNBOUND: Readonly<Record<string, string>> = {
  EADDRINUSE: "Something else listens there. Choose another port, or 0 for any free one.",
  EACCES: "This port needs rights that the process does not have. Choose one above 1023.",
  EADDRNOTAVAIL: "This machine has no such address. Use 127.0.0.1, or one that it has.",
  ENOTFOUND: "There is no such host name. Use 127.0.0.1, or an address of this machine.",
};

function unbound({ address: { host, port } }: ListenPlan, cause: unknown): unknown {
  const hint = UNBOUND[(cause as NodeJS.ErrnoException).code ?? ""];
  if (hint === undefined) return cause;
  return new UserError(`Cannot listen on ${host}:${port}.`, { hint, cause });
}
