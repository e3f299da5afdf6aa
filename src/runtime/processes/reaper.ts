// Sees to it that children die with the gateway, however it dies: one small /bin/sh process that waits for our end
// of a pipe to close, and then kills. It stops no child while the gateway lives: that is the link's work.

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { systemClock } from "../clock.js";
import { resultWithin } from "../wait.js";
import { killMarked, MARKER_VARIABLE } from "./reaper-marker.js";

/**
 * Reads `+ PGID` and `- PGID`; at the end of its input it kills the groups once, then all that carry the marker $1,
 * until three looks in a row found none. It looks several times, because the end of input says only that every process
 * forked by the gateway has begun its exec (the pipe is close-on-exec): its new environment shows a moment later.
 *
 * Why it is safe with numbers that are used again: a group's number stays taken while any member lives, and the
 * gateway reports a group as gone in the turn in which it learns that. What remains is the time from the end of the
 * last member to that turn or, if the gateway dies, to our kill: some milliseconds. The kernel hands out numbers in a
 * circle, so one that became free in them comes again only after all others. Groups are killed once, at once, and
 * never later. All the rest goes by the marker, which no foreign process carries.
 *
 * dash wants `kill -s KILL -- -PGID`. `sleep 0.02` is not POSIX, so there is a second try.
 */
const SCRIPT = `
trap '' HUP INT TERM QUIT
groups=' '
while read -r verb id; do
  case $verb in
    +) groups="$groups$id " ;;
    -) case $groups in *" $id "*) groups="\${groups%%" $id "*} \${groups#*" $id "}" ;; esac ;;
  esac
done
for id in $groups; do kill -s KILL -- "-$id" 2>/dev/null; done
[ -e /proc/self/environ ] || exit 0
clean=0 pass=0
while [ $clean -lt 3 ] && [ $pass -lt 500 ]; do
  pass=$((pass + 1)) clean=$((clean + 1))
  for file in $(grep -lsF -e "$1" /proc/[0-9]*/environ); do
    pid=\${file#/proc/}
    kill -s KILL "\${pid%/environ}" 2>/dev/null && clean=0
  done
  sleep 0.02 2>/dev/null || sleep 1
done
`;

/** 128 bits: nobody else's marker contains it, so a plain search for the string is enough. */
const INSTANCE_BYTES = 16;

/** A reaper that ends sooner than this is not started again until the next child: something is wrong with it. */
const SHORT_LIFE_MS = 1_000;

/** It needs some 50 ms to see that nothing is left; with a process that resists it gives up by itself. */
const CLOSE_WAIT_MS = 3_000;

export interface ReaperOptions {
  /** hashStateDir(…) of the state directory, which this gateway holds the lock of. */
  readonly stateHash: string;
  /** Where `sh`'s tools are found. */
  readonly env?: NodeJS.ProcessEnv;
  /** It is told once when children cannot be guarded (no /bin/sh, no more processes). They run nevertheless. */
  readonly onProblem?: (message: string) => void;
}

export class Reaper {
  /** `<state hash>.<random>`: the family name of all children of this gateway. */
  readonly instance: string;
  readonly #options: ReaperOptions;
  readonly #groups = new Set<number>();
  #process: ChildProcess | undefined;
  #children = 0;
  #closing: Promise<void> | undefined;
  #complained = false;
  #toKill = new Set<string>();
  #search: Promise<void> = Promise.resolve();
  #nextSearch: Promise<void> | undefined;

  constructor(options: ReaperOptions) {
    this.#options = options;
    this.instance = `${options.stateHash}.${randomBytes(INSTANCE_BYTES).toString("hex")}`;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Is called before a spawn, and returns the marker for that child alone. The reaper is there when this returns. */
  prepare(): string {
    this.#ensure();
    this.#children++;
    return `${this.instance}.${this.#children}`;
  }

  /** A child was started as the leader of this group. */
  adopt(pgid: number): void {
    if (!Number.isSafeInteger(pgid) || pgid <= 1) throw new RangeError(`Not a process group: ${pgid}`);
    this.#groups.add(pgid);
    this.#ensure();
    this.#tell(`+ ${pgid}\n`);
  }

  /** The group is empty, or was just killed: its number may be somebody else's from now on. */
  release(pgid: number): void {
    if (this.#groups.delete(pgid)) this.#tell(`- ${pgid}\n`);
  }

  /** Kills what is left of one child, wherever it moved. Resolves when nothing carries the marker any more. */
  kill(marker: string): Promise<void> {
    this.#toKill.add(marker);
    // One search runs at a time, for all who asked before it began: a hundred sessions may end together.
    this.#nextSearch ??= this.#search.then(() => {
      const wanted = this.#toKill;
      this.#toKill = new Set();
      this.#nextSearch = undefined;
      this.#search = killMarked((other) => wanted.has(other)).then(() => {});
      return this.#search;
    });
    return this.#nextSearch;
  }

  /** Is called after all children were stopped. What is left nevertheless is killed by the reaper at its end. */
  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    const reaper = this.#process;
    if (reaper === undefined) return;
    reaper.ref();
    const exited = new Promise<void>((resolve) => reaper.once("exit", () => resolve()));
    reaper.stdin?.end();
    await resultWithin(exited, CLOSE_WAIT_MS);
    reaper.unref();
  }

  #ensure(): void {
    if (this.#process !== undefined || this.#closing !== undefined || process.platform === "win32") return;
    const startedAt = systemClock.now();
    const reaper = spawn("/bin/sh", ["-c", SCRIPT, "toolway-reaper", `${MARKER_VARIABLE}=${this.instance}.`], {
      // It has its own session: neither a terminal's signals nor ours to a group reach it.
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
      cwd: "/",
      // It has no marker, or it would kill itself (or be killed by the gateway that started this one).
      env: { PATH: `${this.#options.env?.["PATH"] ?? ""}:/usr/bin:/bin` },
    });
    this.#process = reaper;
    reaper.on("error", (error) => this.#lost(reaper, error.message));
    reaper.on("exit", (code, signal) => {
      if (this.#process !== reaper || this.#closing !== undefined) return;
      if (systemClock.now() - startedAt < SHORT_LIFE_MS) this.#lost(reaper, `it ended with ${signal ?? code}`);
      else {
        this.#process = undefined;
        if (this.#groups.size > 0) this.#ensure();
      }
    });
    // It must not keep the gateway alive, and its end (EPIPE) must not end the gateway.
    reaper.unref();
    (reaper.stdin as Socket | null)?.unref();
    reaper.stdin?.on("error", () => {});
    for (const pgid of this.#groups) this.#tell(`+ ${pgid}\n`);
  }

  #lost(reaper: ChildProcess, why: string): void {
    if (this.#process !== reaper || this.#closing !== undefined) return;
    this.#process = undefined;
    if (this.#complained) return;
    this.#complained = true;
    this.#options.onProblem?.(`The reaper is not running: ${why}. Servers may outlive a crash of the gateway.`);
  }

  #tell(line: string): void {
    this.#process?.stdin?.write(line);
  }
}

/**
 * Kills what earlier gateways of this state directory left behind (their reaper was killed too). Only the holder of
 * the directory's lock calls it. It goes by the marker alone, never by remembered numbers. Returns how many it killed.
 */
export function sweepOrphans(stateHash: string, exceptInstance: string | undefined): Promise<number> {
  return killMarked(
    (marker) =>
      marker.startsWith(`${stateHash}.`) && (exceptInstance === undefined || !marker.startsWith(`${exceptInstance}.`)),
  );
}
