// Call budgets through a real gateway: for each principal of a role, and for a server as a whole.

import { beforeAll, describe, expect, it } from "vitest";
import { listensToCached } from "./eras.js";
import { type Gateway, startGateway, stdioFixture, until } from "./harness.js";
import { callTool, createToken, hasTool, made, refusal } from "./operator.js";

const TOKEN = "tw_e2e_default_token_of_enough_length_0123456789";
const LIMIT = -31006;
const DENIED = -31007;
/** Longer than any run: nothing is given back meanwhile. */
const HOUR_MS = 3_600_000;
const SHORT_MS = 2_000;
/** A call may count for one slot of its window (1/60) too long. */
const SLOT = 1 + 1 / 60;

describe("a budget", () => {
  let gateway: Gateway;
  const tokens: Record<string, string> = {};

  beforeAll(async () => {
    const cached = stdioFixture("cached", ["--era", "modern"], { tools: { stamp: { cache: true } } });
    gateway = await startGateway(
      {
        mcpServers: {
          cached,
          free: stdioFixture("stateful"),
          scarce: stdioFixture("slow", [], { budget: { calls: 3, windowMs: HOUR_MS } }),
        },
        roles: {
          frugal: { budget: { calls: 3, windowMs: HOUR_MS }, deny: ["free/whoami"] },
          hasty: { budget: { calls: 1, windowMs: SHORT_MS } },
          rich: {},
        },
      },
      { auth: true, env: { TOOLWAY_TOKEN: TOKEN } },
    );
    for (const [id, role] of [
      ["ann", "frugal"],
      ["bob", "frugal"],
      ["cid", "frugal"],
      ["dan", "hasty"],
      ["eve", "rich"],
      ["fay", "rich"],
    ] as const) {
      tokens[id] = await createToken(gateway, id, role);
    }
    for (const tool of ["stamp", "count", "sleep"]) await until(tool, () => hasTool(gateway.url, tool, TOKEN));
    await listensToCached(gateway, { token: TOKEN });
  });

  const count = (id: string) => callTool(gateway.url, "count", {}, tokens[id]);

  it("of a principal is its own: when one has spent it, another of the same role has all of it", async () => {
    for (let call = 0; call < 3; call++) made(await count("ann"));
    const told = await refusal(gateway.url, "count", {}, tokens["ann"]);
    expect(told).toMatchObject({
      code: LIMIT,
      data: { fault: "budget", scope: "principal", limit: 3, spent: 3, windowMs: HOUR_MS },
    });
    const { resetsInMs } = told.data as { resetsInMs: number };
    expect(resetsInMs).toBeGreaterThan(0);
    expect(resetsInMs).toBeLessThanOrEqual(HOUR_MS * SLOT);
    expect(told.message).toMatch(
      /^Your call budget is spent: 3 calls in 3600 s, 3 made\. Nothing was sent\. Try again in/,
    );
    made(await count("bob"));
    // A refused one costs nothing, and lists are free.
    expect(await refusal(gateway.url, "count", {}, tokens["ann"])).toMatchObject({ data: { spent: 3 } });
    expect(await hasTool(gateway.url, "count", tokens["ann"])).toBe(true);
    made(await count("eve"));
  });

  it("is not charged for a denied call, and is for a hit of the cache [host-8]", async () => {
    const cid = tokens["cid"];
    for (let call = 0; call < 5; call++) {
      expect(await refusal(gateway.url, "whoami", {}, cid)).toMatchObject({ code: DENIED });
    }
    const stamps = [];
    for (let call = 0; call < 3; call++) stamps.push(made(await callTool(gateway.url, "stamp", { key: "hit" }, cid)));
    expect(stamps).toEqual([stamps[0], stamps[0], stamps[0]]);
    // What is kept would be at hand, and is refused all the same.
    expect(await refusal(gateway.url, "stamp", { key: "hit" }, cid)).toMatchObject({
      code: LIMIT,
      data: { fault: "budget", scope: "principal", limit: 3, spent: 3 },
    });
  });

  it("is given back when its window is over, no earlier than was said", async () => {
    // On a slow machine the window of the first call may be over before the second comes.
    let before = 0;
    const { data } = await until("a refusal", async () => {
      before = performance.now();
      return (await count("dan")).error as { data: object } | undefined;
    });
    expect(data).toMatchObject({ limit: 1, spent: 1, windowMs: SHORT_MS });
    const { resetsInMs } = data as { resetsInMs: number };
    expect(resetsInMs).toBeLessThanOrEqual(SHORT_MS * SLOT);
    await until("the next call", async () => (await count("dan")).result !== undefined);
    // The refusal was written after our clock was read; a millisecond for the rounding of both.
    expect(performance.now() - before).toBeGreaterThanOrEqual(resetsInMs - 1);
  });

  it("of a server is shared by all who call it, and not with another server", async () => {
    const sleep = (id: string) => callTool(gateway.url, "sleep", { ms: 1, label: id }, tokens[id]);
    for (const id of ["eve", "fay", "eve"]) made(await sleep(id));
    for (const id of ["eve", "fay"]) {
      const told = await refusal(gateway.url, "sleep", { ms: 1, label: id }, tokens[id]);
      expect(told).toMatchObject({
        code: LIMIT,
        data: { fault: "budget", scope: "server", limit: 3, spent: 3, windowMs: HOUR_MS },
      });
      expect(told.message).toContain('Server "scarce"\'s call budget is spent: 3 calls in 3600 s');
    }
    made(await count("eve"));
  });

  it("of a principal is not charged for what the server's budget refuses", async () => {
    // Bob has made one call of his three.
    for (let call = 0; call < 4; call++) {
      expect(await refusal(gateway.url, "sleep", { ms: 1, label: "bob" }, tokens["bob"])).toMatchObject({
        data: { scope: "server" },
      });
    }
    for (let call = 0; call < 2; call++) made(await count("bob"));
    expect(await refusal(gateway.url, "count", {}, tokens["bob"])).toMatchObject({ data: { scope: "principal" } });
  });
});

it("goes on counting what was spent when the config is edited", async () => {
  const config = (calls: number) => ({
    mcpServers: { one: stdioFixture("stateful", [], { budget: { calls, windowMs: HOUR_MS } }) },
  });
  const gateway = await startGateway(config(2));
  await until("its tools", () => hasTool(gateway.url, "count"));
  for (let call = 0; call < 2; call++) made(await callTool(gateway.url, "count"));
  expect(await refusal(gateway.url, "count")).toMatchObject({ data: { limit: 2, spent: 2 } });
  await gateway.writeConfig(config(3));
  made(
    await until("the third call", async () => {
      const reply = await callTool(gateway.url, "count");
      return reply.result === undefined ? undefined : reply;
    }),
  );
  expect(await refusal(gateway.url, "count")).toMatchObject({ data: { limit: 3, spent: 3 } });
});
