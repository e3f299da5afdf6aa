// One of two gateways is taken out of use, asked of the other: the calls that it has end, and kept writes go on without a gap.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { CLOSING } from "../../src/protocol/errors.js";
import { isAlive, startGateway, startHttpFixture, stdioFixture } from "../e2e/harness.js";
import { callTool, hasTool, toolway } from "../e2e/operator.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { effectsIn } from "../fixtures/ledger.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `toolway drain, ${NO_NATS}` : "toolway drain";

interface Listed {
  readonly gateway: string;
  readonly partitions: number;
  readonly isThis: boolean;
}

describe.skipIf(natsPrograms.length === 0)(title, () => {
  it("hands over what a gateway has, lets its calls end and stops it, while writes at the other go on [engine-drain]", async () => {
    const nats = await startNats();
    const folder = temporaryFolder("toolway-drain-");
    const [key, ledger] = [join(folder, "key"), join(folder, "ledger.jsonl")];
    writeFileSync(key, makeEngineKey(), { mode: 0o600 });
    const server = await startHttpFixture("tracker", ["--ledger", ledger]);
    const tools = { create_issue: { outbox: { lane: "arguments.project", key: "arguments.request_id" } } };
    const config = {
      mcpServers: { tracker: { type: "http", url: server.url, tools }, slow: stdioFixture("slow") },
      audit: {},
      mailboxes: {},
      engine: { nats: nats.urls, key: { file: key }, replicas: 1 },
    };
    const staying = await startGateway(config);
    const leaving = await startGateway(config);
    const list = async () => JSON.parse((await toolway(staying, "drain", "--json")).out) as Listed[];
    await until("both to have half", async () => (await list()).every(({ partitions }) => partitions === 32));
    for (const { url } of [staying, leaving]) await until("its tools", () => hasTool(url, "sleep"));
    const name = (await list()).find(({ isThis }) => !isThis)?.gateway ?? "";

    const inFlight = callTool(leaving.url, "sleep", { ms: 2_000 });
    let isOver = false;
    let written = 0;
    // At the one that leaves too, as long as it answers.
    let atLeaving = 0;
    const refused: string[] = [];
    const writesThere = (async () => {
      for (; !isOver; atLeaving++) {
        const args = { project: `q${atLeaving % 8}`, title: `t${atLeaving}`, request_id: `l${atLeaving}` };
        const answer = await callTool(leaving.url, "create_issue", args).catch(() => undefined);
        if (answer === undefined || answer.error?.code === CLOSING) return;
        const { result, error } = answer;
        if (error !== undefined || result?.["isError"] === true) refused.push(JSON.stringify({ result, error }));
      }
    })();
    const writes = (async () => {
      for (; !isOver; written++) {
        const args = { project: `p${written % 8}`, title: `t${written}`, request_id: `k${written}` };
        const { result, error } = await callTool(staying.url, "create_issue", args);
        if (error !== undefined || result?.["isError"] === true) throw new Error(JSON.stringify({ result, error }));
      }
    })();
    writes.catch(() => {});
    // By the address, which a person knows: the names are drawn at each start.
    const { out: listed } = await toolway(staying, "drain");
    const address = new URL(leaving.url).host;
    expect(listed.split("\n").find((line) => line.includes(name))).toMatch(
      new RegExp(`${hostname()} +${address} +32 .* toolway\\.json `),
    );
    const { code, out, err } = await toolway(staying, "drain", address);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(new RegExp(`Gateway ${name} \\(.*${address}.*\\) has handed over`));
    expect((await list()).map(({ gateway }) => gateway)).not.toContain(name);
    await until("the other to have all", async () => (await list())[0]?.partitions === 64);
    expect(JSON.stringify((await inFlight).result)).toContain("slept");
    await leaving.exited;
    expect(isAlive(leaving.pid)).toBe(false);
    isOver = true;
    await Promise.all([writes, writesThere]);
    expect([refused, written > 0, atLeaving > 0]).toEqual([[], true, true]);
    await until("every write to be delivered", () => effectsIn(ledger).length >= written + atLeaving);
    const audits = join(leaving.stateDir, "audit");
    const audited = readFileSync(join(audits, readdirSync(audits)[0] ?? ""), "utf8");
    expect(audited).toContain(`"by":"gateway","act":"POST /drain","target":{"gateway":"${name}"`);
    expect((await toolway(staying, "__complete", "gateway")).out).toMatch(/^this\n[\w-]+\n/);

    const unknown = await toolway(staying, "drain", "nobody");
    expect(unknown.code).not.toBe(0);
    expect(unknown.err).toContain('There is no gateway "nobody" on the engine. There are: ');
    // The last one: nobody takes over.
    expect(await toolway(staying, "drain", "this")).toMatchObject({
      code: 0,
      out: expect.stringContaining("No other is there: what it had in hand waits in the engine."),
    });
    await staying.exited;
    // A machine that is busy with other tests takes half a minute for it.
  }, 300_000);
});
