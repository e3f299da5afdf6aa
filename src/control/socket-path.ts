// Where the control socket is: in the state directory, or, when that path is too long for a socket, in a short
// directory of ours that a file in the state directory names. Owns paths and their safety; opens no socket.

import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { ExpectedError } from "../runtime/expected-error.js";

/** Unix socket addresses hold 104 bytes on macOS and 108 on Linux, the final zero included. */
const MAX_SOCKET_PATH_BYTES = 103;
const SOCKET_NAME = "control.sock";
/** Client and server may have other environments, so the server writes down where it went. */
const POINTER_NAME = "control.path";

class UnsafeSocketError extends ExpectedError {
  override readonly name = "UnsafeSocketError";
  override readonly kind = "failed";
}

function fits(path: string): boolean {
  return Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES;
}

/** For the gateway that holds the state directory: the path to listen on. Makes directories where needed. */
export function claimSocketPath(
  stateDir: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
  temp: string = tmpdir(),
): string {
  const pointer = join(stateDir, POINTER_NAME);
  const plain = join(stateDir, SOCKET_NAME);
  if (fits(plain)) {
    rmSync(pointer, { force: true });
    return plain;
  }
  const hash = createHash("sha256").update(stateDir).digest("hex").slice(0, 16);
  const runtime = env["XDG_RUNTIME_DIR"];
  const bases = [runtime, temp].filter((base) => base !== undefined && isAbsolute(base));
  let unsafe: unknown;
  for (const base of bases) {
    const path = join(base ?? "", `toolway-${process.getuid?.() ?? 0}`, `${hash}.sock`);
    if (!fits(path)) continue;
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      checkOwnDirectory(dirname(path));
    } catch (error) {
      // A runtime directory that is not there, or somebody was here first: the next one may do.
      unsafe = error;
      continue;
    }
    const made = `${pointer}.${process.pid}`;
    writeFileSync(made, `${path}\n`, { mode: 0o600 });
    renameSync(made, pointer);
    return path;
  }
  if (unsafe !== undefined) throw unsafe;
  throw new UnsafeSocketError(
    `No directory with a path short enough for a socket (${MAX_SOCKET_PATH_BYTES} bytes). ` +
      "Use a shorter state directory (--state DIR), or set XDG_RUNTIME_DIR.",
  );
}

/** For those who look for the gateway of a state directory: where its socket would be; undefined when nowhere. */
export function findSocketPath(stateDir: string): string | undefined {
  const plain = join(stateDir, SOCKET_NAME);
  if (fits(plain)) return plain;
  let path: string;
  try {
    path = readFileSync(join(stateDir, POINTER_NAME), "utf8").trim();
    // Nobody else may have put a socket there for us to talk to.
    checkOwnDirectory(dirname(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return path;
}

/** Others can write where temporary directories are: a directory counts only if it is ours, closed, and no link. */
function checkOwnDirectory(dir: string): void {
  const stat = lstatSync(dir);
  const uid = process.getuid?.();
  const wrong = !stat.isDirectory()
    ? "is not a directory"
    : uid !== undefined && stat.uid !== uid
      ? "belongs to somebody else"
      : (stat.mode & 0o077) !== 0 && process.platform !== "win32"
        ? "can be entered by others"
        : undefined;
  if (wrong === undefined) return;
  throw new UnsafeSocketError(
    `${dir} ${wrong}, so the control socket is not safe there. Remove it, or use a shorter state directory (--state DIR).`,
  );
}
