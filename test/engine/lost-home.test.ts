// The gateway that has a session's processes and a call that waits is gone: the session goes on at another, what waited is to
// be repeated, and the log says so.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { send } from "../e2e/eras.js";
import { begin, type EngineGateway, post, startOnEngine } from "../fixtures/engine-gateways.js";
import { entry } from "../fixtures/gateways.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `a home that is gone, ${NO_NATS}` : "a home that is gone";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;
  let home: EngineGateway;
  let other: EngineGateway;

  beforeEach(async () => {
    nats = await startNats();
    const mcpServers = {
      asker: entry("asker", ["--era", "legacy"]),
      stateful: entry("stateful", [], { isolation: "session" }),
    };
    const config = { names: "plain", mcpServers } as const;
    [home, other] = await Promise.all([startOnEngine(nats, config), startOnEngine(nats, config)]);
    await until("each to know the other", () =>
      [home, other].every(({ gateway }) => gateway.state.engine?.partitions.gateways().length === 2),
    );
  });
  afterEach(async () => {
    await Promise.all([home, other].map((one) => one?.gateway.close({ drainMs: 0 })));
  });

  it("leaves the session, whose own processes start anew, and refuses what waited there, and answers, with -32602 [session-split]", async () => {
    const { token } = home.gateway;
    const session = await begin(home, token);
    const toolsAt = async (one: EngineGateway) =>
      (await post(one, token, { id: 1, method: "tools/list" }, session)).text;
    for (const one of [home, other]) {
      await until("the tools", async () => {
        const text = await toolsAt(one);
        return text.includes('"elicit"') && text.includes('"count"');
      });
    }
    const count = async () => {
      const call = { id: 2, method: "tools/call", params: { name: "count", arguments: {} } };
      const { text } = await post(other, token, call, session);
      const { result } = JSON.parse(text.replace(/^event.*\ndata: /m, "")) as {
        result: { content: { text: string }[] };
      };
      return JSON.parse(result.content[0]?.text ?? "") as { count: number; pid: number };
    };
    const [first, second] = [await count(), await count()];
    expect([first.count, second.count, second.pid]).toEqual([1, 2, first.pid]);

    const headers = { authorization: `Bearer ${token}` };
    const call = (one: EngineGateway, more: object) =>
      send(one.url, { method: "tools/call", params: { name: "elicit", arguments: { what: "q" }, ...more }, headers });
    const asked = await call(home, {});
    expect(asked.reply.result?.["resultType"]).toBe("input_required");
    const { requestState, inputRequests } = asked.reply.result as { requestState: string; inputRequests: object };
    const answer = { action: "accept", content: { answer: "a" } };
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, answer]));
    expect(other.log.join("\n")).not.toContain("is gone");

    const lost = home.gateway.state.engine?.self ?? "";
    await home.gateway.close({ drainMs: 0 });
    const next = await count();
    expect(next.count).toBe(1);
    expect(next.pid).not.toBe(first.pid);
    expect((await count()).pid).toBe(next.pid);
    const again = { code: -32602, message: expect.stringContaining("Repeat the call") };
    expect((await call(other, { requestState, inputResponses })).reply.error).toMatchObject(again);
    const answered = await post(other, token, { id: "asked-there", result: answer }, session);
    expect([answered.status, JSON.parse(answered.text)]).toEqual([
      400,
      expect.objectContaining({ error: expect.objectContaining(again) }),
    ]);
    // Once, however much of it came.
    expect(other.log.filter((line) => line.includes(`gateway ${lost} is gone`))).toHaveLength(1);
  });
});
