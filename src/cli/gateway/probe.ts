// Tries one server for `doctor`: by itself, through an executor that is dialled for it, or by the gateway that runs where
// only that one reaches its executor.

import type { ServerSpec } from "../../contracts/server-spec.js";
import type { GatewayStatus } from "../../contracts/status.js";
import { Credentials } from "../../credentials/credentials.js";
import { Executors } from "../../gateway/executors.js";
import { SILENT } from "../../observe/log.js";
import { systemClock } from "../../runtime/clock.js";
import { Reaper } from "../../runtime/processes/reaper.js";
import { hashStateDir } from "../../runtime/processes/reaper-marker.js";
import { packageVersion } from "../../runtime/version.js";
import { sleep } from "../../runtime/wait.js";
import { requestShortly } from "../../upstream/http/short-request.js";
import { linkMaker } from "../../upstream/links.js";
import { type ProbeResult, probeServer } from "../../upstream/probe.js";
import { failedProbe } from "./failed-probe.js";
import type { GatewayClient, Probe, ProbeOptions } from "./port.js";
import { find } from "./running.js";

/** So often the gateway is asked whether its executor has come. */
const LOOK_MS = 200;

/** An executor that was just started has so long to dial in: it does so at once, and again every ten seconds at most. */
const DIAL_IN_MS = 10_000;

export async function probe(spec: ServerSpec, options: ProbeOptions): Promise<Probe> {
  const { signal, executors: configs = [], watch } = options;
  const wanted = "via" in spec.target ? spec.target.via : undefined;
  const via = configs.find(({ name }) => name === wanted);
  if (via !== undefined && via.urls.length === 0) return probeByGateway(spec, via.name, options);
  if ("auth" in spec.target && spec.target.auth?.from === "oauth") return probeLogin(spec, options);
  // A wrong token or address of an executor is told at its first failure.
  const executors = new Executors(SILENT, undefined, { isImpatient: true });
  executors.apply(via === undefined ? [] : [via]);
  const reaper = new Reaper({ stateHash: hashStateDir(`probe ${process.pid}`), env: process.env });
  const credentials = new Credentials({
    env: process.env,
    reaper,
    send: (target) => (request) => requestShortly(target, request, executors.openRequester),
  });
  try {
    const makeLink = linkMaker({
      reaper,
      env: process.env,
      openRequester: executors.openRequester,
      credentialOf: (server, target) => credentials.of(server, target),
    });
    const clientInfo = { name: "toolway", version: packageVersion() };
    return await probeServer(spec, { makeLink, clientInfo, now: systemClock.now, watch }, signal);
  } finally {
    await credentials.close();
    await executors.close();
    await reaper.close();
  }
}

/** Nobody but a gateway that runs is dialled by an executor. */
async function probeByGateway(spec: ServerSpec, executor: string, { source, signal }: ProbeOptions): Promise<Probe> {
  const running = source === undefined ? undefined : await find(source);
  if (running !== undefined) {
    return askGateway(running, { name: spec.name, executor, waitMs: spec.connectTimeoutMs }, signal);
  }
  const message = `Executor "${executor}" dials in to the gateway, and none runs that could try this server through it.`;
  const remedy = "Start the gateway (`toolway serve`) and the executor, and ask again.";
  return { ...failedProbe({ reason: "no-executor", message, remedy }), untried: true };
}

/** Its tokens are in the state of the gateway, which alone may renew them. */
async function probeLogin(spec: ServerSpec, { source, signal }: ProbeOptions): Promise<Probe> {
  const running = source === undefined ? undefined : await find(source);
  if (running !== undefined) {
    return askGateway(running, { name: spec.name, executor: undefined, waitMs: spec.connectTimeoutMs }, signal);
  }
  const message = "Its login is kept by the gateway, and none runs that could try this server.";
  const remedy = "Start the gateway (`toolway serve`), and ask again.";
  return { ...failedProbe({ reason: "oauth", message, remedy }), untried: true };
}

interface Asked {
  readonly name: string;
  /** Undefined where none is needed. */
  readonly executor: string | undefined;
  /** As long as the server's own start may take. */
  readonly waitMs: number;
}

/** One behind an executor that dials in is reached by nobody but the gateway that runs, and so is one with a login. */
async function askGateway(client: GatewayClient, asked: Asked, signal: AbortSignal): Promise<Probe> {
  const { name, executor } = asked;
  const until = performance.now() + Math.min(asked.waitMs, DIAL_IN_MS);
  for (;;) {
    signal.throwIfAborted();
    const { servers, executors } = (await client.get("/status", signal)) as GatewayStatus;
    if (!servers.some((server) => server.name === name)) {
      const remedy = "It reads its config when the file changes: `toolway status` says what keeps it from that.";
      return failedProbe({ message: "The gateway that runs does not have this server.", remedy });
    }
    if (executor === undefined || executors.find((one) => one.name === executor)?.ready === true) {
      return (await client.post(`/servers/${encodeURIComponent(name)}/probe`, {}, signal)) as ProbeResult;
    }
    if (performance.now() >= until) return nobodyThere(executor);
    await sleep(LOOK_MS);
  }
}

function nobodyThere(executor: string): Probe {
  const message = `No executor "${executor}" is connected to the gateway that runs.`;
  const remedy = `Start one in its network: \`toolway executor --connect ws://GATEWAY/executors/${encodeURIComponent(executor)} --allow HOST\`. If one runs, its log says why it does not get in.`;
  return failedProbe({ reason: "no-executor", message, remedy });
}
