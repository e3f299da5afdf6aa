// A kill of the gateway at each point of a kept write's way that has a name. The process is held there until it is killed, so
// that no luck is needed to meet a point; then it is started again, and what the agent is told under the same key is compared
// with what stands in the server's own file, for a tool that honours keys and for one that knows none.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type Gateway, root, startGateway, startHttpFixture, temporaryDirectory, until } from "../e2e/harness.js";
import { callTool, hasTool } from "../e2e/operator.js";
import { effectsIn } from "../fixtures/ledger.js";
import { figure } from "./length.js";
import { linux, report } from "./measure.js";

const KILLS = figure(1, 20);
/** The effect is there, and the answer this much later: a kill falls in between. */
const ANSWER_MS = 300;

/** The code of the fault `unavailable`. */
const UNAVAILABLE = -31001;

const TOOLS = ["create_issue", "add_comment"] as const;
type Tool = (typeof TOOLS)[number];

interface Point {
  readonly name: string;
  /** Undefined where nothing is held: its own sign says when it is reached. */
  readonly held?: string;
  /** The server is away until the gateway is back. */
  readonly isAway?: true;
  readonly reached?: "effect" | "receipt";
  /** What the tool that knows no keys ends with; the one that honours them always ends with its result, done once. */
  readonly keyless: { readonly state: "done" | "unknown"; readonly effects: 0 | 1 };
}

const ONCE = { state: "done", effects: 1 } as const;
const POINTS: readonly Point[] = [
  { name: "came, before its commit", held: "before write", keyless: ONCE },
  { name: "is on disk, before it is sent", held: "after write", keyless: { state: "unknown", effects: 0 } },
  { name: "is queued on disk, before its agent is answered", held: "after queued", isAway: true, keyless: ONCE },
  {
    name: "was sent, before anything is marked",
    held: "before done",
    reached: "effect",
    keyless: { state: "unknown", effects: 1 },
  },
  { name: "was answered, before that is marked", held: "before done", keyless: { state: "unknown", effects: 1 } },
  { name: "is marked as done, before its agent is answered", held: "after done", keyless: ONCE },
  { name: "is queued, and its receipt was read", isAway: true, reached: "receipt", keyless: ONCE },
];

interface Receipt {
  readonly receipt: string;
  readonly state: string;
}

describe.skipIf(!linux)("a kill of the gateway", () => {
  let gateway: Gateway;
  let plan: string;
  let ledger: string;
  let server: Awaited<ReturnType<typeof startHttpFixture>>;
  let calls = 0;

  beforeAll(async () => {
    plan = join(await temporaryDirectory(), "plan");
    ledger = join(await temporaryDirectory(), "ledger.jsonl");
    await writeFile(plan, "");
    server = await startHttpFixture("tracker", ["--ledger", ledger]);
    const outbox = { lane: "arguments.project" };
    const tools = { create_issue: { outbox: { ...outbox, key: "arguments.request_id" } }, add_comment: { outbox } };
    // It is killed more often here than a server may be that is not left alone for a while.
    const tracker = { ...server.entry, tools, restarts: { max: 1_000 }, breaker: { failures: 1_000 } };
    const under = [process.execPath, join(root, "test/faults/held-cli.mjs"), plan];
    gateway = await startGateway({ mcpServers: { tracker } }, { under });
    await until("the tools", () => hasTool(gateway.url, "create_issue"));
  });

  const titleOf = (tool: Tool, id: string) => `${tool} ${id}`;

  function write(tool: Tool, id: string, ms: number) {
    const title = titleOf(tool, id);
    const args = { project: tool, title, ms, request_id: title };
    return callTool(gateway.url, tool, args, undefined, { "toolway/idempotencyKey": title });
  }

  const receiptIn = (result: Record<string, unknown> | undefined) => {
    const { receipt, state } = (result?.["structuredContent"] ?? {}) as Partial<Receipt>;
    return receipt === undefined || state === undefined ? undefined : { receipt, state };
  };

  /** What became of it, as its agent is told under the same key. */
  async function ended(tool: Tool, id: string, ms: number): Promise<string> {
    return until(`the end of ${tool} ${id}`, async () => {
      const { result, error } = await write(tool, id, ms);
      // A gateway that was killed soon after it read the tools may not know them before the server is back.
      if (error?.["code"] === UNAVAILABLE) return false;
      if (error !== undefined) return JSON.stringify(error);
      const state = receiptIn(result)?.state ?? "done";
      return state !== "queued" && state !== "sending" && state;
    });
  }

  const effects = (tool: Tool, id: string) =>
    effectsIn(ledger).filter(({ title }) => title === titleOf(tool, id)).length;

  for (const point of POINTS) {
    it(
      `when a write ${point.name}, ${KILLS} of them, loses none and doubles none, and calls unknown what nobody can tell [ack-is-durable] [no-double-effect] [unknown-is-said]`,
      async () => {
        const { held = "", isAway, reached, keyless } = point;
        const ms = reached === "effect" ? ANSWER_MS : 0;
        for (let n = 0; n < KILLS; n++) {
          const id = String(calls++);
          if (isAway) await server.kill();
          await writeFile(plan, held);
          const cut = TOOLS.map((tool) => write(tool, id, ms).catch(() => undefined));
          const receipts: Receipt[] = [];
          if (reached === "effect") {
            await until("both effects", () => TOOLS.every((tool) => effects(tool, id) === 1));
          } else if (reached === "receipt") {
            for (const reply of await Promise.all(cut)) receipts.push(receiptIn(reply?.result) as Receipt);
            expect(receipts.map(({ state }) => state)).toEqual(["queued", "queued"]);
          } else {
            // One that waits is tried again, and is held a second time.
            const isHeld = (tool: Tool) => gateway.log().includes(`held: ${held} ${tool}\n`);
            await until(`both to be held ${held}`, () => TOOLS.every(isHeld));
          }
          await gateway.stop("SIGKILL");
          await Promise.all(cut);
          await writeFile(plan, "");
          gateway = await gateway.again();
          if (isAway) server = await startHttpFixture("tracker", ["--ledger", ledger], server.port);
          expect(await ended("create_issue", id, ms)).toBe("done");
          expect(effects("create_issue", id)).toBe(1);
          expect(await ended("add_comment", id, ms)).toBe(keyless.state);
          expect(effects("add_comment", id)).toBe(keyless.effects);
          // The receipt that was read is the same one, and has what became of it.
          for (const { receipt } of receipts) {
            const { result } = await callTool(gateway.url, "toolway__receipt", { id: receipt });
            expect(receiptIn(result)).toEqual({ receipt, state: "done" });
          }
        }
        report(
          "outbox",
          `${KILLS} kills of the gateway when a write ${point.name}: with a key done once, without one ${keyless.state} ` +
            `with ${keyless.effects} effects [ack-is-durable] [no-double-effect] [unknown-is-said]`,
        );
      },
      figure(60_000, 900_000),
    );
  }
});
