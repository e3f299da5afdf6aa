// `toolway call` where no gateway runs: it starts what it calls, and nothing else.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root, temporaryDirectory } from "./harness.js";
import { runCli } from "./operator.js";

it("starts the server of a tool that is known from before, and no other", async () => {
  const folder = await temporaryDirectory();
  const demo = [process.execPath, join(root, "dist/demo/server.js")];
  const entry = { command: "/bin/sh", args: ["-c", 'echo "started" >&2; exec "$0" "$1"', ...demo] };
  const config = join(folder, "toolway.json");
  await writeFile(config, JSON.stringify({ mcpServers: { one: entry, two: entry } }));
  const options = ["--config", config, "--state", join(folder, "state")];
  const starts = async (server: string) => (await runCli("logs", server, ...options)).out.split("started").length - 1;
  // Nothing is known at first, so that both are asked what they have.
  expect(await runCli("tools", ...options)).toMatchObject({ code: 0 });
  const before = { one: await starts("one"), two: await starts("two") };
  expect(await runCli("call", "one__add", "--arg", "a=2", "--arg", "b=3", ...options)).toMatchObject({ out: "5\n" });
  expect({ one: await starts("one"), two: await starts("two") }).toEqual({ ...before, one: before.one + 1 });
  // What is not known is looked for in all of them.
  expect(await runCli("call", "one__sub", ...options)).toMatchObject({ code: 2 });
});
