// Builds dist/: every module with its types by tsc, then the programs and the library entry as bundles over them,
// because a start that opens a hundred files takes several times as long. `--plain` leaves the bundles out (for
// profiles by module), `--out DIR` builds elsewhere.

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { buildDashboard } from "./build-dashboard.mjs";
import { lmdbInBundle, undiciPoolAlone } from "./build-packages.mjs";
import { makeScripts } from "./script-chunks.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values } = parseArgs({ options: { plain: { type: "boolean" }, out: { type: "string" } } });
const out = resolve(values.out ?? join(root, "dist"));

const require = createRequire(import.meta.url);
const tsc = join(dirname(require.resolve("typescript/package.json")), "bin/tsc");
execFileSync(process.execPath, [tsc, "-p", join(root, "tsconfig.build.json"), "--outDir", out], { stdio: "inherit" });

const page = await buildDashboard(root, join(out, "dashboard"));

if (values.plain !== true) {
  rmSync(join(out, "chunks"), { recursive: true, force: true });
  // The library by itself: parts shared with the programs would each be one more file for a start to open.
  const programs = await bundle(["src/cli/main.ts", "src/demo/server.ts"], "");
  // Every line, a verb that asks a gateway, a gateway, and what it opens at once: LMDB, and undici for servers at addresses.
  await makeScripts(root, programs.outputs, ["process-", "running-", "adapter-", "node-index-", "http-"]);
  // Under names of its own: a file of the same name would be written over one whose parts were joined, and bring them in
  // a second time. A Fault of the one is no Fault of the other.
  const library = await bundle(["src/index.ts"], "library-");
  const inputs = [...Object.keys(programs.inputs), ...Object.keys(library.inputs), ...Object.keys(page)];
  writeFileSync(join(out, "THIRD-PARTY-LICENSES.txt"), licensesOf(inputs));
}

/** Returns what went into it, and what came of it. The names of its parts begin with `prefix`. */
async function bundle(entryPoints, prefix) {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints,
    outbase: "src",
    outdir: out,
    chunkNames: `chunks/${prefix}[name]-[hash]`,
    bundle: true,
    // What is imported when it is needed stays in a file of its own, and is loaded then.
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20.19",
    // Packages' ES modules, where they have them: what is not used of them is left out.
    mainFields: ["module", "main"],
    // Names stay, so that a stack says in which function; shorter ones would save 2 % of a start.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: "none",
    define: { TOOLWAY_VERSION: JSON.stringify(JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version) },
    // Packages in CommonJS ask for Node's own modules by `require`.
    banner: {
      js: 'import{createRequire as toolwayRequire}from"node:module";const require=toolwayRequire(import.meta.url);',
    },
    plugins: [lmdbInBundle, undiciPoolAlone],
    metafile: true,
    logLevel: "warning",
  });
  return metafile;
}

/** What the licenses of the packages inside ask for: that their text goes with them. */
function licensesOf(inputs) {
  const folders = new Set(inputs.flatMap((path) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []));
  const texts = [...folders]
    .sort((a, b) => a.localeCompare(b))
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
      const file = readdirSync(join(root, folder)).find((one) => /^licen[cs]e/i.test(one));
      const text = file === undefined ? `License: ${license}` : readFileSync(join(root, folder, file), "utf8").trim();
      return `${name} ${version}\n\n${text}\n`;
    });
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}
