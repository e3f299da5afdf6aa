// Decides which config and which state directory a command is about. Which of the gateways that run is meant, where
// none is named, is which.ts.

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { readTextFile } from "../../runtime/text-file.js";
import { usageError } from "../line/errors.js";
import { fromHere, type Io } from "../line/io.js";
import type { GatewaySource } from "./port.js";

const FILE_NAME = "toolway.json";

/** How a command line names a gateway. */
export interface NamedGateway {
  readonly config: string | undefined;
  readonly state: string | undefined;
}

/** The file that was named, else ./toolway.json, else the user's own, else none: the built-in demo. */
export function configPathFor(named: string | undefined, io: Io): string | undefined {
  if (named !== undefined) {
    if (named === "") throw usageError("The path of the config is empty.");
    const path = fromHere(io, named);
    if (!existsSync(path)) {
      throw usageError(
        `There is no config at ${path}.`,
        "Check the path, or run `toolway import --write` to make one from your clients' configs.",
      );
    }
    return path;
  }
  return [resolve(io.cwd, FILE_NAME), userConfigPath(io)].find((path) => existsSync(path));
}

function userConfigPath(io: Io): string {
  const base = io.env["XDG_CONFIG_HOME"];
  return join(base === undefined || base === "" ? join(io.home, ".config") : base, "toolway", FILE_NAME);
}

export async function sourceFor(input: NamedGateway, io: Io): Promise<GatewaySource> {
  const configPath = configPathFor(input.config, io);
  const { env, home } = io;
  if (input.state !== undefined) {
    return { configPath, stateDir: fromHere(io, input.state), stateNamed: true, env, home };
  }
  const { stateDirFor } = await import("./running.js");
  const stateDir = (await stateKeyIn(configPath, io)) ?? stateDirFor(configPath, env, home);
  return { configPath, stateDir, stateNamed: false, env, home };
}

/** What the config's own `"state"` says. The parser is loaded only for a config that has the key. */
async function stateKeyIn(configPath: string | undefined, { env, home }: Io): Promise<string | undefined> {
  if (configPath === undefined) return undefined;
  let text: string;
  try {
    text = readTextFile(configPath);
  } catch {
    // What is wrong with the file is told when it is loaded.
    return undefined;
  }
  if (!text.includes('"state"')) return undefined;
  const { stateKeyOf } = await import("../../config/load.js");
  return stateKeyOf(text, configPath, { env, home });
}
