// A server that goes away and comes back as a process, and what the real SDK clients of both eras see of the writes that
// they made meanwhile. What was done is counted in the server's own file.

import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { CallsAnswer } from "../../src/contracts/control/calls.js";
import { findGateway } from "../../src/control/client.js";
import { effectsIn } from "../fixtures/ledger.js";
import { type Agent, connect, ERAS, type Era, send, type ToolResult } from "./eras.js";
import { type Gateway, startGateway, startHttpFixture, temporaryDirectory, until } from "./harness.js";
import { createToken, statusOfAll, toolway } from "./operator.js";

const EXTENSION = "io.modelcontextprotocol/tasks";
const withTasks = { capabilities: { extensions: { [EXTENSION]: {} } } };

let gateway: Gateway;
let ledger: string;
let port: number;
let isUp = false;
let kill: () => Promise<void>;
const tokens: Record<string, string> = {};

async function serverBack(): Promise<void> {
  if (isUp) return;
  ({ port, kill } = await startHttpFixture("tracker", ["--ledger", ledger], port));
  isUp = true;
}

async function serverAway(): Promise<void> {
  isUp = false;
  await kill();
}

beforeAll(async () => {
  ledger = join(await temporaryDirectory(), "ledger.jsonl");
  const fixture = await startHttpFixture("tracker", ["--ledger", ledger]);
  ({ port, kill } = fixture);
  isUp = true;
  const keyed = { outbox: { key: "arguments.request_id", lane: "arguments.project" } };
  const tools = { create_issue: keyed, add_comment: { outbox: true }, close_issue: keyed };
  // It is killed more often here than a server may be that is not left alone for a while.
  const tracker = { ...fixture.entry, tools, restarts: { max: 1_000 }, breaker: { failures: 1_000 } };
  const roles = { dev: {}, reader: { deny: ["tracker/create_issue"] } };
  gateway = await startGateway({ mcpServers: { tracker }, roles, drainMs: 2_000 }, { auth: true });
  for (const id of ["ann", "bob", "cyd"]) tokens[id] = await createToken(gateway, id, "dev");
});

beforeEach(() => serverBack());

/** With the tools listed: only then do the SDKs check results by their schemas. */
async function agentOf(era: Era, who = "ann"): Promise<Agent> {
  const agent = await connect(era, gateway, { name: `${who}-${era}`, token: tokens[who] ?? "" });
  await agent.waitFor("create_issue", "toolway__receipt");
  return agent;
}

interface Asked {
  readonly receipt: string;
  readonly state: string;
  readonly result?: ToolResult;
}

const structured = (result: ToolResult) => result["structuredContent"] as Asked & Record<string, unknown>;

/** The end of a write, as its agent is told it. */
async function ended(agent: Agent, id: string): Promise<Asked> {
  return until("the end of the write", async () => {
    const asked = structured(await agent.call("toolway__receipt", { id, wait: 45 }));
    return ["queued", "sending"].includes(asked.state) ? undefined : asked;
  });
}

const titlesOf = (project: string) =>
  effectsIn(ledger)
    .filter((effect) => effect.project === project)
    .map(({ title }) => title);

