// The scripts of this process whose code is not kept yet. They are on globalThis, because who loads them and who keeps them are
// in different files of the bundle.

import type { Script } from "node:vm";

export interface LoadedScript {
  readonly script: Script;
  /** V8's own, as it was when the script was loaded. */
  readonly tag: number;
  readonly path: string;
}

const KEY = Symbol.for("toolway.code.loaded");
const shared = globalThis as { [KEY]?: LoadedScript[] };

export function loadedScripts(): LoadedScript[] {
  shared[KEY] ??= [];
  return shared[KEY];
}
