// Builds the page of dashboard/ into a folder: one script, one style sheet, and the same compressed, so that nothing is
// compressed while a gateway runs.

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { build } from "esbuild";

/** Returns what went into it. */
export async function buildDashboard(root, out) {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ["dashboard/main.tsx", "dashboard/main.css"],
    outdir: out,
    bundle: true,
    format: "esm",
    platform: "browser",
    target: ["chrome123", "firefox120", "safari17.5"],
    jsx: "automatic",
    jsxImportSource: "preact",
    minify: true,
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  });
  for (const name of ["index.html", "icon.svg"]) copyFileSync(join(root, "dashboard", name), join(out, name));
  for (const name of ["index.html", "icon.svg", "main.js", "main.css"]) {
    const content = readFileSync(join(out, name));
    writeFileSync(join(out, `${name}.br`), brotliCompressSync(content));
    writeFileSync(join(out, `${name}.gz`), gzipSync(content, { level: 9 }));
  }
  return metafile.inputs;
}
