// A server that is away for a few seconds, as one that is deployed anew is, and to which nobody makes calls meanwhile but those
// that are kept: when it has them.

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { effectsIn } from "../fixtures/ledger.js";
import { connect, ERAS } from "./eras.js";
import { startGateway, startHttpFixture, temporaryDirectory, until } from "./harness.js";

const AWAY_MS = 3_000;
/** Of this, the new process of the server takes a part until it listens. */
const SOON_MS = 5_000;

it.each(ERAS)(
  "an HTTP server that is back after 3 s has its kept writes within 5 s more, though its breaker is open and nobody calls it, of agents of the %s era [ack-is-durable] [no-double-effect]",
  async (era) => {
    const ledger = join(await temporaryDirectory(), "ledger.jsonl");
    const { entry, port, kill } = await startHttpFixture("tracker", ["--ledger", ledger]);
    const tools = {
      create_issue: { outbox: { key: "arguments.request_id", lane: "arguments.project" } },
      add_comment: { outbox: { lane: "arguments.project" } },
    };
    const gateway = await startGateway({ mcpServers: { tracker: { ...entry, tools } } });
    const agent = await connect(era, gateway);
    await agent.waitFor("create_issue", "add_comment");
    await agent.call("create_issue", { project: "p", title: "before" });
    await kill();
    // More than the five that open the breaker, each in a lane of its own.
    const titles = Array.from({ length: 8 }, (_, n) => `write ${n}`);
    for (const [n, title] of titles.entries()) {
      await agent.call(n % 2 === 0 ? "create_issue" : "add_comment", { project: title, title });
    }
    expect(gateway.log()).toContain("the breaker is open");
    await sleep(AWAY_MS);
    await startHttpFixture("tracker", ["--ledger", ledger], port);
    const backMs = performance.now();
    await until("all writes", () => effectsIn(ledger).length === titles.length + 1);
    expect(performance.now() - backMs).toBeLessThan(SOON_MS);
    const done = effectsIn(ledger).map(({ title }) => title);
    expect(new Set(done)).toEqual(new Set(["before", ...titles]));
    expect(done).toHaveLength(titles.length + 1);
  },
);
