// What `toolway logs` does: shows what servers wrote to stderr, from the files that the gateway keeps of it, and goes on
// with what they write. It is loaded when that verb runs.

import { loggedServers, type ServerLine } from "../../observe/server-logs/files.js";
import { Follower } from "../../observe/server-logs/reader.js";
import { nearest } from "../../runtime/nearest.js";
import { type GatewaySource, runningGateway } from "../gateway/port.js";
import { Exit, UserError } from "../line/errors.js";
import { type Io, note, pauseBetweenLooks, print, shown } from "../line/io.js";
import { styleOf } from "../text/print.js";

/** Often enough to watch; a look is a few calls of the system. */
const LOOK_MS = 250;

interface Wanted {
  readonly source: GatewaySource;
  /** Undefined for all of them. */
  readonly server: string | undefined;
  /** So many of the last lines. */
  readonly count: number;
  readonly follow: boolean;
  readonly json: boolean;
}

export async function showLogs({ source, server: named, count, follow: goesOn, json }: Wanted, io: Io): Promise<0> {
  const { stateDir } = source;
  const known = loggedServers(stateDir);
  if (named !== undefined && !known.includes(named)) {
    const error = await unknown(named, known, source);
    // One of the config may write yet; a name that is wrong would be waited for without an end.
    if (!goesOn || error.kind === "usage") throw error;
  }
  const chosen = () => (named === undefined ? loggedServers(stateDir) : [named]);
  const write = writer(io, { json, named: named === undefined });
  const followers = new Map(chosen().map((server) => [server, new Follower(stateDir, server)]));
  try {
    const before = await Promise.all([...followers.values()].map((follower) => follower.begin(count)));
    const last = byTime(before.flat());
    write(last.slice(Math.max(0, last.length - count)));
    if (!goesOn) {
      if (known.length === 0) note(io, "No server of this config has written anything to stderr yet.");
      return Exit.ok;
    }
    if (count > 0 && last.length === 0) note(io, await waitingText(named, source));
    // One may write its first line while we watch: from its beginning, since all of it is new.
    const all = (): Iterable<Follower> => {
      for (const server of chosen()) {
        if (!followers.has(server)) followers.set(server, new Follower(stateDir, server));
      }
      return followers.values();
    };
    await follow(all, write, io);
  } finally {
    for (const follower of followers.values()) await follower.close();
  }
  return Exit.ok;
}

/** What there is to wait for, and whether it can come. */
async function waitingText(server: string | undefined, source: GatewaySource): Promise<string> {
  const who = server ?? "No server of this config";
  const what = server === undefined ? "has written anything" : "has written nothing";
  const isUp = (await (await runningGateway()).find(source)) !== undefined;
  const next = isUp
    ? "Waiting for the first line; Ctrl-C ends this."
    : "No gateway runs for it: there are lines when one does. Ctrl-C ends this.";
  return `${who} ${what} to stderr yet. ${next}`;
}

async function unknown(server: string, known: readonly string[], source: GatewaySource): Promise<UserError> {
  const near = nearest(server, known);
  const there = known.length === 0 ? "No server has written anything yet." : `There are lines of ${known.join(", ")}.`;
  return new UserError(`Nothing that server ${server} wrote is kept.`, {
    // One of the config has merely been quiet.
    kind: (await isInConfig(server, source)) ? "failed" : "usage",
    hint:
      near === undefined
        ? `${there} Servers that are reached over HTTP have their logs where they run.`
        : `Did you mean ${near}?`,
  });
}

async function isInConfig(server: string, { configPath, env, home }: GatewaySource): Promise<boolean> {
  // The built-in demo: what it has is not worth a look.
  if (configPath === undefined) return server === "demo";
  const { loadConfig } = await import("../../config/load.js");
  try {
    const { servers, misconfigured, disabled } = loadConfig(configPath, { env, home, wrongEntries: "keep" });
    return [...servers, ...misconfigured].some(({ name }) => name === server) || disabled.includes(server);
  } catch {
    // What is wrong with the file is for other verbs to tell.
    return true;
  }
}

/** Until the signal; that is how it ends. */
async function follow(
  all: () => Iterable<Follower>,
  write: (lines: readonly ServerLine[]) => void,
  io: Io,
): Promise<void> {
  while (!io.signal.aborted) {
    const lines = await Promise.all([...all()].map((follower) => follower.look()));
    write(byTime(lines.flat()));
    await pauseBetweenLooks(io, LOOK_MS);
  }
}

/** Lines of one server stay in their order. */
function byTime(lines: ServerLine[]): ServerLine[] {
  return lines.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
}

function writer(io: Io, { json, named }: { json: boolean; named: boolean }): (lines: readonly ServerLine[]) => void {
  const style = styleOf(io);
  return (lines) => {
    for (const line of lines) {
      if (json) print(io, JSON.stringify(line));
      else {
        const { server, time, text } = shown(line, io.isTTY);
        print(io, `${style.dim(time)} ${named ? `${style.bold(server)} ` : ""}${text}`);
      }
    }
  };
}
