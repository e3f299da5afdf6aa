// Questions of servers that agents never answer: how long their calls wait, what the server is told, and that other calls
// have their own time.

import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it } from "vitest";
import { type ClientV1, connectStdioV1, connectV1, waitForTools } from "./clients.js";
import { send } from "./eras.js";
import { fixtureOver, type Gateway, startGateway, until } from "./harness.js";
import { hasTool, statusOf } from "./operator.js";

const CALL_MS = 700;
/** Far longer than a call, so that on a slow machine too one can tell which of the two ended it. */
const QUESTION_MS = 6_000;
const HANGING = { what: "never asked", delayMs: 120_000 };

interface Outcome {
  readonly what: string;
  readonly text: string;
}

/** Calls, and says in which order the answers came. */
async function outcomeOf(client: ClientV1, what: string, args: Record<string, unknown>, order: string[]) {
  const params = { name: "elicit", arguments: args };
  const text = await client.callTool(params, undefined, { timeout: 60_000 }).then(JSON.stringify, String);
  order.push(what);
  return { what, text } satisfies Outcome;
}

describe.concurrent.each(["stdio", "http"] as const)("a question of a server over %s that nobody answers", (kind) => {
  /** Each test has its own: while a server may be at a call that was given up, it can ask nobody else over a pipe. */
  async function start(limits: object = {}): Promise<Gateway> {
    const entry = { ...(await fixtureOver(kind, "asker")), callTimeoutMs: CALL_MS };
    return await startGateway({ mcpServers: { asker: entry }, limits });
  }

  it.each(["HTTP", "stdio"] as const)(
    "by a legacy agent over %s ends in its own time, and no other call waits for it [bounded]",
    async (agent) => {
      const gateway = await start({ questionMs: QUESTION_MS });
      const options = { capabilities: { elicitation: {} } };
      const client = agent === "HTTP" ? await connectV1(gateway.url, options) : await connectStdioV1(gateway, options);
      let asked = 0;
      client.setRequestHandler(ElicitRequestSchema, () => {
        asked++;
        return new Promise(() => {});
      });
      await waitForTools(client, "elicit");
      const order: string[] = [];
      const asking = outcomeOf(client, "asking", { what: "Are you there?" }, order);
      await until("the question", () => asked === 1);
      const beside = outcomeOf(client, "beside", HANGING, order);
      expect((await beside).text).toContain(`within ${CALL_MS} ms`);
      // The server got an error for its question, and answered the call by it.
      expect((await asking).text).toContain(`did not answer elicitation/create within ${QUESTION_MS / 1000} s`);
      expect(order).toEqual(["beside", "asking"]);
      await until("nothing in flight", async () => (await statusOf(gateway, "asker")).inFlight === 0);
    },
  );

  it("by a modern agent ends in its own time, and no other call waits for it [bounded]", async () => {
    const gateway = await start({ questionMs: QUESTION_MS });
    const elicit = (args: object) =>
      send(gateway.url, { method: "tools/call", params: { name: "elicit", arguments: args } });
    await until("the tool", () => hasTool(gateway.url, "elicit"));
    const { reply } = await elicit({ what: "Are you there?" });
    expect(reply.result).toMatchObject({ resultType: "input_required" });
    expect((await elicit(HANGING)).reply.error?.message).toContain(`within ${CALL_MS} ms`);
    // The server is asked for a sign of life after a timeout; then the question alone is left.
    await until("the question alone", async () => (await statusOf(gateway, "asker")).inFlight === 1);
    await until("nothing in flight", async () => (await statusOf(gateway, "asker")).inFlight === 0);
  });

  it("because its agent went away with its pipe is given up at once", async () => {
    const gateway = await start();
    const client = await connectStdioV1(gateway, { capabilities: { elicitation: {} } });
    const asked = new Promise<void>((resolve) => {
      client.setRequestHandler(ElicitRequestSchema, () => {
        resolve();
        return new Promise(() => {});
      });
    });
    await waitForTools(client, "elicit");
    const call = client.callTool({ name: "elicit", arguments: { what: "Are you there?" } }).catch(() => {});
    await asked;
    await client.close();
    await call;
    await until("nothing in flight", async () => (await statusOf(gateway, "asker")).inFlight === 0);
  });
});
