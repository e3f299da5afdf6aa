// What a program compiles against: the declarations that index.d.ts reaches need no package but Node's own types. All
// others are bundled or the store's engine, so their types are not there, or not fit for every program. And what they
// let a program write, under the strictest settings.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { expect, it } from "vitest";
import { cli, root, temporaryDirectory } from "./harness.js";

const dist = dirname(dirname(cli));
const COMMENT = /\/\*[\s\S]*?\*\/|^\s*\/\/.*/gm;
const IMPORTED = /(?:\bfrom|\bimport\(|^import)\s*"([^"]+)"/gm;

it("the public types import nothing but Node's", () => {
  const foreign: string[] = [];
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const [, name = ""] of readFileSync(file, "utf8").replace(COMMENT, "").matchAll(IMPORTED)) {
      if (name.startsWith(".")) visit(join(dirname(file), name.replace(/\.js$/, ".d.ts")));
      else if (!name.startsWith("node:")) foreign.push(`${relative(dist, file)}: ${name}`);
    }
  };
  expect(existsSync(join(dist, "index.d.ts"))).toBe(true);
  visit(join(dist, "index.d.ts"));
  expect(seen.size).toBeGreaterThan(20);
  expect(foreign).toEqual([]);
});

const PROGRAM = `
import { createGateway, createHost, HostCallError, type JsonObject, type ToolHost, type ToolResult } from "toolway";

const host: ToolHost = await createHost({ roles: { reader: { allow: ["files/read_*"] } } });
await host.spawn({ name: "files", command: "npx", restarts: { max: 3 } });
const args: JsonObject = { path: "/srv" };
const result: ToolResult = await host.call("files", "list", args);
for (const block of result.content) {
  if (block.type === "text") console.log(block.text.toUpperCase());
  if (block.type === "image") console.log(block.mimeType.length);
  if (block.type === "resource") console.log(block.resource.uri);
}
const more: unknown = result["vendor/own"];
const stop = host.pins.onChange(({ server, hidden }) => console.log(server, hidden.map(({ tool }) => tool), more));
for (const { tool, state } of host.pins.list()) console.log(tool, state);
await host.pins.accept("files", "list");
stop();
const gateway = await createGateway({ mcpServers: { files: { command: "npx" } } });
console.log((await gateway.call("list")).content.length, new Error() instanceof HostCallError);

// @ts-expect-error a misspelt option
await createHost({ rolez: {} });
// @ts-expect-error a misspelt key of a server
await host.spawn({ name: "files", comand: "npx" });
// @ts-expect-error a misspelt key inside one
await host.spawn({ name: "files", command: "npx", restarts: { maxx: 3 } });
// @ts-expect-error a misspelt key of a config
await createGateway({ mcpServer: {} });
// @ts-expect-error a misspelt key of an entry
await createGateway({ mcpServers: { files: { command: "npx", lazzy: true } } });
`;

it("let a program write what is right, and refuse what is misspelt", async () => {
  const dir = await temporaryDirectory();
  await mkdir(join(dir, "node_modules/@types"), { recursive: true });
  await symlink(root, join(dir, "node_modules/toolway"));
  await symlink(join(root, "node_modules/@types/node"), join(dir, "node_modules/@types/node"));
  await writeFile(join(dir, "package.json"), '{"type":"module"}');
  await writeFile(join(dir, "program.ts"), PROGRAM);
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const strict =
    "--noEmit --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --noPropertyAccessFromIndexSignature";
  const options = `${strict} --module nodenext --target es2023 --types node`.split(" ");
  const { stdout } = spawnSync(process.execPath, [tsc, ...options, "program.ts"], { cwd: dir, encoding: "utf8" });
  expect(stdout).toBe("");
});
