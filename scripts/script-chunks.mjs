// Makes classic scripts of what a start loads: of a script V8's code can be kept from one start to the next (src/cli/code), of
// a module it cannot on Node 20. A module stands in the place of each and gives out what the script has, so that nobody who
// imports it sees a difference. It also makes few files of many: the bundler makes one of every set of modules that the same
// programs share, most of them smaller than 2 kB, and a start pays for each file that it opens.

import { createHash } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { build } from "esbuild";

/** What is larger is worth a file of its own: who does not need it does not read it. */
const SMALL_BYTES = 24 * 1024;
/** Loads the scripts, and stands beside them. */
const LOADER = "load-script.js";
const LOADER_SOURCE = "src/cli/code/load-script.ts";

/**
 * `outputs` is the bundler's own account, with paths from `root`. Makes a script of what the first of `stages` cannot do without,
 * then of what the next needs besides, and so on. A stage is the beginning of a file's name. What of it others need, too,
 * is a script by itself, where the rest is large.
 */
export async function makeScripts(root, outputs, stages) {
  const chunks = new Map(
    Object.entries(outputs).map(([path, { bytes, imports, exports }]) => {
      const needs = imports.filter(({ kind, external }) => kind === "import-statement" && external !== true);
      return [resolve(root, path), { bytes, exports, needs: needs.map((one) => resolve(root, one.path)) }];
    }),
  );
  const loaded = new Set();
  let folder = root;
  for (const stage of stages) {
    const entry = [...chunks.keys()].find((path) => basename(path).startsWith(stage));
    if (entry === undefined) throw new Error(`Nothing is built whose name begins with ${stage}.`);
    folder = dirname(entry);
    const group = [...reached(chunks, entry)].filter((path) => !loaded.has(path));
    const shared = sharedOf(chunks, entry, group, loaded);
    const isLarge = bytesOf(chunks, group) - bytesOf(chunks, shared) > SMALL_BYTES;
    if (isLarge && shared.length > 0) loaded.add(await makeScript(chunks, join(folder, `with-${stage}.js`), shared));
    loaded.add(await makeScript(chunks, entry, isLarge ? group.filter((path) => !shared.includes(path)) : group));
  }
  await build({
    absWorkingDir: root,
    entryPoints: [LOADER_SOURCE],
    outfile: join(folder, LOADER),
    bundle: true,
    ...COMMON,
    format: "esm",
  });
}

const COMMON = {
  platform: "node",
  target: "node20.19",
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: "none",
  logLevel: "error",
};

/** The file, and all that it cannot do without. */
function reached(chunks, path, seen = new Set()) {
  if (seen.has(path)) return seen;
  seen.add(path);
  for (const next of chunks.get(path)?.needs ?? []) reached(chunks, next, seen);
  return seen;
}

/** Those of `group` that others need as well, with all that these cannot do without. */
function sharedOf(chunks, entry, group, loaded) {
  const outside = [...chunks].filter(([path]) => !group.includes(path));
  const wanted = new Set(outside.flatMap(([, { needs }]) => needs));
  const shared = new Set();
  for (const path of group) if (path !== entry && wanted.has(path)) reached(chunks, path, shared);
  return [...shared].filter((path) => !loaded.has(path));
}

const bytesOf = (chunks, paths) => paths.reduce((sum, path) => sum + chunks.get(path).bytes, 0);

