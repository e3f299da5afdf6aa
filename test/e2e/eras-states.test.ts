// requestState: what a modern agent holds while a legacy server's question waits for its answer. It is sealed, and good
// for the principal, the request and the gateway that it was made for. A modern server's own passes through untouched.

import { beforeAll, describe, expect, it } from "vitest";
import { connect, type ModernRequest, type Reply, send } from "./eras.js";
import { type Gateway, startGateway, startHttpFixture, stdioFixture, until } from "./harness.js";
import { createToken } from "./operator.js";

const TOKEN = "tw_e2e_default_token_of_enough_length_0123456789";

interface Question {
  readonly requestState: string;
  readonly inputRequests: Record<string, { method: string; params: { message: string } }>;
}

const call = (name: string, more: object = {}) => ({
  method: "tools/call",
  params: { name, arguments: { what: "well?" }, ...more },
});

function questionOf({ result }: Reply): Question {
  expect(result).toMatchObject({ resultType: "input_required", requestState: expect.any(String) as string });
  return result as unknown as Question;
}

/** The retry that answers it. */
function answered(name: string, { requestState, inputRequests }: Question, answer = "yes", more: object = {}) {
  const response = { action: "accept", content: { answer } };
  const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, response]));
  return call(name, { inputResponses, requestState, ...more });
}

describe.each(["http", "stdio"])("a parked question of a legacy server over %s", (kind) => {
  let gateway: Gateway;
  let other: string;
  const asMe = { headers: { authorization: `Bearer ${TOKEN}` } };

  beforeAll(async () => {
    const entry = kind === "http" ? (await startHttpFixture("asker")).entry : stdioFixture("asker");
    gateway = await startGateway({ mcpServers: { asker: entry } }, { auth: true, env: { TOOLWAY_TOKEN: TOKEN } });
    await (await connect("legacy", gateway, { token: TOKEN })).waitFor("elicit");
    other = await createToken(gateway, "bob", "admin");
  });

  it("is answered by a retry with a new id and the state as it was given", async () => {
    const first = await send(gateway.url, { ...call("elicit"), ...asMe });
    const question = questionOf(first.reply);
    expect(Object.values(question.inputRequests)[0]).toMatchObject({
      method: "elicitation/create",
      params: { message: "well?" },
    });
    const { reply } = await send(gateway.url, { ...answered("elicit", question), id: "retry", ...asMe });
    expect(reply.id).toBe("retry");
    expect(JSON.stringify(reply.result)).toContain("yes");
    expect(reply.result).toMatchObject({ resultType: "complete" });
  });

  it.each([
    ["appended to", (state: string) => `${state}-TAMPERED`],
    [
      "with a letter changed",
      (state: string) => `${state.slice(0, 9)}${state[9] === "A" ? "B" : "A"}${state.slice(10)}`,
    ],
    ["cut short", (state: string) => state.slice(0, -4)],
    ["of somebody's own making", () => "bm90IGEgc3RhdGU"],
  ])("a state %s is refused, and the call goes on waiting", async (_what, tamper) => {
    const question = questionOf((await send(gateway.url, { ...call("elicit"), ...asMe })).reply);
    const bad = { ...question, requestState: tamper(question.requestState) };
    const { reply } = await send(gateway.url, { ...answered("elicit", bad), ...asMe });
    expect(reply.error).toMatchObject({ code: -32602 });
    const good = await send(gateway.url, { ...answered("elicit", question), ...asMe });
    expect(JSON.stringify(good.reply.result)).toContain("yes");
  });

  it("another principal's state is refused", async () => {
    const question = questionOf((await send(gateway.url, { ...call("elicit"), ...asMe })).reply);
    const asOther = { headers: { authorization: `Bearer ${other}` } };
    const stolen = await send(gateway.url, { ...answered("elicit", question, "stolen"), ...asOther });
    expect(stolen.status).not.toBe(401);
    expect(stolen.reply.error).toMatchObject({ code: -32602 });
    const own = await send(gateway.url, { ...answered("elicit", question), ...asMe });
    expect(JSON.stringify(own.reply.result)).toContain("yes");
  });

  it("a state is good for the call that it was made for, not for another", async () => {
    const question = questionOf((await send(gateway.url, { ...call("elicit"), ...asMe })).reply);
    const elsewhere = await send(gateway.url, { ...answered("sample", question), ...asMe });
    expect(elsewhere.reply.error).toMatchObject({ code: -32602 });
    const changed = answered("elicit", question, "yes", { arguments: { what: "something else" } });
    expect((await send(gateway.url, { ...changed, ...asMe })).reply.error).toMatchObject({ code: -32602 });
  });

  it("a state is good once", async () => {
    const question = questionOf((await send(gateway.url, { ...call("elicit"), ...asMe })).reply);
    await send(gateway.url, { ...answered("elicit", question), ...asMe });
    const again = await send(gateway.url, { ...answered("elicit", question, "twice"), ...asMe });
    expect(again.reply.error).toMatchObject({ code: -32602 });
  });

  it("an answer that is missing is asked for again", async () => {
    const question = questionOf((await send(gateway.url, { ...call("elicit"), ...asMe })).reply);
    const empty = call("elicit", {
      inputResponses: { nobody: { action: "accept" } },
      requestState: question.requestState,
    });
    const again = questionOf((await send(gateway.url, { ...empty, ...asMe })).reply);
    const { reply } = await send(gateway.url, { ...answered("elicit", again), ...asMe });
    expect(JSON.stringify(reply.result)).toContain("yes");
  });

  it("a declined question is the server's to hear of", async () => {
    const question = questionOf((await send(gateway.url, { ...call("elicit"), ...asMe })).reply);
    const key = Object.keys(question.inputRequests)[0] ?? "";
    const { requestState } = question;
    const no = call("elicit", { inputResponses: { [key]: { action: "decline" } }, requestState });
    const { reply } = await send(gateway.url, { ...no, ...asMe });
    expect(JSON.stringify(reply.result)).toContain("decline");
  });

  it("after a restart of the gateway the state is refused, with advice", async () => {
    const question = questionOf((await send(gateway.url, { ...call("elicit"), ...asMe })).reply);
    await gateway.stop();
    gateway = await gateway.again();
    const { reply } = await send(gateway.url, { ...answered("elicit", question), ...asMe });
    expect(reply.error).toMatchObject({ code: -32602 });
    expect(reply.error?.message).toMatch(/repeat/i);
  });
});

