// What is known of how an engine keeps what it acknowledges: from the connection, and from the monitoring port where the config
// names one.

import { messageOf } from "../../runtime/expected-error.js";
import type { Engine } from "../../store/nats/connection.js";
import type { EngineFacts } from "../../store/nats/versions.js";

/** To ask the monitoring port, whose answer has some kB. */
const MONITOR_MS = 5_000;

/** `problem`: why the monitoring port could not be asked. */
export async function engineFacts(engine: Engine): Promise<{ facts: EngineFacts; problem: string | undefined }> {
  const { settings, connection } = engine;
  const sync = await monitored(settings.monitor);
  const facts: EngineFacts = {
    version: engine.version,
    // What the node tells of its cluster, itself included; of a node alone it tells nothing.
    nodes: Math.max(1, connection.info?.connect_urls?.length ?? 0, sync.nodes ?? 0),
    replicas: settings.replicas,
    syncsAlways: sync.always,
  };
  return { facts, problem: sync.problem };
}

interface Monitored {
  readonly always: boolean | undefined;
  readonly nodes: number | undefined;
  readonly problem: string | undefined;
}

/** What only the monitoring port says. */
async function monitored(url: string | undefined): Promise<Monitored> {
  const nothing = { always: undefined, nodes: undefined, problem: undefined };
  if (url === undefined) return nothing;
  try {
    const answer = await fetch(`${url}/jsz`, { signal: AbortSignal.timeout(MONITOR_MS), redirect: "error" });
    if (!answer.ok) throw new Error(`it answered ${answer.status}`);
    const { config, meta_cluster: cluster } = (await answer.json()) as {
      config?: { sync_always?: boolean; sync_interval?: number };
      meta_cluster?: { cluster_size?: number };
    };
    // A server that knows the setting names its interval; one that does not, neither.
    const always = config?.sync_always ?? (config?.sync_interval === undefined ? undefined : false);
    return { always, nodes: cluster?.cluster_size, problem: undefined };
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return {
      ...nothing,
      problem: `The monitoring address ${url} cannot be asked (${messageOf(cause)}). Mend "monitor" in "engine", or remove it.`,
    };
  }
}