describe.each(ERAS)("an agent of the %s era that writes", (era) => {
  it("gets the server's own result while it is there, in the schema that the tool is listed with", async () => {
    const agent = await agentOf(era);
    const project = `up-${era}`;
    const result = await agent.call("create_issue", { project, title: "now" });
    expect(structured(result)).toEqual({ issue: expect.any(Number) as number, title: "now" });
    expect(titlesOf(project)).toEqual(["now"]);
  });

  it("gets receipts while it is away, each delivered once and in order when it is back, with its result, and for no other principal [ack-is-durable] [lane-order] [no-double-effect]", async () => {
    const agent = await agentOf(era);
    const other = await agentOf(era, "bob");
    const project = `away-${era}`;
    await serverAway();
    const ids: string[] = [];
    for (const [position, title] of ["a", "b", "c"].entries()) {
      // A result that does not fit the schema would be thrown away by the SDK.
      const result = await agent.call("create_issue", { project, title, request_id: `${era}-${title}` });
      expect(structured(result)).toMatchObject({ queued: true, state: "queued", tool: "create_issue", position });
      expect(structured(result)["idempotencyKey"]).toBe(`${era}-${title}`);
      const { receipt } = structured(result);
      expect(result.content[0]?.text).toContain(receipt);
      ids.push(receipt);
    }
    const [first = "", , last = ""] = ids;
    const control = await findGateway(gateway.stateDir);
    const kept = await control?.get<CallsAnswer>("/calls?tool=create_issue&limit=3");
    expect(kept?.calls.map(({ receipt }) => receipt)).toEqual(ids);
    const uri = `toolway://receipts/${last}`;

    // The same key is the same write; with other arguments it is refused.
    const same = await agent.call("create_issue", { project, title: "c", request_id: `${era}-c` });
    expect(structured(same).receipt).toBe(last);
    await expect(agent.call("create_issue", { project, title: "d", request_id: `${era}-c` })).rejects.toThrow(
      /key was used for another call/,
    );

    const read = async (who: Agent) => (await who.client.readResource({ uri })).contents[0] as { text: string };
    expect(JSON.parse((await read(agent)).text)).toMatchObject({ receipt: last, state: "queued" });
    const listening = await agent.listen({ uris: [uri] });

    expect(await other.call("toolway__receipt", { id: last })).toMatchObject({ isError: true });
    await expect(read(other)).rejects.toThrow(/not found/i);
    const others = structured(await other.call("toolway__receipt"))["receipts"] as Asked[];
    expect(others.map(({ receipt }) => receipt)).not.toContain(last);

    await serverBack();
    const { state, result } = await ended(agent, last);
    expect(state).toBe("done");
    expect(structured(result as ToolResult)).toMatchObject({ title: "c" });
    expect(titlesOf(project)).toEqual(["a", "b", "c"]);
    await until("the update of the resource", () =>
      agent.notified.some(
        ({ method, params }) => method === "notifications/resources/updated" && params["uri"] === uri,
      ),
    );
    expect(JSON.parse((await read(agent)).text)).toMatchObject({ state: "done", result: { structuredContent: {} } });
    await listening.close();

    // Of what it has not asked for it is told with the next result; the same key now has the result.
    const next = await agent.call("create_issue", { project, title: "next" });
    expect(structured(next)).toMatchObject({ title: "next" });
    expect(next.content.at(-1)?.text).toContain(`Receipt ${first} (create_issue) is done.`);
    const again = await agent.call("create_issue", { project, title: "a", request_id: `${era}-a` });
    expect(structured(again)).toMatchObject({ title: "a" });
    expect(titlesOf(project)).toEqual(["a", "b", "c", "next"]);
  });

  it("is told that the outcome is unknown where the server knows no keys and dies after the effect, and the write is never sent again [unknown-is-said] [no-double-effect]", async () => {
    const agent = await agentOf(era);
    const project = `unknown-${era}`;
    const lost = agent.call("add_comment", { project, title: "lost", hang: true }).then(
      (result) => JSON.stringify(result),
      (error: Error) => error.message,
    );
    await until("its effect", () => titlesOf(project).length === 1);
    await serverAway();
    expect(await lost).toMatch(/unknown/);
    await serverBack();
    // In the same lane, behind it.
    const after = await agent.call("add_comment", { project, title: "after" });
    const { receipt } = structured(after) ?? {};
    if (receipt !== undefined) await ended(agent, receipt);
    expect(titlesOf(project)).toEqual(["lost", "after"]);
    const mine = structured(await agent.call("toolway__receipt"))["receipts"] as (Asked & { tool: string })[];
    const comments = mine.filter(({ tool }) => tool === "add_comment").map(({ state }) => state);
    expect(comments.filter((state) => state === "unknown")).toHaveLength(ERAS.indexOf(era) + 1);
  });
});

