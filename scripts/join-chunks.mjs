// Joins the small files that a start loads. The bundler makes a file of every set of modules that the same programs
// share, most of them smaller than 2 kB, and a start pays for each file that it opens. What is joined is loaded together
// anyway, or is too small to matter.

import { createHash } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { build } from "esbuild";

/** What is larger is worth a file of its own: who does not need it does not read it. */
const SMALL_BYTES = 24 * 1024;

/**
 * `outputs` is the bundler's own account, with paths from `root`. Joins what the first of `stages` cannot do without, then what the
 * next needs besides, and so on. A stage is the beginning of a file's name.
 */
export async function joinChunks(root, outputs, stages) {
  const chunks = new Map(
    Object.entries(outputs).map(([path, { bytes, imports, exports }]) => {
      const needs = imports.filter(({ kind, external }) => kind === "import-statement" && external !== true);
      return [resolve(root, path), { bytes, exports, needs: needs.map((one) => resolve(root, one.path)) }];
    }),
  );
  const before = new Set();
  const groups = stages.map((stage) => {
    const entry = [...chunks.keys()].find((path) => basename(path).startsWith(stage));
    if (entry === undefined) throw new Error(`Nothing is built whose name begins with ${stage}.`);
    const needed = [...reached(chunks, entry)].filter((path) => !before.has(path));
    // Where all that a file needs is joined with it, or belongs to a stage before, no circle can come about.
    const group = closedGroup(chunks, needed, before);
    for (const path of needed) before.add(path);
    return group;
  });
  for (const group of groups) if (group.length > 1) await joinGroup(chunks, group);
}

/** The file, and all that it cannot do without. */
function reached(chunks, path, seen = new Set()) {
  if (seen.has(path)) return seen;
  seen.add(path);
  for (const next of chunks.get(path)?.needs ?? []) reached(chunks, next, seen);
  return seen;
}

/** The small ones of `among` that need nothing but each other, and what is loaded before. */
function closedGroup(chunks, among, before) {
  const group = new Set();
  let grew = true;
  while (grew) {
    grew = false;
    for (const path of among) {
      const { bytes, needs } = chunks.get(path);
      const isShared = basename(path).startsWith("chunk-");
      if (group.has(path) || !isShared || bytes > SMALL_BYTES) continue;
      if (!needs.every((next) => group.has(next) || before.has(next))) continue;
      group.add(path);
      grew = true;
    }
  }
  return [...group];
}

async function joinGroup(chunks, group) {
  const folder = dirname(group[0]);
  // Two files may give different things the same name.
  const renamed = (path, name) => `j${group.indexOf(path)}_${name}`;
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
    format: "esm",
    platform: "node",
    target: "node20.19",
    minifyWhitespace: true,
    legalComments: "none",
    plugins: [apart],
    logLevel: "warning",
  });
  const [{ text }] = outputFiles;
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 8).toUpperCase();
  const joined = join(folder, `joined-${hash}.js`);
  writeFileSync(joined, text);
  for (const path of group) {
    rmSync(path);
    chunks.delete(path);
  }
  for (const [path, chunk] of chunks) {
    if (!chunk.needs.some((next) => group.includes(next))) continue;
    writeFileSync(path, redirected(path, readFileSync(path, "utf8"), group, joined, renamed));
    chunk.needs = [...new Set(chunk.needs.map((next) => (group.includes(next) ? joined : next)))];
  }
  chunks.set(joined, { bytes: text.length, exports: [], needs: [] });
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
