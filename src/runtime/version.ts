// The version of the package, read from its package.json: written down in one place only.

import { readFileSync } from "node:fs";

let version: string | undefined;

export function packageVersion(): string {
  version ??= (JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string })
    .version;
  return version;
}