describe("an agent that declares the tasks extension", () => {
  const bearing = (who: string) => ({ authorization: `Bearer ${tokens[who]}` });

  async function about(method: string, taskId: string, who = "ann") {
    const headers = { "mcp-name": taskId, ...bearing(who) };
    return (await send(gateway.url, { method, params: { taskId }, headers, ...withTasks })).reply;
  }

  async function begun(args: object): Promise<string> {
    const params = { name: "create_issue", arguments: args };
    const { reply } = await send(gateway.url, { method: "tools/call", params, headers: bearing("ann"), ...withTasks });
    expect(reply.result).toMatchObject({ resultType: "task", status: "working", taskId: expect.any(String) as string });
    return reply.result?.["taskId"] as string;
  }

  it("gets a task in place of a receipt, ended with the result, or taken back and never sent [no-double-effect] [tasks-apart]", async () => {
    await serverAway();
    const kept = await begun({ project: "task", title: "kept" });
    const dropped = await begun({ project: "task", title: "dropped" });
    expect((await about("tasks/get", kept, "bob")).error).toMatchObject({ code: -32602 });
    expect((await about("tasks/cancel", dropped)).error).toBeUndefined();
    expect((await about("tasks/get", dropped)).result).toMatchObject({ status: "cancelled" });
    expect((await about("tasks/get", kept)).result).toMatchObject({ status: "working" });
    await serverBack();
    const { result } = await until("the end of the task", async () => {
      const asked = (await about("tasks/get", kept)).result;
      return asked?.["status"] === "working" ? undefined : asked;
    });
    expect(result).toMatchObject({ structuredContent: { title: "kept" } });
    expect(titlesOf("task")).toEqual(["kept"]);
  });
});

describe("the operator", () => {
  it("reads in the log once that a write is queued and once that it was delivered, never its arguments", async () => {
    const agent = await agentOf("legacy");
    await serverAway();
    const secret = "words-of-the-agent";
    const { receipt } = structured(await agent.call("create_issue", { project: "log", title: secret }));
    await serverBack();
    await ended(agent, receipt);
    const lines = () =>
      gateway
        .log()
        .split("\n")
        .filter((line) => line.includes(receipt));
    await until("the line of its delivery", () => lines().some((line) => line.includes("was delivered")));
    expect(lines().filter((line) => line.includes("is queued"))).toHaveLength(1);
    expect(lines()).toHaveLength(2);
    expect(gateway.log()).not.toContain(secret);
  });

  it("gives a principal another role, and what it wrote before is judged by that: it has failed, and can be retried", async () => {
    const agent = await agentOf("legacy", "cyd");
    await serverAway();
    await toolway(gateway, "outbox", "hold", "tracker");
    const { receipt } = structured(await agent.call("create_issue", { project: "role", title: "lost" }));
    await toolway(gateway, "token", "revoke", "cyd");
    await createToken(gateway, "cyd", "reader");
    await serverBack();
    await toolway(gateway, "outbox", "release", "tracker");
    const shown = () => toolway(gateway, "outbox", "show", receipt, "--json");
    const one = await until("its end", async () => {
      const said = JSON.parse((await shown()).out) as { state: string; why?: string };
      return said.state !== "queued" && said.state !== "sending" && said;
    });
    expect(one).toMatchObject({ state: "failed", why: expect.stringContaining("create_issue") as string });
    expect(titlesOf("role")).toEqual([]);
    expect((await toolway(gateway, "outbox", "retry", receipt)).code).toBe(0);
  });

  it("is told by status and doctor of a key that the tool's schema forbids", async () => {
    await agentOf("legacy");
    const note = /"close_issue" of server "tracker" gets the key .* which its schema forbids/;
    expect((await toolway(gateway, "status")).out).toMatch(note);
    expect((await toolway(gateway, "doctor")).out).toMatch(note);
  });
});

describe("SIGTERM", () => {
  it("ends deliveries first: who waits in a lane gets its receipt, nothing more is sent, and `status` says what is left until the end [drain] [ack-is-durable] [agent-13]", async () => {
    const agent = await agentOf("legacy");
    const project = "drained";
    // What hangs is on its way; the next in its lane wait for it.
    const hung = agent.call("create_issue", { project, title: "hangs", hang: true }).catch(() => undefined);
    await until("its effect", () => titlesOf(project).length === 1);
    const waiting = ["a", "b"].map((title) => agent.call("create_issue", { project, title }));
    await until("both to wait", async () => (await statusOfAll(gateway)).outbox?.waiting === 3);
    gateway.signal("SIGTERM");
    for (const result of await Promise.all(waiting)) expect(structured(result)).toMatchObject({ state: "queued" });
    // Agents have their receipts, and control still answers.
    expect((await statusOfAll(gateway)).outbox?.waiting).toBe(3);
    await gateway.exited;
    await hung;
    expect(titlesOf(project)).toEqual(["hangs"]);
    await serverAway();
    await serverBack();
    gateway = await gateway.again();
    await until("the rest", () => titlesOf(project).length === 3);
    expect(titlesOf(project)).toEqual(["hangs", "a", "b"]);
  });
});
