// Agents with the real SDK clients make calls of all kinds at once: plain ones, writes that are kept for a server that honours
// keys, writes that are kept for a machine behind a mailbox, and reads that are cached. Gateway, broker and server are killed
// meanwhile. What was done is counted in the files of whoever did it, and compared with what the agents were told.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type ClientV1, connectV1, connectV2 } from "../e2e/clients.js";
import { freePort, sleep, startHttpFixture, stdioFixture, temporaryDirectory, until } from "../e2e/harness.js";
import { effectsIn } from "../fixtures/ledger.js";
import { disorder } from "../fixtures/outbox/kept-writes.js";
import { figure, full } from "./length.js";
import { endParts, linesOf, Machine, Part, startBroker } from "./mailbox-parts.js";
import { linux, report } from "./measure.js";
import { runSeed, seeded } from "./random.js";

/** Of each of the three. */
const KILLS = figure(1, 20);
const CALLS = figure(80, 10_000);
const AGENTS = figure(3, 9);
const LANES = 4;
/** An answer comes up to so long after its effect: kills fall in between. */
const ANSWER_MS = 20;
/** A part is away for up to so long, beside the time that it takes to start. */
const AWAY_MS = 300;
/** From the ready line of what was killed until every kind of call works again. */
const AGAIN_MEDIAN_MS = 2_000;
const AGAIN_MS = 5_000;
const PROMPT_MS = 2_000;
/** A line that stood so long is dialled again at once: kills in a row are one long outage, and measure waits. */
const HEALTHY_MS = figure(0, 10_500);

const KINDS = ["plain", "outbox", "mailbox", "cached"] as const;
type Kind = (typeof KINDS)[number];

interface Made {
  readonly kind: Kind;
  readonly title: string;
  readonly lane: string;
  readonly ms: number;
  readonly beganMs: number;
  toldMs: number;
  told: "result" | "receipt" | "error" | "cut";
}

interface Answer {
  readonly content: readonly { readonly text?: string }[];
  readonly structuredContent?: { readonly receipt?: string; readonly state?: string };
  readonly isError?: boolean;
}

const NAMES: Record<Kind, string> = {
  plain: "local__note",
  outbox: "tracker__create_issue",
  mailbox: "box__note",
  cached: "local__echo",
};

