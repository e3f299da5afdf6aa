// The output of a child as we read it: into blocks that are used again, where the system lets us.
//
// Node reads a child's pipe into a new buffer each time, and has no option for that; a socket has one. What Node calls a
// pipe is a pair of connected sockets anyway, so that a child that is given one end of a pair of ours sees no difference.
// Node makes no such pair by itself: it is made by a listener that one connection reaches, in a folder that only this
// user may enter, and both are gone before the child starts.

import { mkdtemp, rmdir } from "node:fs/promises";
import { createServer, connect as dial, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { blockReadingBy } from "../../runtime/memory/read-blocks.js";

/**
 * The longest path of a socket that every system takes. Node 20 and 22 cut a longer one off without a word: the listener would
 * be beside our folder, where others may reach it, and would stay there.
 */
const MAX_PATH_BYTES = 103;

/** A pair is made in under a millisecond; where it is not made in this time, the child gets a pipe of Node's. */
const PAIR_MS = 1_000;

export interface OutputPair {
  /** What is read here goes to the function that the pair was made with; the stream tells of its end alone. */
  readonly ours: Socket;
  /** For the child. It is destroyed as soon as the child has it: our copy would keep `ours` from ending. */
  readonly theirs: Socket;
}

/**
 * `read` gets each read where it lies, and says whether it kept a part of it (see `blockReadingBy`). Undefined where no
 * pair can be made: there is no folder for it, the path is too long, no more files may be opened.
 */
export async function openOutputPair(read: (bytes: Buffer) => boolean): Promise<OutputPair | undefined> {
  if (process.platform === "win32") return undefined;
  let folder: string | undefined;
  try {
    // It is made for this user alone (0700).
    folder = await mkdtemp(join(tmpdir(), "toolway-"));
    const path = join(folder, "s");
    return Buffer.byteLength(path) > MAX_PATH_BYTES ? undefined : await pairAt(path, read);
  } catch {
    return undefined;
  } finally {
    // The listener removes its path where it is closed.
    if (folder !== undefined) await rmdir(folder).catch(() => {});
  }
}

function pairAt(path: string, read: (bytes: Buffer) => boolean): Promise<OutputPair> {
  return new Promise((resolve, reject) => {
    let ours: Socket | undefined;
    let theirs: Socket | undefined;
    let isConnected = false;
    let isOver = false;
    // Nothing of theirs is read here: it belongs to the child.
    const server: Server = createServer({ pauseOnConnect: true });
    const fail = (error: Error) => {
      // What breaks later is told by the end of the socket.
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      ours?.destroy();
      theirs?.destroy();
      server.close();
      reject(error);
    };
    const timer = setTimeout(() => fail(new Error("No connection came.")), PAIR_MS);
    const whole = () => {
      if (!isConnected || ours === undefined || theirs === undefined) return;
      isOver = true;
      clearTimeout(timer);
      // It is not waited for: it ends with the last connection, which the child is to have.
      server.close();
      resolve({ ours, theirs });
    };
    server.on("error", fail);
    server.on("connection", (socket) => {
      // Only this user can reach it; a second connection is nobody's that we know.
      if (theirs !== undefined) {
        socket.destroy();
        return;
      }
      theirs = socket;
      theirs.on("error", () => {});
      whole();
    });
    server.listen(path, 1, () => {
      ours = dial({ path, onread: blockReadingBy(read) });
      ours.on("error", fail);
      ours.once("connect", () => {
        isConnected = true;
        whole();
      });
    });
  });
}
