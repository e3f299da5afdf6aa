// Where a bearer token comes from: a variable of the gateway's environment, or a file that others write. The third
// source, a program's output, is command.ts.

import { constants } from "node:fs";
import { open, stat } from "node:fs/promises";
import type { BearerSource } from "../contracts/server-spec.js";
import { Fault } from "../protocol/errors.js";
import type { Reaper } from "../runtime/processes/reaper.js";
import { fingerprintOf, fingerprintOfNone } from "../runtime/text-file.js";
import { commandSource } from "./command.js";
import type { TokenSource } from "./credential.js";
import { checked, MAX_TOKEN_BYTES, noToken } from "./token.js";

/** A file is looked at this often: a change is noticed within a second, on a busy machine too. */
const LOOK_MS = 400;

export interface SourceContext {
  readonly env: NodeJS.ProcessEnv;
  /** Sees to it that a program ends with us, however we end. */
  readonly reaper: Reaper;
}

export function tokenSource(source: BearerSource, context: SourceContext): TokenSource {
  switch (source.from) {
    case "env":
      return envSource(source.name, context.env);
    case "file":
      return fileSource(source.path);
    case "command":
      return commandSource(source, context);
  }
}

function envSource(name: string, env: NodeJS.ProcessEnv): TokenSource {
  let seen: string | undefined;
  let token: string | undefined;
  return {
    name: `the variable ${name}`,
    remedy: "Set it, and start the gateway again.",
    // It is a look at a table.
    keepMs: 0,
    read() {
      const value = env[name];
      if (value === seen) return token;
      token = checked(value ?? "", `The variable ${name}`);
      seen = value;
      return token;
    },
  };
}

function fileSource(path: string): TokenSource {
  const name = `the file ${path}`;
  return {
    name,
    remedy: "Write the token into it: that is noticed within a second.",
    // Whoever watches it says when it is another; without a watcher it is read each time.
    keepMs: LOOK_MS * 2,
    async read() {
      try {
        return checked(await readShort(path), `The file ${path}`);
      } catch (error) {
        if (error instanceof Fault) throw error;
        const { code } = error as NodeJS.ErrnoException;
        if (code === "ENOENT") return undefined;
        throw noToken(`The file ${path} cannot be read (${code ?? String(error)}).`);
      }
    },
    watch(changed) {
      let seen: string | undefined;
      let isLooking = false;
      const look = async () => {
        // A disk that does not answer now is asked once, and holds one of the few threads that read files, not all.
        if (isLooking) return;
        isLooking = true;
        const mark = await markOf(path);
        isLooking = false;
        if (seen !== undefined && mark !== seen) changed();
        seen = mark;
      };
      void look();
      const timer = setInterval(() => void look(), LOOK_MS).unref();
      return () => clearInterval(timer);
    },
  };
}

/** A pipe or a device is no file to read a token from: to open one may wait for ever, and to read one has no end. */
async function readShort(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = await file.stat();
    if (!found.isFile()) throw noToken(`${path} is no ordinary file, and no token is read from it.`);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_TOKEN_BYTES + 1));
    if (bytesRead > MAX_TOKEN_BYTES) {
      throw noToken(`The file ${path} has ${found.size} bytes, and no token is so long.`);
    }
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}

async function markOf(path: string): Promise<string> {
  try {
    return fingerprintOf(await stat(path, { bigint: true }));
  } catch (error) {
    return fingerprintOfNone(error);
  }
}
