// Where a gateway keeps its state, and the lock that lets one gateway at a time have it. Knows nothing of what is
// kept there.
//
// Node has no flock(2). On macOS and the BSDs open(2) takes it along (O_EXLOCK), which the kernel drops when the
// process dies. On Linux a listening Unix socket proves that its process lives: the kernel refuses connections the
// moment it is dead, whatever killed it, also across containers that share the directory, where process ids mean
// nothing. Sockets are named lock.1, lock.2, …; the highest number holds:
//   - a starter listens under a name of its own first, then takes the next number with link(2), which only one can:
//     whatever bears a number listens, or is dead;
//   - it takes a number only after the highest one refused a connection;
//   - the highest is never removed, so numbers only rise. A starter that was so slow that its number is no longer
//     the highest sees that after taking it, and steps back.

import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  existsSync,
  constants as fsConstants,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { basename, dirname, extname, isAbsolute, join, resolve } from "node:path";
import { ExpectedError } from "./expected-error.js";

/** Long enough to be told apart in a listing, short enough for the paths of sockets. */
const MAX_NAME_CHARS = 32;
const HASH_CHARS = 10;
/** Paths of Unix sockets hold 108 bytes on Linux with the final zero. */
const MAX_SOCKET_PATH_BYTES = 107;
/** A starter steps back only when another one moved; with this many in a row something is wrong. */
const MAX_ATTEMPTS = 50;
/** Same on macOS, FreeBSD and OpenBSD; Node passes flags through but does not name this one. */
const O_EXLOCK = 0x20;

export type StateDirErrorCode = "held" | "unsafe" | "failed";

export class StateDirError extends ExpectedError {
  override readonly name = "StateDirError";
  override readonly kind = "failed";
  readonly code: StateDirErrorCode;
  /** Who holds the lock, where that could be read. */
  readonly pid: number | undefined;

  constructor(code: StateDirErrorCode, message: string, pid?: number) {
    super(message);
    this.code = code;
    this.pid = pid;
  }
}

export interface StateLock extends AsyncDisposable {
  readonly dir: string;
  release(): Promise<void>;
}

/** The folder that the state directories of this user are in, and the list of the gateways that run. Makes nothing. */
export function stateRootFor(env: Readonly<Record<string, string | undefined>>, home: string): string {
  const xdg = env["XDG_STATE_HOME"];
  // The XDG specification: a relative path is to be ignored.
  const base = xdg !== undefined && isAbsolute(xdg) ? xdg : join(home, ".local", "state");
  return join(base, "toolway");
}

/** The usual state directory of a config; of the built-in one when there is no path. Makes nothing. */
export function stateDirFor(
  configPath: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  home: string,
): string {
  const root = stateRootFor(env, home);
  if (configPath === undefined) return join(root, "default");
  const path = realPath(configPath);
  const name = basename(path, extname(path))
    .replace(/[^A-Za-z0-9_-]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, MAX_NAME_CHARS);
  const hash = createHash("sha256").update(path).digest("hex").slice(0, HASH_CHARS);
  return join(root, `${name === "" ? "config" : name}-${hash}`);
}

