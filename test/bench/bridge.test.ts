// The limit for calls over stdio reads the head of a line, and passes on the rest unread: one that parsed lines would be slow, and
// whoever is compared with it would look fast.

import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { start } from "../fixtures/processes.js";
import { until } from "../fixtures/wait.js";

const bridge = fileURLToPath(new URL("../../bench/limits/bridge.mjs", import.meta.url));
/** Answers each line with its id and a rest that is no JSON, longer than any pipe holds at once. */
const REST = `,"result":${"{[".repeat(100_000)}`;
const CHILD = `require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id } = JSON.parse(line);
  process.stdout.write('{"jsonrpc":"2.0","id":' + id + ',"result":' + "{[".repeat(100_000) + "\\n");
});`;

it("the bridge passes on a line whose rest is no JSON as it came, to whom its id belongs", async () => {
  const one = start("bridge", process.execPath, [bridge, process.execPath, "-e", CHILD]);
  try {
    const port = await until("its port", () => /"port":(\d+)\D/.exec(one.log())?.[1]);
    const call = async (id: number) => {
      const answer = await fetch(`http://127.0.0.1:${port}/mcp`, { method: "POST", body: JSON.stringify({ id }) });
      return answer.text();
    };
    for (const id of [7, 8]) expect((await call(id)) === `{"jsonrpc":"2.0","id":${id}${REST}`).toBe(true);
  } finally {
    await one.stop("SIGKILL");
  }
});