describe.skipIf(!linux)("kills of gateway, broker and server under calls of all kinds", () => {
  afterAll(() => endParts(false));

  it(`${KILLS} of each, over ${CALLS} calls of SDK v1 and v2, lose nothing that was acknowledged, double nothing and end no session [ack-is-durable] [no-double-effect] [lane-order] [restart-unseen]`, async () => {
    const random = seeded(runSeed());
    const folder = await temporaryDirectory();
    const [ledger, notes] = [join(folder, "ledger.jsonl"), join(folder, "notes.txt")];
    await writeFile(notes, "");
    const broker = await startBroker();
    const machine = await Machine.start(broker, "box");
    let server = await startHttpFixture("tracker", ["--ledger", ledger]);
    const often = { restarts: { max: 1_000 }, breaker: { failures: 1_000 } };
    const keyed = { key: "arguments.request_id", lane: "arguments.project" };
    const mcpServers = {
      local: {
        ...stdioFixture("ledger", [], { env: { LEDGER: notes } }),
        ...often,
        tools: { echo: { readOnly: true, cache: true } },
      },
      tracker: { ...server.entry, ...often, tools: { create_issue: { outbox: keyed } } },
      box: { mailbox: "box", broker: broker.url, tools: { note: { outbox: true } } },
    };
    const config = join(folder, "toolway.json");
    await writeFile(config, JSON.stringify({ names: "prefixed", mcpServers }));
    const listen = `127.0.0.1:${await freePort()}`;
    const url = `http://${listen}/mcp`;
    const line = ["serve", config, "--listen", listen, "--state", join(folder, "state"), "--no-auth", "--json"];
    const gateway = await new Part("gateway", line, '{"').start();
    let gatewayUp: Promise<unknown> = Promise.resolve();

    const auto = { capabilities: {}, versionNegotiation: { mode: "auto" } } as const;
    const clients = await Promise.all(
      Array.from({ length: AGENTS }, async (_, n) =>
        n % 3 === 0 ? connectV1(url) : ((await connectV2(url, n % 3 === 1 ? undefined : auto)) as unknown as ClientV1),
      ),
    );
    // A client that has listed the tools checks what they answer.
    for (const client of clients) {
      await until("the tools", async () => {
        const there = new Set((await client.listTools()).tools.map(({ name }) => name));
        return KINDS.every((kind) => there.has(NAMES[kind]));
      });
    }
    const sessions = clients.map(({ transport }) => transport?.sessionId);

    const once = (client: ClientV1, { kind, title, lane, ms }: Made): Promise<Answer> => {
      const kept = kind === "outbox" || kind === "mailbox";
      const args =
        kind === "outbox"
          ? { project: lane, title, ms, request_id: title }
          : kind === "cached"
            ? { text: `read-${title.length}` }
            : { text: title, ms };
      const meta = kept ? { _meta: { "toolway/idempotencyKey": title } } : {};
      return client.callTool({ name: NAMES[kind], arguments: args, ...meta }) as Promise<Answer>;
    };
    /** What is kept is made again under its key until somebody answers, as an agent does whose connection was cut. */
    const settled = async (client: ClientV1, made: Made): Promise<Answer | "cut" | "error"> => {
      for (;;) {
        await gatewayUp;
        try {
          return await once(client, made);
        } catch (error) {
          const isCut =
            (error as { code?: unknown }).code === undefined || !(Number((error as { code: unknown }).code) < 0);
          if (made.kind === "plain" || made.kind === "cached") return isCut ? "cut" : "error";
          await sleep(20);
        }
      }
    };
    const isReceipt = (answer: Answer) => answer.structuredContent?.receipt !== undefined;

    const all: Made[] = [];
    let told = 0;
    const make = async (client: ClientV1, kind: Kind, lane: string): Promise<Made> => {
      const title = `${kind}-${all.length}`;
      const made: Made = {
        kind,
        title,
        lane,
        ms: random.int(ANSWER_MS),
        beganMs: performance.now(),
        toldMs: 0,
        told: "cut",
      };
      all.push(made);
      const answer = await settled(client, made);
      made.told =
        typeof answer === "string" ? answer : isReceipt(answer) ? "receipt" : answer.isError ? "error" : "result";
      made.toldMs = performance.now();
      told++;
      return made;
    };
    const agents = clients.map(async (client, agent) => {
      while (all.length < CALLS) {
        const made = await make(client, KINDS[random.int(KINDS.length)] ?? "plain", `lane-${agent % LANES}`);
        // What is refused at once is not asked for in a circle.
        if (made.told === "cut" || made.told === "error") await sleep(20);
      }
    });

    const again: { readonly who: string; readonly outMs: number; readonly againMs: number; readonly last: string }[] =
      [];
    const kill = async (who: "gateway" | "broker" | "server") => {
      await sleep(random.int(60));
      const outMs = performance.now();
      if (who === "server") {
        await server.kill();
        await sleep(random.int(AWAY_MS));
        server = await startHttpFixture("tracker", ["--ledger", ledger], server.port);
      } else {
        const part = who === "gateway" ? gateway : broker.part;
        const back = part.kill().then(async () => {
          await sleep(random.int(AWAY_MS));
          await part.start();
        });
        if (who === "gateway") gatewayUp = back.catch(() => {});
        await back;
      }
      const readyMs = performance.now();
      const [probe] = clients;
      if (probe === undefined) return;
      // Of each kind one that is answered with its result, not with a receipt.
      let last = "";
      let lastMs = 0;
      await Promise.all(
        KINDS.map(async (kind) => {
          await until(`${kind} to work again`, async () => (await make(probe, kind, "probe")).told === "result");
          if (performance.now() > lastMs) [last, lastMs] = [kind, performance.now()];
        }),
      );
      again.push({ who, outMs: readyMs - outMs, againMs: lastMs - readyMs, last });
    };
    for (let n = 0; n < 3 * KILLS; n++) {
      await until("some calls", () => told >= Math.floor((n * CALLS) / (3 * KILLS + 1)), 600_000);
      const who = (["server", "gateway", "broker"] as const)[n % 3] ?? "gateway";
      if (who === "broker") await sleep(HEALTHY_MS);
      await kill(who);
    }
    await Promise.all(agents);

    const done = new Map<string, number>();
    const count = (title: string) => done.set(title, (done.get(title) ?? 0) + 1);
    const [reader] = clients as [ClientV1];
    const wrong: string[] = [];
    for (const made of all) {
      if (made.kind !== "outbox" && made.kind !== "mailbox") continue;
      await until(`the end of ${made.title}`, async () => {
        const answer = await settled(reader, made);
        if (typeof answer === "string") return false;
        const { state = "done" } = answer.structuredContent ?? {};
        if (state === "queued" || state === "sending") return false;
        if (state !== "done" || answer.isError === true) wrong.push(`${made.title}: ${JSON.stringify(answer)}`);
        return true;
      });
    }
    const of = (kind: Kind) => all.filter((made) => made.kind === kind);
    const effects = effectsIn(ledger);
    const noted = (await machine.effects()).map((title) => ({ title }));
    for (const { title } of [...effects, ...noted]) count(title);
    for (const title of await linesOf(notes)) count(title);
    const sums = { result: 0, receipt: 0, error: 0, cut: 0 };
    let lost = 0;
    let doubled = 0;
    for (const { kind, title, told: as } of all) {
      sums[as]++;
      const times = done.get(title) ?? 0;
      const isCertain = kind === "outbox" || kind === "mailbox" || (kind === "plain" && as === "result");
      if (kind !== "cached" && isCertain && times === 0) lost++;
      if (times > 1) doubled++;
      if (times > 1 || (kind !== "cached" && isCertain && times === 0))
        wrong.push(`${title}: ${times} effects, told ${as}`);
    }
    for (const lane of new Set(all.map((made) => made.lane))) wrong.push(...disorder(lane, of("outbox"), effects));
    // Without a lane of their own, the writes of one principal at a server are one.
    const boxed = of("mailbox").map((made) => ({ ...made, lane: "box" }));
    wrong.push(...disorder("box", boxed, noted));
    const seconds = (ms = 0) => `${(ms / 1_000).toFixed(2)} s`;
    again.sort((a, b) => a.againMs - b.againMs);
    const median = again[again.length >> 1];
    const slowest = again.at(-1);
    report(
      "mixed",
      `${3 * KILLS} kills of gateway, broker and server, ${all.length} calls of ${AGENTS} SDK clients (seed ${random.seed}): ` +
        `${sums.result} answered, ${sums.receipt} by a receipt, ${sums.error} refused, ${sums.cut} cut; ${lost} lost, ` +
        `${doubled} doubled; every kind working again from the ready line: median ${seconds(median?.againMs)}, at most ` +
        `${seconds(slowest?.againMs)} (${slowest?.last} after the ${slowest?.who}, which was away for ${seconds(slowest?.outMs)}) [ack-is-durable] [no-double-effect] [lane-order] [restart-unseen]`,
    );
    expect(wrong).toEqual([]);
    // Each of them has the session that it began with.
    expect(clients.map(({ transport }) => transport?.sessionId)).toEqual(sessions);
    if (!full) return;
    // Whoever dials a part that is away waits longer after each try, as it should, and no longer than that was away: the times
    // after a prompt start count, and most starts are prompt.
    const prompt = again.filter(({ outMs }) => outMs < PROMPT_MS);
    expect(2 * prompt.length).toBeGreaterThanOrEqual(again.length);
    expect(prompt[prompt.length >> 1]?.againMs).toBeLessThan(AGAIN_MEDIAN_MS);
    const bound = (outMs: number) => AGAIN_MS + (outMs < PROMPT_MS ? 0 : outMs);
    expect(again.filter(({ outMs, againMs }) => againMs >= bound(outMs))).toEqual([]);
  }, 1_500_000);
});
