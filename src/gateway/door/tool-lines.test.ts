// The tools of a gateway for a page, however many there are.

import { encode } from "gpt-tokenizer";
import { expect, it } from "vitest";
import type { RolesAnswer, ToolInShort } from "../../contracts/control/tools.js";
import { ownToolName } from "../../contracts/names.js";
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

const PIN = {
  server: "s",
  tool: ownToolName("t1"),
  state: "changed",
  firstSeen: "2026-01-01T10:00:00Z",
  hash: "abc",
} as const;

function route(key: string, query: string, signal = new AbortController().signal) {
  const routes = toolLineRoutes({
    tools: async () => TOOLS,
    pins: () => ({ lines: [PIN], trusted: ["other"] }),
    roles: () => ["dev", "reader", "*"],
    hiddenFrom: (role) => (_server, own) => (role === "reader" && own === "t1" ? "role reader" : undefined),
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
    if (count === 2) {
      expect(line).toMatchObject({ ownName: "t1", hiddenBy: "role reader", pin: "changed", roles: ["dev", "*"] });
    } else if (line.roles !== undefined || line.pin !== undefined) throw new Error("All may call it.");
  }
  isOver = true;
  expect(count).toBe(10_000);
  // Whatever the machine does meanwhile: a turn ends after 64 tools at the latest.
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
  const pin = { state: "changed", since: "2026-01-01T10:00:00Z", hash: "abc" };
  expect(await route("GET /tools/one", "name=s__t1")).toEqual({ tool: TOOLS[1], pin });
  await expect(route("GET /tools/one", "name=s__none")).rejects.toThrow("no such tool");
});

it("what each role sees is counted, in turns too [bounded]", async () => {
  let others = 0;
  const timer = setInterval(() => others++, 0);
  const { roles } = (await route("GET /roles", "")) as RolesAnswer;
  clearInterval(timer);
  expect(roles.map(({ role, tools, of }) => [role, tools, of])).toEqual([
    ["dev", 10_000, 10_000],
    ["reader", 9_999, 10_000],
    ["*", 10_000, 10_000],
  ]);
  expect(roles[0]?.tokens).toBeGreaterThan(roles[1]?.tokens ?? 0);
  expect(others).toBeGreaterThan(0);
});

/** As servers write them: short words, some of them with enums, lists and defaults. */
const REAL = ["issue", "branch", "message", "invoice", "event"].flatMap((thing) =>
  ["list", "search", "create"].map((verb) => ({
    name: `tracker__${verb}_${thing}`,
    server: "tracker",
    ownName: `${verb}_${thing}`,
    description: `Does ${verb} every ${thing} that the account can see, newest first. Prefer searching when you know a part of the name.`,
    inputSchema: {
      type: "object",
      properties: {
        query: { type: "string", description: `Words in the name or text of the ${thing}.` },
        state: { type: "string", enum: ["open", "closed", "all"], default: "open" },
        labels: { type: "array", items: { type: "string" }, description: "All of these have to be there." },
        page_size: { type: "integer", minimum: 1, maximum: 100, default: 20 },
      },
      required: ["query"],
    },
  })),
);

it("what a definition costs is about what a tokenizer counts, to a fifth", async () => {
  const routes = toolLineRoutes({
    tools: async () => REAL,
    pins: () => ({ lines: [], trusted: [] }),
    roles: () => [],
    hiddenFrom: () => () => undefined,
    hiddenBy: () => () => undefined,
  });
  const signal = new AbortController().signal;
  const answer = await routes["GET /tools/lines"]?.({
    params: {},
    query: new URLSearchParams(),
    body: undefined,
    signal,
  });
  let estimate = 0;
  for await (const { tokens } of (answer as { source: AsyncIterable<ToolInShort> }).source) estimate += tokens;
  let counted = 0;
  for (const { name, description, inputSchema } of REAL) {
    counted += encode(JSON.stringify({ name, description, inputSchema })).length;
  }
  expect(estimate / counted).toBeGreaterThan(0.8);
  expect(estimate / counted).toBeLessThan(1.2);
});
