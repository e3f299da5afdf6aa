// Assembles src/protocol/bytes/scan-bytes.wat into the module that scan-bytes.ts loads; with --check it only says whether
// that is up to date.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import wabt from "wabt";

const at = (name) => fileURLToPath(new URL(`../src/protocol/bytes/${name}`, import.meta.url));

const tools = await wabt();
const program = tools.parseWat("scan-bytes.wat", readFileSync(at("scan-bytes.wat"), "utf8"), { simd: true });
const base64 = Buffer.from(program.toBinary({}).buffer).toString("base64");
const text = `// Written by \`npm run scan-bytes\` from scan-bytes.wat, and not by hand.

export const PROGRAM =
${base64
  .match(/.{1,112}/g)
  .map((line) => `  "${line}"`)
  .join(" +\n")};
`;

const file = at("scan-bytes-program.ts");
if (!process.argv.includes("--check")) writeFileSync(file, text);
else if (readFileSync(file, "utf8") !== text) {
  process.stderr.write(
    "src/protocol/bytes/scan-bytes-program.ts is not what scan-bytes.wat gives: npm run scan-bytes\n",
  );
  process.exitCode = 1;
}
