// The life of a call: progress, deadlines, cancellation.

import { beforeAll, describe, expect, it } from "vitest";
import { callJson, callText, connectV1, connectV2, waitForTools } from "./clients.js";
import { fixtureOver, type Gateway, sleep, startGateway, stdioFixture, until } from "./harness.js";
import { lastOf, openHttpWire, openStdioWire } from "./wire.js";

const DEADLINE_MS = 1_500;

interface Cancelled {
  readonly label: string;
  readonly reason: string;
}

/** Of a call that is to be ended from outside: far longer than a busy machine needs for that. */
const LONG_MS = 60_000;

describe.each(["stdio", "http"] as const)("calls over a server on %s", (kind) => {
  let gateway: Gateway;
  /** The same with a deadline for each call. */
  let impatient: Gateway;

  beforeAll(async () => {
    const entry = await fixtureOver(kind, "slow");
    gateway = await startGateway({ mcpServers: { slow: entry } });
    impatient = await startGateway({ mcpServers: { slow: { ...entry, callTimeoutMs: DEADLINE_MS } } });
    for (const { url } of [gateway, impatient]) await waitForTools(await connectV1(url), "sleep");
  });

  it("progress reaches the caller, in order, with SDK v1 and v2", async () => {
    const params = { name: "sleep", arguments: { ms: 120, everyMs: 30 } };
    const seen: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => void seen.push(progress);
    await (await connectV1(gateway.url)).callTool(params, undefined, { onprogress });
    expect(seen.splice(0)).toEqual([30, 60, 90]);
    await (await connectV2(gateway.url)).callTool(params, { onprogress });
    expect(seen).toEqual([30, 60, 90]);
  });

  it("a call without an answer ends at its deadline, alone", async () => {
    const wire = await openHttpWire(impatient.url);
    const before = Date.now();
    const late = wire.send(call("1", '{"ms":20000,"label":"late"}'));
    const client = await connectV1(impatient.url);
    expect(await callJson(client, "sleep", { ms: 10 })).toMatchObject({ slept: 10 });
    const { error } = JSON.parse(lastOf(await late)) as { error: { code: number; message: string } };
    expect(error.code).toBe(-31004);
    expect(error.message).toContain("slow");
    expect(Date.now() - before).toBeGreaterThanOrEqual(DEADLINE_MS - 50);
    await until("word to the server", async () =>
      (await callJson<Cancelled[]>(client, "cancelled")).some(({ label }) => label === "late"),
    );
  });

  it("progress extends the deadline", async () => {
    const wire = await openHttpWire(impatient.url);
    const ms = 2 * DEADLINE_MS;
    const answer = await wire.send(call("1", `{"ms":${ms},"everyMs":300}`, ',"_meta":{"progressToken":"p"}'));
    expect(lastOf(answer)).toContain(`{\\"slept\\":${ms}`);
    expect(answer.type).toBe("sse");
  });

  it("cancellation reaches the server, and the agent hears no answer afterwards", async () => {
    const client = await connectV1(gateway.url);
    const abort = new AbortController();
    const label = `cancel-${kind}`;
    const answer = client
      .callTool({ name: "sleep", arguments: { ms: LONG_MS, label } }, undefined, { signal: abort.signal })
      .then(
        () => "answered",
        () => "cancelled",
      );
    await until("its start", async () => (await callText(client, "started")).includes(label));
    abort.abort("changed my mind");
    expect(await answer).toBe("cancelled");
    await until("word to the server", async () =>
      (await callJson<Cancelled[]>(client, "cancelled")).some((one) => one.label === label),
    );
  });

  it("an agent that goes away takes its calls along", async () => {
    const wire = await openHttpWire(gateway.url);
    const client = await connectV1(gateway.url);
    const label = `gone-${kind}`;
    void wire.send(call("1", `{"ms":${LONG_MS},"label":"${label}"}`)).catch(() => {});
    await until("its start", async () => (await callText(client, "started")).includes(label));
    await wire.close();
    await until("word to the server", async () =>
      (await callJson<Cancelled[]>(client, "cancelled")).some((one) => one.label === label),
    );
  });

  it("an agent on stdio cancels by notification", async () => {
    const wire = await openStdioWire(gateway);
    const client = await connectV1(gateway.url);
    const label = `stdio-${kind}`;
    void wire.send(call("41", `{"ms":${LONG_MS},"label":"${label}"}`));
    await until("its start", async () => (await callText(client, "started")).includes(label));
    await wire.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":41,"reason":"enough"}}');
    await until("word to the server", async () =>
      (await callJson<Cancelled[]>(client, "cancelled")).some((one) => one.label === label),
    );
    await sleep(100);
    expect(wire.lines.filter((line) => line.includes('"id":41'))).toEqual([]);
  });
});

it("a cancellation of what is already answered, or never was, does no harm", async () => {
  const gateway = await startGateway({ mcpServers: { slow: stdioFixture("slow") } });
  const wire = await openHttpWire(gateway.url);
  await waitForTools(await connectV1(gateway.url), "sleep");
  for (let id = 1; id <= 3; id++) {
    expect(lastOf(await wire.send(call(String(id), '{"ms":1}')))).toContain("slept");
    const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`;
    expect((await wire.send(cancel)).status).toBe(202);
    expect((await wire.send(cancel.replace(`${id}}`, '"never"}'))).status).toBe(202);
  }
});

function call(id: string, args: string, more = ""): string {
  return `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"sleep","arguments":${args}${more}}}`;
}
