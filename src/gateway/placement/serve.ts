// The end of a stream at the gateway that runs a server for all: another gateway is its agent, in the modern era. Loaded with the
// first that comes.

import type { Duplex } from "node:stream";
import { createStdioEndpoint, type ExtraLines } from "../../endpoint/stdio/stdio.js";
import { OPERATOR } from "../../pipeline/access.js";
import type { Pipeline } from "../../pipeline/pipeline.js";
import type { HeldBytes } from "../../runtime/memory/held-bytes.js";
import { MIB } from "../../runtime/sizes.js";
import { resultWithin } from "../../runtime/wait.js";
import { wordLine } from "../../upstream/placed/words.js";
import type { ServerPool } from "../../upstream/servers.js";
import { serverIdentity } from "../state/server-identity.js";
import { firstLine } from "./first-line.js";
import { OneServer } from "./one-server.js";
import type { PlaceAnswer, PlaceHello, ServerPlaces } from "./places.js";

/** For whoever began a stream to say for which server. */
const HELLO_MS = 5_000;
/** A start is waited for, less long than whoever asks waits for our answer. */
const START_MS = 15_000;
/** What is under way may end in so long when the server leaves: the child was given as much. */
const LEAVE_MS = 2_000;
/**
 * A gateway stands for all of its agents: as many calls as a connection has in flight, each parked at most, and one that listens
 * to all that any of them subscribed to. A question waits for its agent as long as there.
 */
const OF_A_GATEWAY = { callsPerSession: 10_000, parkedPerPrincipal: 1_000, listenUris: 10_000, bodyBytes: 64 * MIB };

interface ServeParts {
  readonly places: ServerPlaces;
  readonly servers: ServerPool;
  readonly pipeline: Pipeline;
  readonly held: HeldBytes;
  readonly failed: (error: unknown) => void;
}

/** Resolves when the stream is over. */
export async function servePlaced(stream: Duplex, parts: ServeParts): Promise<void> {
  let hello: PlaceHello;
  try {
    hello = await firstLine<PlaceHello>(stream, AbortSignal.timeout(HELLO_MS));
    const answer = await answerTo(hello, parts);
    stream.write(`${JSON.stringify(answer)}\n`);
    if (answer.kind !== "here") {
      stream.end();
      return;
    }
  } catch {
    stream.destroy();
    return;
  }
  const { places, servers, pipeline, held, failed } = parts;
  const { server, secret, asWritten } = hello;
  const endpoint = createStdioEndpoint({
    service: new OneServer({ server, servers, pipeline, mayRun: () => places.mayRun(server) }),
    input: stream,
    output: stream,
    principal: OPERATOR,
    takesAnyOutput: true,
    scope: server,
    limits: OF_A_GATEWAY,
    held,
    ...(asWritten === undefined ? {} : { asWritten }),
    ...(secret === undefined ? {} : { extraLines: linesUnder(secret) }),
    log: (event) => {
      if (event.kind === "failed") failed(event.error);
    },
  });
  const unheard = pipeline.tasks.onNews(server, ({ text }) => endpoint.tell(text));
  // It was paused behind its first line.
  stream.resume();
  const unended = places.endsWith(server, async (isInTime) => {
    await endpoint.close({ drainMs: isInTime ? LEAVE_MS : 0 });
    stream.destroy();
  });
  try {
    await endpoint.closed;
  } finally {
    unended();
    unheard();
    stream.destroy();
  }
}

/** What is ours to say, and not the server's: what was not begun here, and how far was read. */
function linesUnder(secret: string): ExtraLines {
  return {
    instead: (reply, id) =>
      reply.kind === "error" && reply.fault?.code === "unavailable" && reply.fault.reason === "moved"
        ? wordLine(secret, { moved: Number(id) })
        : undefined,
    last: (taken) => wordLine(secret, { taken }),
  };
}

async function answerTo(
  { v, server, identity, asWritten }: PlaceHello,
  { places, servers }: ServeParts,
): Promise<PlaceAnswer> {
  const one = v === 1 ? servers.supervised(server) : undefined;
  if (one === undefined || one.spec.placement !== "one" || serverIdentity(one.spec.target) !== identity) {
    return { kind: "differs" };
  }
  if (!places.mayRun(server)) return { kind: "moved" };
  if (one.intro === undefined) {
    if (one.isStopped) return { kind: "down", why: "it was stopped" };
    one.ensure();
    await resultWithin(one.firstTry, START_MS);
  }
  if (!places.mayRun(server)) return { kind: "moved" };
  if (one.intro === undefined) return { kind: "down", why: one.trouble ?? "it has not started yet" };
  return { kind: "here", serverEra: one.intro.era ?? "legacy", ...(asWritten === undefined ? {} : { asWritten }) };
}
