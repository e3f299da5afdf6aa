// Decides which config and which state directory a verb is about.

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { usageError } from "../line/errors.js";
import type { Io } from "../line/io.js";
import type { GatewaySource } from "./port.js";

const FILE_NAME = "toolway.json";

/** The file that was named, else ./toolway.json, else the user's own, else none: the built-in demo. */
export function configPathFor(named: string | undefined, io: Io): string | undefined {
  if (named !== undefined) {
    if (named === "") throw usageError("The path of the config is empty.");
    const path = resolve(io.cwd, named);
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

export function sourceFor(input: { config: string | undefined; state: string | undefined }, io: Io): GatewaySource {
  return {
    configPath: configPathFor(input.config, io),
    stateDir: input.state === undefined ? undefined : resolve(io.cwd, input.state),
    env: io.env,
    home: io.home,
  };
}
