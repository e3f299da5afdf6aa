// A legacy server's questions to a modern agent, over real sockets: input_required, the retry, and what may go wrong.

import { afterEach, describe, expect, it } from "vitest";
import {
  type Answer,
  call,
  capabilities,
  modern,
  type Rig,
  send,
  start,
  startRig,
  stopRigs,
  stream,
  until,
} from "../../../test/fixtures/endpoint/http.js";
import { Fault } from "../../protocol/errors.js";

afterEach(stopRigs);

const elicit = { method: "elicitation/create", params: { message: "Who?", requestedSchema: { type: "object" } } };
const sample = { method: "sampling/createMessage", params: { messages: [], maxTokens: 5 } };
const roots = { method: "roots/list", params: {} };
const ALL = capabilities({ elicitation: {}, sampling: {}, roots: {} });
const ACCEPT = { action: "accept", content: { name: "Ann" } };
const SAMPLED = { role: "assistant", content: { type: "text", text: "hi" }, model: "m" };
const ANSWERS: { [method: string]: object } = {
  "elicitation/create": ACCEPT,
  "sampling/createMessage": SAMPLED,
  "roots/list": { roots: [] },
};

const ask = (rounds: object[][], params: object = {}, meta: object = ALL, headers = {}) =>
  call(1, "rounds", { rounds }, { params, meta, headers });

/** Keys and methods of what is asked. */
function asked(answer: Answer): [key: string, method: string][] {
  expect(answer.json.result?.resultType, answer.text).toBe("input_required");
  const requests = answer.json.result.inputRequests as { [key: string]: { method: string } };
  return Object.entries(requests).map(([key, { method }]) => [key, method]);
}

/** The params of a retry that answers everything. */
function answered(answer: Answer): { requestState: string; inputResponses: object } {
  const inputResponses = Object.fromEntries(asked(answer).map(([key, method]) => [key, ANSWERS[method]]));
  return { requestState: answer.json.result.requestState, inputResponses };
}

const told = (answer: Answer) => JSON.parse(answer.json.result.content[0].text);

describe("questions", () => {
  it("that are asked together go out together, and the retry is the same call", async () => {
    const { url, service } = await startRig();
    const rounds = [[elicit, sample, roots]];
    const first = await send(url, ask(rounds));
    expect(asked(first).map(([, method]) => method)).toEqual([elicit.method, sample.method, roots.method]);
    expect(Object.values(first.json.result.inputRequests)[0]).toEqual(elicit);
    const last = await send(url, ask(rounds, answered(first)));
    expect(told(last)).toEqual([ACCEPT, SAMPLED, { roots: [] }]);
    expect(last.json.result.resultType).toBe("complete");
    expect(service.answers).toHaveLength(3);
  });

  it("come in several rounds, each under a state of its own", async () => {
    const { url } = await startRig();
    const rounds = [[elicit], [sample], [elicit]];
    let answer = await send(url, ask(rounds));
    const states = new Set<string>();
    for (let round = 0; round < 3; round++) {
      states.add(answer.json.result.requestState);
      answer = await send(url, ask(rounds, answered(answer)));
    }
    expect(told(answer)).toEqual([ACCEPT, SAMPLED, ACCEPT]);
    expect(states.size).toBe(3);
  });

  it("that were not answered are asked again; answers to nothing are ignored", async () => {
    const { url } = await startRig();
    const rounds = [[elicit, roots]];
    const first = await send(url, ask(rounds));
    const [[key], [rootsKey]] = asked(first) as [[string, string], [string, string]];
    const { requestState } = first.json.result;
    const second = await send(url, ask(rounds, { requestState, inputResponses: { [key]: ACCEPT, other: 5 } }));
    expect(asked(second).map(([one]) => one)).toEqual([rootsKey]);
    const third = await send(url, ask(rounds, { requestState: second.json.result.requestState }));
    expect(asked(third).map(([one]) => one)).toEqual([rootsKey]);
    const last = await send(url, ask(rounds, answered(third)));
    expect(told(last)).toEqual([ACCEPT, { roots: [] }]);
  });

  it("are answered in a form that can be used, or refused and kept", async () => {
    const { url } = await startRig();
    const rounds = [[elicit]];
    const first = await send(url, ask(rounds));
    const { requestState } = first.json.result;
    const [[key]] = asked(first) as [[string, string]];
    for (const inputResponses of [null, [], 5, { [key]: 12345 }, { [key]: { action: "maybe" } }]) {
      const bad = await send(url, ask(rounds, { requestState, inputResponses }));
      expect(bad.json.error.code).toBe(-32602);
    }
    expect(told(await send(url, ask(rounds, answered(first))))).toEqual([ACCEPT]);
  });

  it.each([
    ["sampling", [[sample]], capabilities({}), { sampling: {} }],
    ["elicitation", [[elicit]], capabilities({ sampling: {} }), { elicitation: {} }],
  ])("for which the capability is missing fail the call: %s", async (_name, rounds, meta, requiredCapabilities) => {
    const { url } = await startRig();
    const answer = await send(url, ask(rounds, {}, meta));
    expect(answer.status).toBe(400);
    expect(answer.json.error).toMatchObject({ code: -32021, data: { requiredCapabilities } });
  });

  it("are put only where the protocol has a place for them", async () => {
    const { url } = await startRig();
    const answer = await send(url, modern(1, "test/sampling", {}, { meta: ALL }));
    expect(answer.json.error.code).toBe(-31010);
    const other = await send(url, ask([[{ method: "own/question", params: {} }]]));
    expect(other.json.result.isError).toBe(true);
  });

  it("that the server takes back are forgotten", async () => {
    const { url, service } = await startRig();
    const first = await send(url, ask([[elicit]]));
    service.aborts[0]?.abort();
    const last = await send(url, ask([[elicit]], answered(first)));
    expect(last.json.result).toMatchObject({ isError: true, resultType: "complete" });
  });
});

