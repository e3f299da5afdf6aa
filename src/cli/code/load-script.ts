// Loads a script of the bundle (scripts/script-chunks.mjs), with what V8 made of it at an earlier start where that is kept. It
// stands in a file of its own beside the scripts, and knows nothing of what is in them.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { cachedDataVersionTag } from "node:v8";
import { Script } from "node:vm";
import { codePath, readCode } from "./kept-code.js";
import { loadedScripts } from "./loaded-scripts.js";

type Wrapper = (
  exports: object,
  require: (id: string) => unknown,
  module: { readonly exports: object },
  url: string,
  load: (path: string) => Promise<unknown>,
) => void;

/** `needed` are the modules of ours that it cannot do without; `load` is the import() of the module in its place. */
export function loadScript(
  url: URL,
  needed: Readonly<Record<string, unknown>>,
  load: (path: string) => Promise<unknown>,
): object {
  const filename = fileURLToPath(url);
  const source = readFileSync(filename, "latin1");
  const tag = cachedDataVersionTag();
  // Node's own word for "keep no code".
  const path = process.env["NODE_DISABLE_COMPILE_CACHE"] ? undefined : codePath(basename(filename), tag);
  const cachedData = path === undefined ? undefined : readCode(path);
  const script = new Script(source, { filename, ...(cachedData === undefined ? {} : { cachedData }) });
  const isKept = cachedData !== undefined && script.cachedDataRejected !== true;
  if (path !== undefined && !isKept) loadedScripts().push({ script, tag, path });
  const nodeRequire = createRequire(url);
  const module = { exports: {} };
  const wrapper = script.runInThisContext() as Wrapper;
  wrapper(module.exports, (id) => needed[id] ?? nodeRequire(id), module, url.href, load);
  return module.exports;
}
