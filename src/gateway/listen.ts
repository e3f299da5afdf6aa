// Opens the HTTP endpoint as the config says. It is loaded when a gateway listens: one that does not needs none of it.

import { readFileSync } from "node:fs";
import type { Config, ListenAddress } from "../config/config.js";
import type { Service } from "../contracts/service.js";
import { createHttpEndpoint, type HttpEndpoint } from "../endpoint/server.js";
import type { Log } from "../observe/log.js";
import { Fault } from "../protocol/errors.js";
import { isLoopback } from "../runtime/addresses.js";
import type { HeldBytes } from "../runtime/memory/held-bytes.js";
import type { GatewayState } from "./state.js";

export interface EndpointPlan {
  readonly config: Config;
  readonly address: ListenAddress;
  readonly service: Service;
  readonly state: GatewayState;
  readonly noAuth: boolean;
  readonly held: HeldBytes;
  readonly log: Log;
  /** Decides `/readyz`. */
  readonly ready: () => boolean;
}

export async function openEndpoint(plan: EndpointPlan): Promise<{ http: HttpEndpoint; url: string }> {
  const { config, address, service, state, noAuth, held, log, ready } = plan;
  if (noAuth && !isLoopback(address.host)) throw needsToken(address.host);
  const { limits } = config;
  const http = createHttpEndpoint({
    service,
    noAuth,
    authenticate: (token, nowMs) => state.tokens.authenticate(token, nowMs),
    sealer: state.sealer,
    records: state.sessions,
    ready,
    held,
    limits: {
      bodyBytes: limits.bodyBytes,
      batchMessages: limits.batch,
      depth: limits.depth,
      headerMs: limits.headerMs,
      connections: limits.connections,
      outputBytes: limits.outputBytes,
      ...questionLimits(config),
    },
    sessions: config.sessions,
    allowedHosts: config.allowedHosts,
    allowedOrigins: config.allowedOrigins,
    ...(config.tls === undefined ? {} : { tls: readTls(config.tls) }),
    log: (event) => {
      if (event.kind === "failed") log.error("a request failed inside the gateway", { error: event.error });
      else log.warn(`refused with ${event.status}: ${event.why}`, { path: event.path });
    },
  });
  const bound = await http.listen(address.host, address.port).catch((error: unknown) => {
    throw unbound(address, error);
  });
  // The name may lead elsewhere: the hosts file says where.
  if (noAuth && !isLoopback(bound.address)) {
    await http.close({ drainMs: 0 });
    throw needsToken(bound.address);
  }
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  return { http, url: `${config.tls === undefined ? "http" : "https"}://${host}:${bound.port}/mcp` };
}

/** How long agents of either era may take to answer a question of a server. */
export function questionLimits({ limits: { questionMs } }: Config): { askMs: number; parkedMs: number } {
  return { askMs: questionMs, parkedMs: questionMs };
}

/** Loopback by default; anything else needs a token. */
function needsToken(host: string): Fault {
  return new Fault("invalid", `Without tokens the gateway only listens on loopback, and ${host} is not.`);
}

function readTls(files: { cert: string; key: string }): { cert: Buffer; key: Buffer } {
  const read = (what: string, path: string): Buffer => {
    try {
      return readFileSync(path);
    } catch (cause) {
      throw new Fault("invalid", `The TLS ${what} ${path} cannot be read.`, { cause });
    }
  };
  const tls = { cert: read("certificate", files.cert), key: read("key", files.key) };
  try {
    // It is loaded here, since few gateways speak TLS themselves.
    process.getBuiltinModule("node:tls").createSecureContext(tls);
  } catch (cause) {
    const why = (cause as Error).message;
    throw new Fault("invalid", `${files.cert} and ${files.key} are no certificate and key (PEM) that fit: ${why}`, {
      cause,
    });
  }
  return tls;
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