describe("a retry", () => {
  it("follows progress under its own token, or without one hears of none", async () => {
    const { url } = await startRig();
    const rounds = [[elicit], [elicit]];
    const first = await send(url, ask(rounds, {}, { ...ALL, progressToken: "one" }));
    const second = await send(url, ask(rounds, answered(first), ALL));
    expect(second.headers["content-type"]).toBe("application/json");
    const last = await stream(url, ask(rounds, answered(second), { ...ALL, progressToken: "two" }));
    await until(() => last.ended);
    expect(last.messages.map((message) => message.params)).toEqual([{ progressToken: "two", progress: 2 }, undefined]);
  });

  it("that is left cancels the call", async () => {
    const { url, service } = await startRig({ limits: { gatherMs: 1_000 } });
    const first = await send(url, ask([[elicit]]));
    const { requestState } = first.json.result;
    const retry = start(url, ask([[elicit]], { requestState }));
    retry.on("error", () => {});
    retry.on("finish", () => setTimeout(() => retry.destroy(), 50));
    await until(() => service.cancelled.length === 1);
    expect((await send(url, ask([[elicit]], answered(first)))).json.error.code).toBe(-32602);
  });

  it("that never comes costs a bounded wait [bounded]", async () => {
    const { url, service, endpoint } = await startRig({ limits: { parkedMs: 150, quietMs: 30 } });
    const first = await send(url, ask([[elicit]]));
    await until(() => service.cancelled.length === 1);
    const late = await send(url, ask([[elicit]], answered(first)));
    expect(late.json.error).toMatchObject({ code: -32602 });
    expect(late.json.error.message).toContain("Repeat the call");
    expect(endpoint.stats().inFlight).toBe(0);
  });

  it("of another principal, another request, a changed or a used state is refused", async () => {
    const { url } = await startRig();
    const rounds = [[elicit]];
    const first = await send(url, ask(rounds));
    const good = answered(first);
    const { requestState } = good;
    const refused: Promise<Answer>[] = [
      send(url, ask(rounds, { ...good, requestState: `${requestState}-TAMPERED` })),
      send(url, ask(rounds, good, ALL, { authorization: "Bearer token-b" })),
      send(url, ask([[elicit], []], good)),
      send(url, call(1, "echo", { rounds }, { params: good, meta: ALL })),
      send(`${url}/one`, ask(rounds, good)),
    ];
    for (const answer of await Promise.all(refused)) expect(answer.json.error?.code, answer.text).toBe(-32602);
    expect(told(await send(url, ask(rounds, good)))).toEqual([ACCEPT]);
    expect((await send(url, ask(rounds, good))).json.error.code).toBe(-32602);
  });

  it("is held to the headers that the tool's schema wants, as the call was", async () => {
    const { url } = await startRig();
    const regional = (params: object, region: string) => {
      const headers = { "mcp-param-region": region };
      return call(1, "rounds", { rounds: [[elicit]], region: "eu" }, { params, meta: ALL, headers });
    };
    const first = await send(url, regional({}, "eu"));
    const wrong = await send(url, regional(answered(first), "us"));
    expect([wrong.status, wrong.json.error?.code]).toEqual([400, -32020]);
    expect(told(await send(url, regional(answered(first), "eu")))).toEqual([ACCEPT]);
  });

  it("with a state that is not ours is a new call, and carries it on", async () => {
    const { url } = await startRig();
    const answer = await send(url, call(1, "echo", { a: 1 }, { params: { requestState: "a server's own" } }));
    expect(told(answer)).toEqual({ a: 1 });
  });

  it("to a gateway that has been restarted is told to repeat the call", async () => {
    const one = await startRig();
    const first = await send(one.url, ask([[elicit]]));
    const two = await startRig({ sealer: one.sealer });
    const late = await send(two.url, ask([[elicit]], answered(first)));
    expect(late.json.error).toMatchObject({ code: -32602 });
    expect(late.json.error.message).toContain("Repeat the call");
  });

  it("finds the reply that came while it was away, however it came", async () => {
    const { url, service } = await startRig();
    const first = await send(url, call(1, "sampling", {}, { meta: ALL }));
    service.aborts[0]?.abort();
    const last = await send(url, call(2, "sampling", {}, { meta: ALL, params: answered(first) }));
    expect(last.json).toMatchObject({ id: 2, error: { code: -31008 } });
  });

  it("that two agents send is taken once", async () => {
    const { url } = await startRig();
    const rounds = [[elicit]];
    const first = await send(url, ask(rounds));
    const both = await Promise.all([1, 2].map(() => send(url, ask(rounds, answered(first)))));
    expect(both.map(({ json }) => json.error?.code ?? "ok").sort()).toEqual([-32602, "ok"]);
  });
});