it.each(["legacy", "modern"])(
  "a state of a %s server's question is worth nothing to one whose role lost the tool",
  async (era) => {
    const mcpServers = { asker: stdioFixture("asker", ["--era", era], { isolation: "session" }) };
    const roles = { dev: {}, other: {} };
    const gateway = await startGateway({ mcpServers, roles }, { auth: true, env: { TOOLWAY_TOKEN: TOKEN } });
    const as = async (id: string, role: string) => {
      const headers = { authorization: `Bearer ${await createToken(gateway, id, role)}` };
      return (request: object) => send(gateway.url, { ...(request as ModernRequest), headers });
    };
    const [ann, bob] = [await as("ann", "dev"), await as("bob", "other")];
    await (await connect("legacy", gateway, { token: TOKEN })).waitFor("ask_in_turn");
    const question = questionOf((await ann(call("ask_in_turn"))).reply);
    const bobs = questionOf((await bob(call("ask_in_turn"))).reply);
    const before = gateway.log().length;
    await gateway.writeConfig({ mcpServers, roles: { ...roles, dev: { deny: ["asker/ask_in_turn"] } } });
    await until("the new roles", () => gateway.log().slice(before).includes("config"));
    await until("the new menu", async () => {
      const { reply } = await ann({ method: "tools/list" });
      return !JSON.stringify(reply.result).includes('"ask_in_turn"');
    });
    expect((await ann(answered("ask_in_turn", question))).reply.error).toMatchObject({ code: -31007 });
    // Who may still use it is not concerned.
    questionOf((await bob(answered("ask_in_turn", bobs))).reply);
  },
);

describe.each(["http", "stdio"])("a modern server over %s", (kind) => {
  let gateway: Gateway;

  let other: string;
  const asMe = { headers: { authorization: `Bearer ${TOKEN}` } };

  beforeAll(async () => {
    const args = ["--era", "modern"];
    const entry = kind === "http" ? (await startHttpFixture("asker", args)).entry : stdioFixture("asker", args);
    gateway = await startGateway({ mcpServers: { asker: entry } }, { auth: true, env: { TOOLWAY_TOKEN: TOKEN } });
    await (await connect("legacy", gateway, { token: TOKEN })).waitFor("ask_in_turn");
    other = await createToken(gateway, "bob", "admin");
  });

  const ask = (request: object, who = asMe) => send(gateway.url, { ...(request as ModernRequest), ...who });

  it("has its own state back byte for byte, and refuses one that is not its own itself", async () => {
    const first = questionOf((await ask(call("ask_in_turn"))).reply);
    expect(Object.keys(first.inputRequests)).toEqual(["q0"]);
    const second = questionOf((await ask(answered("ask_in_turn", first))).reply);
    expect(Object.keys(second.inputRequests)).toEqual(["q1"]);
    const changed = { ...second, requestState: `${second.requestState}x` };
    expect((await ask(answered("ask_in_turn", changed))).reply.error).toMatchObject({ code: -32602 });
    const foreign = { ...second, requestState: "bm90IGEgc3RhdGU" };
    const { reply } = await ask(answered("ask_in_turn", foreign));
    expect(reply.error).toMatchObject({ code: -32602, data: { reason: "invalid_request_state" } });
    // It is good after a restart of the gateway, which keeps nothing of it.
    await gateway.stop();
    gateway = await gateway.again();
    await (await connect("legacy", gateway, { token: TOKEN })).waitFor("ask_in_turn");
    expect(Object.keys(questionOf((await ask(answered("ask_in_turn", second))).reply).inputRequests)).toEqual(["q2"]);
  });

  it("has it back from the principal alone whose call it was given for", async () => {
    const question = questionOf((await ask(call("ask_in_turn"))).reply);
    const asOther = { headers: { authorization: `Bearer ${other}` } };
    const stolen = await ask(answered("ask_in_turn", question, "stolen"), asOther);
    expect(stolen.reply.error).toMatchObject({ code: -32602, message: expect.stringContaining("somebody else") });
    questionOf((await ask(answered("ask_in_turn", question))).reply);
  });
});