/** Makes a script of `group`, and a module in the place of `entry`, which may be new. Returns the module's path. */
async function makeScript(chunks, entry, group) {
  // Two files may give different things the same name; the entry's are known to those who load it.
  const renamed = (path, name) => (path === entry ? name : `j${group.indexOf(path)}_${name}`);
  const exports = group.flatMap((path) => chunks.get(path).exports.map((name) => renamed(path, name)));
  const needs = [...new Set(group.flatMap((path) => chunks.get(path).needs))].filter((path) => !group.includes(path));
  const text = await scriptOf(chunks, dirname(entry), group, renamed);
  // The name says what is in it: V8's code is kept under the name, and V8 compares no more than the length.
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 32);
  const script = `${basename(entry, ".js").replace(/-[A-Z0-9]*$/, "")}-${hash}.cjs`;
  writeFileSync(join(dirname(entry), script), text);
  for (const path of group) {
    if (path === entry) continue;
    if (!basename(path).startsWith("chunk-")) throw new Error(`${basename(path)} is loaded by itself, too.`);
    rmSync(path);
    chunks.delete(path);
  }
  const gone = group.filter((path) => path !== entry);
  for (const [path, chunk] of chunks) {
    if (path === entry || !chunk.needs.some((next) => gone.includes(next))) continue;
    writeFileSync(path, redirected(path, readFileSync(path, "utf8"), gone, entry, renamed));
    chunk.needs = [...new Set(chunk.needs.map((next) => (gone.includes(next) ? entry : next)))];
  }
  writeFileSync(entry, moduleOf(script, needs, exports));
  chunks.set(entry, { bytes: text.length, exports, needs });
  return entry;
}

/** The text of a script: a function that is given what Node gives to CommonJS, its address, and an import() of its place. */
async function scriptOf(chunks, folder, group, renamed) {
  const lines = group.map((path) => {
    const names = chunks.get(path).exports.map((name) => `${name} as ${renamed(path, name)}`);
    return `export { ${names.join(", ")} } from "./${basename(path)}";`;
  });
  const apart = {
    name: "apart",
    setup({ onResolve }) {
      onResolve({ filter: /.*/ }, ({ path, kind, resolveDir }) => {
        const isJoined = kind === "import-statement" && group.includes(resolve(resolveDir, path));
        return isJoined ? undefined : { path, external: true };
      });
    },
  };
  const { outputFiles } = await build({
    stdin: { contents: lines.join("\n"), resolveDir: folder },
    bundle: true,
    write: false,
    ...COMMON,
    format: "cjs",
    define: { "import.meta.url": "toolwayUrl" },
    plugins: [apart],
  });
  // A script has no import() of its own but one that Node 20 warns of.
  const body = outputFiles[0].text.replace(/\bimport\((?=")/g, "toolwayImport(");
  if (/\bimport\(/.test(body)) throw new Error("A script loads something by a name that is not known.");
  // It is read a byte a character. The bundler leaves letters beyond ASCII in regular expressions alone.
  const ascii = body.replace(/[^\0-\x7f]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return `(function(exports,require,module,toolwayUrl,toolwayImport){"use strict";${ascii}\n})`;
}

function moduleOf(script, needs, exports) {
  const needed = needs.map((path, index) => `"./${basename(path)}":n${index}`);
  return [
    `import{loadScript}from"./${LOADER}";`,
    ...needs.map((path, index) => `import*as n${index} from"./${basename(path)}";`),
    `const s=loadScript(new URL("./${script}",import.meta.url),{${needed.join(",")}},(path)=>import(path));`,
    // What they give out is made when they are loaded, and is not exchanged for something else later.
    `const ${exports.map((name, index) => `e${index}=s.${name}`).join(",")};`,
    `export{${exports.map((name, index) => `e${index} as ${name}`).join(",")}};\n`,
  ].join("");
}

/** The file's text, which takes what was joined from where it is now. */
function redirected(from, text, group, joined, renamed) {
  const to = relative(dirname(from), joined);
  const specifier = to.startsWith(".") ? to : `./${to}`;
  const moved = text.replace(/import(?:\{([^}]*)\}from)?"(\.{1,2}\/[^"]+)"/g, (whole, names, path) => {
    const target = resolve(dirname(from), path);
    if (!group.includes(target)) return whole;
    if (names === undefined) return `import"${specifier}"`;
    const taken = names.split(",").map((part) => {
      const [name, local = name] = part.trim().split(/\s+as\s+/);
      return `${renamed(target, name)} as ${local}`;
    });
    return `import{${taken.join(",")}}from"${specifier}"`;
  });
  const left = group.find((path) => moved.includes(`/${basename(path)}"`));
  if (left !== undefined) throw new Error(`${from} takes something from ${basename(left)} in a way that is not known.`);
  return moved;
}