describe("what is parked", () => {
  async function park(rig: Rig, token: string, n: number): Promise<Answer> {
    return send(rig.url, ask([[elicit], Array(n).fill(elicit)], {}, ALL, { authorization: `Bearer ${token}` }));
  }

  it("is bounded, for one principal and for all [bounded]", async () => {
    const rig = await startRig({ limits: { parkedPerPrincipal: 2, parked: 3 } });
    asked(await park(rig, "token-a", 1));
    asked(await park(rig, "token-a", 2));
    const third = await park(rig, "token-a", 3);
    expect(third.json.result.isError).toBe(true);
    asked(await park(rig, "token-b", 1));
    expect((await park(rig, "token-b", 2)).json.result.isError).toBe(true);
  });

  it("says so where there is no room, and has room again when a call was answered or has expired [bounded]", async () => {
    const rig = await startRig({ limits: { parkedPerPrincipal: 2, parkedMs: 2_000 } });
    const first = await park(rig, "token-a", 1);
    await park(rig, "token-a", 2);
    const full = await park(rig, "token-a", 3);
    // The server was told, and its answer says it: nothing hangs, and the questions before it are good still.
    expect(full.json.result.isError).toBe(true);
    expect(full.text).toContain("Too many calls already wait for answers of agents. Try again later.");
    const [[key]] = asked(first) as [[string, string]];
    const { requestState } = first.json.result;
    const params = { requestState, inputResponses: { [key]: ACCEPT } };
    const headers = { authorization: "Bearer token-a" };
    asked(await send(rig.url, ask([[elicit], [elicit]], params, ALL, headers)));
    expect((await park(rig, "token-a", 4)).json.result.isError).toBe(true);
    await until(() => rig.service.cancelled.length === 2);
    asked(await park(rig, "token-a", 5));
  });

  it("is refused with its call where that would be refused by now, and ends at the server", async () => {
    const rig = await startRig();
    const first = await park(rig, "token-a", 1);
    const [[key]] = asked(first) as [[string, string]];
    const { requestState } = first.json.result;
    const params = { requestState, inputResponses: { [key]: ACCEPT } };
    const retry = () => send(rig.url, ask([[elicit], [elicit]], params, ALL, { authorization: "Bearer token-a" }));
    rig.service.refused = new Fault("denied", "You may not use it any more.");
    expect((await retry()).json.error).toMatchObject({ code: -31007, message: "You may not use it any more." });
    expect(rig.service.cancelled).toEqual(["You may not use it any more."]);
    expect(rig.service.answers).toEqual([]);
    rig.service.refused = undefined;
    expect((await retry()).json.error).toMatchObject({
      code: -32602,
      message: expect.stringContaining("Repeat the call"),
    });
  });

  it("ends with the gateway, which does not wait for it", async () => {
    const rig = await startRig();
    asked(await park(rig, "token-a", 1));
    const started = performance.now();
    await rig.endpoint.close({ drainMs: 20_000 });
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(rig.service.cancelled).toHaveLength(1);
  });
});

describe("a page that the user has to open", () => {
  const url = { ...capabilities({ elicitation: { url: {} } }) };

  it("is shown by input_required, and then the call is made again", async () => {
    const rig = await startRig();
    const first = await send(rig.url, call(1, "page", {}, { meta: url }));
    const [[key]] = asked(first) as [[string, string]];
    expect(first.json.result.inputRequests[key]).toEqual({
      method: "elicitation/create",
      params: { mode: "url", url: "https://example.com/in", message: "Sign in" },
    });
    const { requestState } = first.json.result;
    const declined = { requestState, inputResponses: { [key]: { action: "decline" } } };
    expect((await send(rig.url, call(2, "page", {}, { meta: url, params: declined }))).json.error.code).toBe(-31008);
    rig.service.pageOpened = true;
    const params = { requestState, inputResponses: { [key]: { action: "accept" } } };
    const last = await send(rig.url, call(3, "page", {}, { meta: url, params }));
    expect(last.json.result.content[0].text).toBe("in");
  });

  it("is an error to a client that cannot show it", async () => {
    const rig = await startRig();
    const answer = await send(rig.url, call(1, "page"));
    expect([answer.status, answer.json.error.code]).toEqual([400, -32021]);
  });
});
