// What the bundle does otherwise with two packages, so that a start loads only the part of them that is used. Each
// change is checked against the package's text: a new version that reads differently fails the build.

import { readFile } from "node:fs/promises";

/** Replaces `from`, which must be there exactly once. */
function exchange(text, from, to, where) {
  if (text.split(from).length !== 2) throw new Error(`${where} no longer holds: ${from}`);
  return text.replace(from, () => to);
}

/**
 * lmdb's JavaScript goes into the bundle; the native part stays in its package, and is looked for there. Both must be
 * of one version, which is why package.json names it exactly. Values are stored as text: msgpackr is never used.
 */
export const lmdbInBundle = {
  name: "lmdb-in-bundle",
  setup(build) {
    build.onLoad({ filter: /[\\/]lmdb[\\/]native\.js$/ }, async ({ path }) => {
      const from = "dirname(fileURLToPath(import.meta.url)).replace(/dist$/, '')";
      // The entry for `require` is dist/index.cjs.
      const to = 'dirname(dirname(createRequire(import.meta.url).resolve("lmdb")))';
      const text = exchange(await readFile(path, "utf8"), from, to, path);
      return { contents: `import { createRequire } from "node:module";\n${text}` };
    });
    build.onResolve({ filter: /^msgpackr$/ }, () => ({ path: "msgpackr", namespace: "unused" }));
    build.onLoad({ filter: /^msgpackr$/, namespace: "unused" }, () => ({
      contents: 'export class Encoder { constructor() { throw new Error("The store keeps text."); } }',
    }));
  },
};

/**
 * Of undici only its pools, which we speak HTTP/1.1 on. The rest of it (fetch, WebSocket, caches, HTTP/2) is ten times
 * as much, and costs more memory than all of Toolway.
 */
export const undiciPoolAlone = {
  name: "undici-pool-alone",
  setup(build) {
    build.onResolve({ filter: /^undici$/ }, ({ resolveDir }) => ({ path: resolveDir, namespace: "undici-pool" }));
    build.onLoad({ filter: /.*/, namespace: "undici-pool" }, ({ path }) => ({
      // Its entry gives every dispatcher `request`, and more that is not used.
      contents: `import Pool from "undici/lib/dispatcher/pool.js"; import request from "undici/lib/api/api-request.js";
import buildConnector from "undici/lib/core/connect.js";
Pool.prototype.request = request; export { Pool, buildConnector };`,
      resolveDir: path,
    }));
    // Never reached: bodies are strings, and HTTP/2 is not asked for.
    build.onResolve({ filter: /(?:web\/fetch\/body|client-h2)(?:\.js)?$/ }, ({ path, importer }) =>
      /[\\/]undici[\\/]/.test(importer) ? { path, namespace: "unused-undici" } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: "unused-undici" }, ({ path }) => ({
      contents: `module.exports = () => { throw new Error("Left out of the bundle: undici's ${path}"); };`,
      loader: "js",
    }));
  },
};
