// Gives a verb a gateway to talk to: the one that runs, else one of its own for as long as the verb takes.

import type { GatewayStatus, ServerStatus } from "../../contracts/status.js";
import { sleep } from "../../runtime/wait.js";
import { type Io, note } from "../line/io.js";
import { type GatewayClient, type GatewaySource, gatewayPort, type LocalGateway, runningGateway } from "./port.js";

/** After so long a person wonders whether anything happens. */
const NOTE_AFTER_MS = 1500;

/** `npx` and `uvx` may download on the first start; a server's own deadline is shorter than this by default. */
export const SETTLE_MS = 45_000;

export const POLL_MS = 40;

/** A gateway starts its servers at once; one that is still idle after this is idle on purpose. */
export const IDLE_GRACE_MS = 500;

/** What a verb talks to. */
interface VerbGateway {
  readonly client: GatewayClient;
  /** False where it was started for this verb. */
  readonly running: boolean;
}

interface GatewayNeeds {
  /**
   * Verbs about tokens and state need no server. "called": one of our own starts what is called and nothing else; where
   * `until` is not content with what is known from before, the servers that `toStart` names first.
   */
  readonly servers: boolean | "called";
  /** It tells what is wrong with the config: the log of a gateway of its own would say it twice. */
  readonly tellsConfig?: boolean;
  /** Undefined where every server is to be started, as the gateway does it. */
  readonly toStart?: (client: GatewayClient) => Promise<readonly string[] | undefined>;
  /** When a gateway is far enough; by default one of our own is when every server is up or has failed. */
  readonly until?: (client: GatewayClient) => Promise<boolean>;
}

export async function withGateway<T>(
  source: GatewaySource,
  io: Io,
  needs: GatewayNeeds,
  use: (gateway: VerbGateway) => Promise<T>,
): Promise<T> {
  const running = await (await runningGateway()).find(source);
  if (running !== undefined) {
    // It may have started a moment ago.
    if (needs.until !== undefined)
      await settle(running, io, needs.until, { why: "The gateway's servers are starting" });
    return use({ client: running, running: true });
  }
  const port = await gatewayPort();
  const { servers, tellsConfig = false } = needs;
  let { client, own } = await port.connect(source, { servers, tellsConfig, signal: io.signal });
  let starts: Starts | undefined;
  if (own !== undefined && needs.servers === "called") {
    starts = await closedUnless(own, () => startsOf(client, needs));
    if (starts === "none") return useOwn(client, own, use);
    if (starts === "all") {
      await own.close();
      ({ client, own } = await port.connect(source, { servers: true, tellsConfig, signal: io.signal }));
    }
  }
  if (own === undefined) return use({ client, running: true });
  if (source.others !== undefined) note(io, `No gateway runs for this config. ${source.others}`);
  const settled = async (gateway: VerbGateway): Promise<T> => {
    if (Array.isArray(starts)) startEach(starts, client, io.signal);
    // That none runs is said once: with those that do, or with what is waited for.
    const own = { isSaid: source.others !== undefined };
    if (needs.servers !== false) await settle(client, io, needs.until, { why: STARTING, own });
    return use(gateway);
  };
  return useOwn(client, own, settled);
}

/** Servers of a gateway that starts what is called, before anything is. */
type Starts = "none" | "all" | readonly string[];

async function startsOf(client: GatewayClient, { until, toStart }: GatewayNeeds): Promise<Starts> {
  if (await until?.(client)) return "none";
  return (await toStart?.(client)) ?? "all";
}

/** Nobody waits for it: how each start ends is in the status, which is asked until it is enough. */
function startEach(servers: readonly string[], client: GatewayClient, signal: AbortSignal): void {
  for (const name of servers) {
    // Each has a signal of its own: Node warns of more than ten that listen to one, and takes them for a leak.
    const own = AbortSignal.any([signal]);
    void client.post(`/servers/${encodeURIComponent(name)}/start`, {}, own).catch(() => {});
  }
}

/** Of one of our own that cannot be asked, nothing stays. */
async function closedUnless<T>(own: LocalGateway, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    await own.close();
    throw error;
  }
}

async function useOwn<T>(
  client: GatewayClient,
  own: LocalGateway,
  use: (gateway: VerbGateway) => Promise<T>,
): Promise<T> {
  try {
    return await use({ client, running: false });
  } finally {
    await own.close();
  }
}

const NONE_RUNS = "No gateway runs for this config";
const STARTING = "Starting its servers for this call";

interface Waiting {
  readonly why: string;
  /** Where it is a gateway of our own: whether it was said already that no other runs. */
  readonly own?: { isSaid: boolean };
}

/** Waits until the servers are up, have failed, or `until` says that enough are. */
async function settle(
  client: GatewayClient,
  io: Io,
  until: GatewayNeeds["until"],
  { why, own }: Waiting,
): Promise<void> {
  const started = Date.now();
  let said = false;
  let told = false;
  for (;;) {
    io.signal.throwIfAborted();
    const waited = Date.now() - started;
    const status = (await client.get("/status", io.signal)) as GatewayStatus;
    // Executors that are dialled are there by then, if only as ones that are being reached.
    const unreachable = own !== undefined && waited >= IDLE_GRACE_MS ? behindDialIns(status) : [];
    if (unreachable.length > 0 && !told) {
      told = true;
      note(
        io,
        `${noneRuns(own)}${NOBODY_DIALS}: ${unreachable.join(", ")}. Start it with \`toolway serve\`, and ask again.`,
      );
    }
    const pending = pendingServers(status, waited).filter((name) => !unreachable.includes(name));
    if (pending.length === 0 || waited > SETTLE_MS) return;
    if (until !== undefined && (await until(client))) return;
    if (!said && waited > NOTE_AFTER_MS) {
      said = true;
      note(io, `${noneRuns(own)}${why}: waiting for ${pending.join(", ")} …`);
    }
    await sleep(POLL_MS);
  }
}

const NOBODY_DIALS = "Without a gateway that runs, nobody reaches servers behind an executor that dials in";

/** That none runs, where it has not been said. */
function noneRuns(own: Waiting["own"]): string {
  if (own === undefined || own.isSaid) return "";
  own.isSaid = true;
  return `${NONE_RUNS}. `;
}

/** A gateway of our own listens nowhere: an executor that nobody dials never comes. Those that are dialled are shown. */
function behindDialIns({ servers, executors }: GatewayStatus): string[] {
  const absent = new Set(executors.filter(({ members }) => members.length === 0).map(({ name }) => name));
  return servers.filter(({ via }) => via !== undefined && absent.has(via)).map(({ name }) => name);
}

function pendingServers(status: GatewayStatus, waitedMs: number): string[] {
  return status.servers.filter((server) => isPending(server, waitedMs)).map(({ name }) => name);
}

/** Whether it is not known yet how its start ends. Up is not enough: its lists are read after that. */
export function isPending({ state, listsFromBefore, lastError }: ServerStatus, waitedMs: number): boolean {
  if (state === "ready") return listsFromBefore && lastError === undefined;
  // An executor that is dialled is known to be under way a moment after the start.
  return state === "starting" || ((state === "idle" || state === "waiting") && waitedMs < IDLE_GRACE_MS);
}

/** Says on stderr that something still goes on, once; `work` is not touched. */
export async function noteIfSlow<T>(io: Io, text: string, work: Promise<T>): Promise<T> {
  const timer = setTimeout(() => {
    if (io.isErrTTY) note(io, text);
  }, NOTE_AFTER_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