/** Two ways to one file are one config. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

/** Node 20's recursive mkdir never returns where a file system has nothing to make a directory in, such as /proc. */
function makeDir(dir: string): string {
  try {
    const missing: string[] = [];
    for (let at = resolve(dir); !existsSync(at); at = dirname(at)) missing.push(at);
    for (const path of missing.reverse()) {
      try {
        mkdirSync(path, { mode: 0o700 });
      } catch (error) {
        // Another starter was faster.
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
    }
    if (lstatSync(realpathSync(dir)).isDirectory()) return realpathSync(dir);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new StateDirError(
      "failed",
      `The state directory ${dir} cannot be made: ${code}. Use another one (--state DIR).`,
    );
  }
  throw new StateDirError("failed", `${dir} is not a directory. Use another one (--state DIR).`);
}

/** Makes the directory (0700), or checks that it is ours alone. */
export function ensureStateDir(dir: string): void {
  const isNew = !existsSync(dir);
  const real = makeDir(dir);
  // It holds tokens and keys, and may be in somebody's repository.
  if (isNew) writeFileSync(join(real, ".gitignore"), "*\n", { mode: 0o600 });
  const stat = lstatSync(real);
  const uid = process.getuid?.();
  if (uid !== undefined && stat.uid !== uid) {
    throw new StateDirError(
      "unsafe",
      `The state directory ${dir} belongs to user ${stat.uid}, and this is user ${uid}. Use another one (--state DIR).`,
    );
  }
  if ((stat.mode & 0o077) === 0 || process.platform === "win32") return;
  // A fresh directory may be narrowed; one with other things in it is not ours to change.
  if (readdirSync(real).length === 0) chmodSync(real, 0o700);
  else {
    throw new StateDirError(
      "unsafe",
      `The state directory ${dir} can be entered by others; it will hold tokens. Run: chmod 700 ${dir}`,
    );
  }
}

/** Whether a gateway has the directory now, in whichever process. Takes nothing. */
export async function isStateDirHeld(dir: string): Promise<boolean> {
  if (!existsSync(dir)) return false;
  if (locksByFile()) {
    try {
      lockByOpening(dir)();
      return false;
    } catch (error) {
      if (error instanceof StateDirError && error.code === "held") return true;
      throw error;
    }
  }
  const places = socketPlaces(dir);
  try {
    const top = highest(dir);
    return top > 0 && (await lives(places.path(`lock.${top}`)));
  } finally {
    places.close();
  }
}

/** Takes the directory for this process, until release() or its death. Throws StateDirError `held`. */
export async function lockStateDir(dir: string): Promise<StateLock> {
  ensureStateDir(dir);
  return locksByFile() ? lockByFile(dir) : await lockBySocket(dir);
}

function locksByFile(): boolean {
  const { platform } = process;
  return platform === "darwin" || platform === "freebsd" || platform === "openbsd";
}

function held(dir: string): StateDirError {
  let pid: number | undefined;
  try {
    const text = readFileSync(join(dir, "pid"), "latin1").trim();
    if (/^[1-9]\d*$/.test(text)) pid = Number(text);
  } catch {
    // Taken a moment ago, and not written yet.
  }
  const who = pid === undefined ? "another process" : `process ${pid}`;
  return new StateDirError(
    "held",
    `A gateway is already running with the state directory ${dir} (${who}). ` +
      "Talk to it (`toolway status`), stop it first, or use another directory (--state DIR).",
    pid,
  );
}

/** For messages only; the lock itself never depends on it. */
function writePid(dir: string): void {
  writeFileSync(join(dir, "pid"), `${process.pid}\n`, { mode: 0o600 });
}

function lockByFile(dir: string): StateLock {
  const unlock = lockByOpening(dir, `${process.pid}\n`);
  writePid(dir);
  let open = true;
  const release = async () => {
    if (open) unlock();
    open = false;
  };
  return { dir, release, [Symbol.asyncDispose]: release };
}

/** Returns what lets go of it. */
function lockByOpening(dir: string, text?: string): () => void {
  const { O_RDWR, O_CREAT, O_NONBLOCK } = fsConstants;
  try {
    const fd = openSync(join(dir, "lock"), O_RDWR | O_CREAT | O_NONBLOCK | O_EXLOCK, 0o600);
    if (text !== undefined) {
      ftruncateSync(fd);
      writeSync(fd, text);
    }
    return () => closeSync(fd);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EAGAIN" || code === "EWOULDBLOCK") throw held(dir);
    throw error;
  }
}

async function lockBySocket(dir: string): Promise<StateLock> {
  const places = socketPlaces(dir);
  const own = `lock-${randomBytes(6).toString("hex")}`;
  const server = createServer((socket) => socket.destroy());
  try {
    await listen(server, places.path(own));
    // The lock alone must not keep a process alive.
    server.unref();
    narrow(join(dir, own));
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const top = highest(dir);
      if (top > 0 && (await lives(places.path(`lock.${top}`)))) throw held(dir);
      const mine = top + 1;
      if (!tryLink(join(dir, own), join(dir, `lock.${mine}`))) continue;
      if (highest(dir) !== mine) {
        rmSync(join(dir, `lock.${mine}`), { force: true });
        continue;
      }
      await sweep(dir, places.path, mine, own);
      writePid(dir);
      const release = () => new Promise<void>((done) => server.close(() => done()));
      return { dir, release, [Symbol.asyncDispose]: release };
    }
    throw new StateDirError("failed", `The lock of ${dir} keeps changing hands; is something else writing there?`);
  } catch (error) {
    await new Promise<void>((done) => server.close(() => done()));
    throw error;
  } finally {
    rmSync(join(dir, own), { force: true });
    places.close();
  }
}

/** Paths that fit into a socket address: by way of a descriptor of the directory where the real one is too long. */
function socketPlaces(dir: string): { path(name: string): string; close(): void } {
  if (Buffer.byteLength(join(dir, "lock-000000000000")) <= MAX_SOCKET_PATH_BYTES) {
    return { path: (name) => join(dir, name), close: () => {} };
  }
  const fd = openSync(dir, fsConstants.O_RDONLY | fsConstants.O_DIRECTORY);
  return { path: (name) => `/proc/self/fd/${fd}/${name}`, close: () => closeSync(fd) };
}

function numbered(dir: string): Array<{ name: string; number: number }> {
  return readdirSync(dir).flatMap((name) => {
    const digits = /^lock\.([1-9]\d{0,14})$/.exec(name)?.[1];
    return digits === undefined ? [] : [{ name, number: Number(digits) }];
  });
}

function highest(dir: string): number {
  return numbered(dir).reduce((top, { number }) => Math.max(top, number), 0);
}

/** A winner may have taken our own name for that of a dead starter, in the moment before we listened. */
function narrow(path: string): void {
  try {
    chmodSync(path, 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // ENOENT: a winner took our own name, in the moment before we listened, for that of a dead starter.
    if (code === "EEXIST" || code === "ENOENT") return false;
    throw error;
  }
}

/** Removes what earlier holders, and starters that died on the way, left behind. */
async function sweep(dir: string, path: (name: string) => string, mine: number, own: string): Promise<void> {
  for (const { name, number } of numbered(dir)) if (number < mine) rmSync(join(dir, name), { force: true });
  for (const name of readdirSync(dir)) {
    if (!/^lock-[0-9a-f]{12}$/.test(name) || name === own) continue;
    if (!(await lives(path(name)))) rmSync(join(dir, name), { force: true });
  }
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((done, fail) => {
    server.once("error", fail);
    server.listen(path, () => {
      server.off("error", fail);
      done();
    });
  });
}

/** True while the process that listens there lives. Needs nothing of its event loop: the kernel answers. */
async function lives(path: string): Promise<boolean> {
  for (let look = 0; look < MAX_ATTEMPTS; look++) {
    const found = await lookAt(path);
    if (found !== "closing") return found === "alive";
  }
  return true;
}

function lookAt(path: string): Promise<"alive" | "dead" | "closing"> {
  return new Promise((done, fail) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      done("alive");
    });
    socket.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNREFUSED" || error.code === "ENOENT") done("dead");
      // It took us into its backlog and then ended, or stepped back: the next look tells which.
      else if (error.code === "ECONNRESET") done("closing");
      // Its backlog is full: alive, and busy.
      else if (error.code === "EAGAIN") done("alive");
      else fail(error);
    });
  });
}
