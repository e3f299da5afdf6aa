// An executor with its connections: reads the rules, takes sockets in or dials them, and closes all of it. Loaded by
// `toolway executor` alone. It imports nothing of the command line: what two chunks of the bundle share becomes a file
// of its own, which every other verb would have to open.

import { Destinations } from "../../executor/allow/destinations.js";
import { type Explanation, explain, explanationLines } from "../../executor/allow/explain.js";
import { type DialState, dialGateway } from "../../executor/server/dial-out.js";
import { createExecutor, type Executor } from "../../executor/server/executor.js";
import { listenForClients } from "../../executor/server/listener.js";
import { STOP_MS } from "../../executor/wire/limits.js";
import type { ExecutorLog } from "../../executor/wire/types.js";

/** What happens to its connections. */
export interface DoorEvents {
  connected(gateway?: string): void;
  /** `nextTryInMs` is there where it dials. */
  disconnected(why: string, gateway?: string, nextTryInMs?: number): void;
}

export interface DoorOptions {
  readonly rules: readonly string[];
  readonly token: string | undefined;
  readonly log: ExecutorLog;
  readonly events: DoorEvents;
}

export interface OpenDoors {
  /** Where it listens, with the port that it got. */
  readonly url: string | undefined;
  /** Takes no new requests, and waits for those under way, for `ms` at the longest; STOP_MS unless told. */
  finish(ms?: number): Promise<void>;
  /** Ends what is under way, and all connections. */
  close(): Promise<void>;
}

/** Throws RuleError, and what a listening socket fails with. */
export async function listenAt(address: { host: string; port: number }, options: DoorOptions): Promise<OpenDoors> {
  const { token, log, events } = options;
  const executor = executorOf(options);
  const serve: Executor["serve"] = (socket) => {
    const served = executor.serve(socket);
    events.connected();
    void served.closed.then((why) => events.disconnected(why));
    return served;
  };
  const listener = await listenForClients({ serve }, { ...address, token, log }).catch(async (error: unknown) => {
    await executor.close();
    throw error;
  });
  const close = async (): Promise<void> => {
    await listener.close();
    await executor.close();
  };
  return { url: listener.url, finish: (ms = STOP_MS) => executor.finish(ms), close };
}

/** Throws RuleError. Dials every gateway, and again after each loss. */
export function dialAll(gateways: readonly string[], options: DoorOptions): OpenDoors {
  const { token, log, events } = options;
  const executor = executorOf(options);
  const dialled = gateways.map((url) => {
    const onState = (state: DialState): void => {
      if (state.state === "connected") events.connected(url);
      if (state.state === "waiting") events.disconnected(state.why, url, state.retryMs);
    };
    return dialGateway(executor, { url, token, log, onState });
  });
  const close = async (): Promise<void> => {
    await Promise.all(dialled.map((one) => one.close()));
    await executor.close();
  };
  return { url: undefined, finish: (ms = STOP_MS) => executor.finish(ms), close };
}

/** Throws RuleError. Says what is to be said of each URL, as data and in lines. */
export async function explainAll(
  rules: readonly string[],
  urls: readonly string[],
): Promise<{ readonly found: readonly Explanation[]; readonly lines: readonly string[] }> {
  const destinations = Destinations.parse(rules);
  const found: Explanation[] = [];
  for (const url of urls) found.push(await explain(url, destinations));
  return { found, lines: found.map((one) => explanationLines(one).join("\n")) };
}

function executorOf({ rules, log }: DoorOptions): Executor {
  return createExecutor({ destinations: Destinations.parse(rules), log });
}
