// Tries one server for `doctor`: by itself, through an executor that is dialled for it, or by the gateway that runs where
// only that one reaches its executor.

import type { ServerSpec } from "../../contracts/server-spec.js";
import { Credentials } from "../../credentials/credentials.js";
import { Executors } from "../../gateway/executors.js";
import { SILENT } from "../../observe/log.js";
import { systemClock } from "../../runtime/clock.js";
import { Reaper } from "../../runtime/processes/reaper.js";
import { hashStateDir } from "../../runtime/processes/reaper-marker.js";
import { packageVersion } from "../../runtime/version.js";
import { requestShortly } from "../../upstream/http/short-request.js";
import { linkMaker } from "../../upstream/links.js";
import { probeServer } from "../../upstream/probe.js";
import { askGateway } from "./ask-gateway.js";
import { failedProbe } from "./failed-probe.js";
import type { Probe, ProbeOptions } from "./port.js";
import { find } from "./running.js";

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
    send: (target) => (request) => requestShortly(target, request, executors.openWire),
  });
  try {
    const makeLink = linkMaker({
      reaper,
      env: process.env,
      openWire: executors.openWire,
      credentialOf: (server, target) => credentials.of(server, target),
    });
    const clientInfo = { name: "toolway", version: packageVersion() };
    return await probeServer(spec, { makeLink, clientInfo, now: systemClock.now, watch }, signal);
  } finally {
    credentials.close();
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
