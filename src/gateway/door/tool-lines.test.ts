// The tools of a gateway for a page, however many there are.

import { expect, it } from "vitest";
import type { ToolInShort } from "../../contracts/control/tools.js";
import { toolLineRoutes } from "./tool-lines.js";

const schema = (n: number) => ({
  type: "object",
  properties: Object.fromEntries(
    Array.from({ length: 10 }, (_, i) => [`p${i}`, { type: "string", description: `${n} `.repeat(20) }]),
  ),
});

const TOOLS = Array.from({ length: 10_000 }, (_, n) => ({
  name: `s__t${n}`,
  server: "s",
  ownName: `t${n}`,
  description: "What it does. ".repeat(100),
  inputSchema: schema(n),
}));

function route(key: string, query: string, signal = new AbortController().signal) {
  const routes = toolLineRoutes({
    tools: async () => TOOLS,
    hiddenBy: () => (_server, own) => (own === "t1" ? "role reader" : undefined),
  });
  return routes[key]?.({ params: {}, query: new URLSearchParams(query), body: undefined, signal });
}

it("10,000 tools are told in short, and other work gets its turn between them [bounded]", async () => {
  const lines = ((await route("GET /tools/lines", "as=ann")) as { source: AsyncIterable<ToolInShort> }).source;
  let [others, chars, count] = [0, 0, 0];
  let isOver = false;
  const work = () => {
    others++;
    if (!isOver) setImmediate(work);
  };
  setImmediate(work);
  for await (const line of lines) {
    count++;
    chars += JSON.stringify(line).length;
    if (count === 2) expect(line).toMatchObject({ ownName: "t1", hiddenBy: "role reader" });
  }
  isOver = true;
  expect(count).toBe(10_000);
  // Whatever the machine does meanwhile: one in 64 tools is the end of a turn.
  expect(others).toBeGreaterThan(100);
  expect(chars / count).toBeLessThan(600);
});

it("nobody who has gone is told more, and one tool is told in full", async () => {
  const gone = new AbortController();
  const lines = ((await route("GET /tools/lines", "", gone.signal)) as { source: AsyncIterable<ToolInShort> }).source;
  let count = 0;
  for await (const _ of lines) if (++count === 10) gone.abort();
  expect(count).toBeLessThan(200);
  expect(await route("GET /tools/one", "name=s__t7")).toEqual({ tool: TOOLS[7] });
  await expect(route("GET /tools/one", "name=s__none")).rejects.toThrow("no such tool");
});
