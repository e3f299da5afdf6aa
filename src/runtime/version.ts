// The version of the package, from its package.json: written down in one place only.

import { readFileSync } from "node:fs";

/** Put in by the build of a bundle, whose files stand elsewhere than their sources. */
declare const TOOLWAY_VERSION: string | undefined;

let version: string | undefined;

export function packageVersion(): string {
  version ??= typeof TOOLWAY_VERSION === "string" ? TOOLWAY_VERSION : fromPackage();
  return version;
}

function fromPackage(): string {
  const file = new URL("../../package.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}
