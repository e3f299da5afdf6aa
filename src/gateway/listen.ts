// Opens the HTTP endpoint as the config says. It is loaded when a gateway listens: one that does not needs none of it.

import type { Config, ListenAddress } from "../config/config.js";
import type { Service } from "../contracts/service.js";
import { createHttpEndpoint, type EndpointSettings, type HttpEndpoint } from "../endpoint/server.js";
import { connectionLog } from "../observe/debug-log.js";
import type { Log } from "../observe/log.js";
import { Fault } from "../protocol/errors.js";
import { isLoopback } from "../runtime/addresses.js";
import { Certificate, readCertificate } from "./certificate.js";
import { AGENTS, homesOf } from "./engine/homes.js";
import { RefusalLog } from "./refusal-log.js";
import { isBrokerAlone, type Stages } from "./stages.js";
import type { GatewayState } from "./state/state.js";

export interface EndpointPlan {
  readonly config: Config;
  readonly address: ListenAddress;
  readonly service: Service;
  readonly state: GatewayState;
  readonly noAuth: boolean;
  /** What is held is counted there, and so is what is refused. */
  readonly stages: Pick<Stages, "held" | "records" | "catalog" | "servers">;
  readonly log: Log;
  /** Decides `/readyz`. */
  readonly ready: () => boolean;
}

export interface OpenEndpoint {
  readonly http: HttpEndpoint;
  readonly url: string;
  /** Undefined where it does not speak TLS itself. */
  readonly certificate: Certificate | undefined;
}

export async function openEndpoint(plan: EndpointPlan): Promise<OpenEndpoint> {
  const { config, address, service, state, noAuth, log, ready } = plan;
  const { held, records, catalog, servers } = plan.stages;
  const { engine } = state;
  if (noAuth && !isLoopback(address.host)) throw needsToken(address.host);
  const refusals = new RefusalLog(log);
  const http = createHttpEndpoint({
    service,
    noAuth,
    authenticate: (token, nowMs) => state.tokens.authenticate(token, nowMs),
    isCurrent: (principal, nowMs) => state.tokens.isCurrent(principal, nowMs),
    sealer: state.sealer,
    records: state.sessions,
    ready,
    staleForMs: engine && (() => engine.staleForMs()),
    homes: engine && homesOf(engine, catalog, servers, (text) => log.info(text)),
    held,
    isBroker: isBrokerAlone(config),
    ...endpointSettings(config),
    onConnection: connectionLog(log),
    ...(config.tls === undefined ? {} : { tls: readCertificate(config.tls) }),
    log: (event) => {
      if (event.kind === "failed") log.error("a request failed inside the gateway", { error: event.error });
      else {
        if (event.status === 401) {
          records.eventMetrics.refused("token");
          records.audit?.refusedToken(event.address ?? "", event.path, event.why);
        }
        refusals.refused(event);
      }
    },
  });
  if (engine !== undefined) {
    state.sessions.watch((key, record) => http.sessionTold(key, record));
    engine.peers.accept(AGENTS, (stream) => http.takePassed(stream));
  }
  const bound = await http.listen(address.host, address.port).catch((error: unknown) => {
    throw unbound(address, error);
  });
  // The name may lead elsewhere: the hosts file says where.
  if (noAuth && !isLoopback(bound.address)) {
    await http.close({ drainMs: 0 });
    throw needsToken(bound.address);
  }
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  const certificate = config.tls === undefined ? undefined : new Certificate(http, config.tls, log);
  return { http, certificate, url: `${config.tls === undefined ? "http" : "https"}://${host}:${bound.port}/mcp` };
}

/** What of the config an endpoint follows while it runs. */
export function endpointSettings(config: Config): EndpointSettings {
  const { limits, sessions, allowedHosts, allowedOrigins } = config;
  return {
    limits: {
      bodyBytes: limits.bodyBytes,
      batchMessages: limits.batch,
      depth: limits.depth,
      headerMs: limits.headerMs,
      connections: limits.connections,
      outputBytes: limits.outputBytes,
      ...questionLimits(config),
    },
    sessions,
    allowedHosts,
    allowedOrigins,
  };
}

/** How long agents of either era may take to answer a question of a server. */
export function questionLimits({ limits: { questionMs } }: Config): { askMs: number; parkedMs: number } {
  return { askMs: questionMs, parkedMs: questionMs };
}

/** Loopback by default; anything else needs a token. */
function needsToken(host: string): Fault {
  return new Fault("invalid", `Without tokens the gateway only listens on loopback, and ${host} is not.`);
}

function unbound({ host, port }: ListenAddress, cause: unknown): Fault {
  const code = (cause as NodeJS.ErrnoException).code;
  const why: Record<string, string> = {
    EADDRINUSE: "Something else listens there. Stop it, or choose another port with --listen.",
    EACCES: "This port needs rights that the process does not have. Choose one above 1023 with --listen.",
    EADDRNOTAVAIL: "This machine has no such address. Use 127.0.0.1, or one that it has.",
    ENOTFOUND: "There is no such host name. Use 127.0.0.1, or an address of this machine.",
  };
  return new Fault("unavailable", `Cannot listen on ${host}:${port}. ${why[code ?? ""] ?? String(cause)}`, { cause });
}
