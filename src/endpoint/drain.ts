// How an HTTP endpoint ends: what is in flight is waited for, streams get their end, connections go last.

import type { Server } from "node:http";
import { Server as NetServer } from "node:net";
import { sleep } from "../runtime/wait.js";

/** The drain looks this often, which is its precision. */
const LOOK_MS = 20;
/**
 * So many looks without anything in flight mean that nothing more comes: a client that is about to send its next
 * request on a kept connection gets a quarter of a second to do it, and to hear "close". Looks and not time, because
 * a busy machine may let the time pass without reading what has arrived.
 */
const QUIET_LOOKS = 12;
/** So many connections may wait to be taken in: this is the length of the kernel's queue. */
export const BACKLOG = 1024;
/** After so many turns of the event loop without a connection the queue is empty; the first may have begun before. */
const QUIET_TURNS = 3;
/** Answers that were given at the end of the drain have so long to leave. */
const FLUSH_MS = 1000;

export interface Draining {
  readonly server: Server;
  readonly drainMs: number;
  inFlight(): number;
  /** How many connections are no HTTP any more. They outlive the server, and whoever has them ends them. */
  upgraded?(): number;
  /** How many streams of other gateways are open, each with a request. The server does not count them. */
  passed?(): number;
  /** From here on, whoever is not connected yet is told to come back later. */
  refuseNew(): void;
  /** Answers what is left with an error, and ends all streams. */
  endAll(): void;
}

/**
 * Requests on connections that are already there are still served meanwhile, each with "Connection: close". It goes on
 * listening until the end, because an answer that says when to come back is better than a refused connection.
 */
export async function drain(draining: Draining): Promise<void> {
  const { server, drainMs, inFlight, refuseNew, endAll, upgraded = () => 0, passed = () => 0 } = draining;
  const isAnybodyThere = async () => (await connections(server)) + passed() > upgraded();
  const started = performance.now();
  await takeIn(server);
  refuseNew();
  let quiet = 0;
  while (quiet < QUIET_LOOKS && performance.now() - started < drainMs && (await isAnybodyThere())) {
    await pause();
    quiet = inFlight() === 0 ? quiet + 1 : 0;
  }
  endAll();
  await takeIn(server);
  // http's own close() would cut kept connections at once, under a request that is on its way.
  NetServer.prototype.close.call(server);
  // Large replies may still be on their way to slow readers.
  const deadline = Math.max(started + drainMs, performance.now() + FLUSH_MS);
  while (performance.now() < deadline) {
    server.closeIdleConnections();
    if (!(await isAnybodyThere())) break;
    await pause();
  }
  server.closeAllConnections();
  // Node's own end waits for those too.
  if (upgraded() === 0) await new Promise<void>((resolve) => server.close(() => resolve()));
}

/**
 * To a client, a connection in the kernel's queue is open, and its request on its way; closing would reset it.
 * On a busy machine many can stand there, and a turn of the event loop takes in one.
 */
async function takeIn(server: Server): Promise<void> {
  let came = false;
  const note = () => {
    came = true;
  };
  server.on("connection", note);
  for (let turns = 0, quiet = 0; turns < BACKLOG && quiet < QUIET_TURNS; turns++) {
    came = false;
    await new Promise((resolve) => setImmediate(resolve));
    quiet = came ? 0 : quiet + 1;
  }
  server.off("connection", note);
}

function pause(): Promise<void> {
  return sleep(LOOK_MS);
}

function connections(server: Server): Promise<number> {
  return new Promise((resolve) => server.getConnections((_error, count) => resolve(count ?? 0)));
}
