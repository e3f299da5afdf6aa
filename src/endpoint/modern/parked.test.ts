import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { Fault } from "../../protocol/errors.js";
import { parseMessage, type RequestMessage } from "../../protocol/message.js";
import { createSealer } from "../../runtime/seal.js";
import { type Parkable, ParkingTable } from "./parked.js";
import { CallQuestions, lackingFor } from "./questions.js";
import { RequestStates, requestDigest } from "./request-state.js";

const request = (method: string, params?: object): RequestMessage =>
  parseMessage(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })) as RequestMessage;

const parkable = (principalId: string, digest = "d"): Parkable => ({ principalId, digest, expire: () => {} });

describe("the table of parked calls", () => {
  const bounds = { parked: 3, parkedPerPrincipal: 2, parkedMs: 100 };

  it("is bounded, per principal and in all, and has room again when a call leaves [bounded]", () => {
    const table = new ParkingTable(bounds);
    const first = table.enter(parkable("a"));
    expect(first).toMatch(/^[\w-]{22}$/);
    expect(table.enter(parkable("a"))).toBeDefined();
    expect(table.enter(parkable("a"))).toBeUndefined();
    expect(table.enter(parkable("b"))).toBeDefined();
    expect(table.enter(parkable("c"))).toBeUndefined();
    table.leave(first ?? "");
    table.leave(first ?? "");
    expect(table.size).toBe(2);
    expect(table.enter(parkable("a"))).toBeDefined();
  });

  it("gives a call only to its principal, for the same request, in time, and to one retry at a time", () => {
    const table = new ParkingTable(bounds);
    const call = parkable("a");
    const id = table.enter(call) ?? "";
    expect(table.take(id, "a", "d", 0)).toBeUndefined();
    table.wait(id, 0);
    expect(table.take(id, "b", "d", 1)).toBeUndefined();
    expect(table.take(id, "a", "other", 1)).toBeUndefined();
    expect(table.take("unknown", "a", "d", 1)).toBeUndefined();
    expect(table.take(id, "a", "d", 100)).toBeUndefined();
    expect(table.take(id, "a", "d", 99)).toBe(call);
    table.resume(id);
    expect(table.take(id, "a", "d", 99)).toBeUndefined();
  });

  it("lets a call expire, but not while a retry holds it", () => {
    const table = new ParkingTable(bounds);
    const [waiting, resumed] = [parkable("a"), parkable("a")];
    const ids = [table.enter(waiting) ?? "", table.enter(resumed) ?? ""];
    for (const id of ids) table.wait(id, 0);
    table.resume(ids[1] ?? "");
    expect(table.due(99)).toEqual([]);
    expect(table.due(100)).toEqual([waiting]);
    table.wait(ids[1] ?? "", 500);
    expect(table.due(599)).toEqual([]);
    expect(table.due(600)).toEqual([resumed]);
    expect(table.size).toBe(0);
  });
});

describe("a requestState", () => {
  const state = { parked: "p", principalId: "a", digest: "d", expires: 5 };

  it("comes back as it was, is known when it was changed, and passes when it is a second gateway's", () => {
    const sealer = createSealer(randomBytes(32));
    const states = new RequestStates(sealer);
    const text = states.seal(state);
    expect(states.read(text)).toEqual(state);
    expect(new RequestStates(sealer).read(text)).toEqual(state);
    expect(states.seal(state)).not.toBe(text);
    expect(states.read(`${text}-TAMPERED`)).toBe("broken");
    expect(states.read(`${text.slice(0, -1)}${text.endsWith("A") ? "B" : "A"}`)).toBe("broken");
    expect(states.read("a server's own state")).toBe("foreign");
    expect(states.read("a.b")).toBe("foreign");
    expect(states.read("")).toBe("foreign");
    expect(new RequestStates(createSealer(randomBytes(32))).read(text)).toBe("foreign");
    expect(states.read(states.seal({ ...state, parked: undefined }))).toEqual({ ...state, parked: undefined });
  });

  it("has a digest of what was asked, and of nothing that the retry brings", () => {
    const one = request("tools/call", { name: "t", arguments: { a: 1, b: { c: [1, 2] } }, _meta: { x: 1 } });
    const same = request("tools/call", {
      inputResponses: { k: {} },
      requestState: "s",
      arguments: { b: { c: [1, 2] }, a: 1 },
      name: "t",
    });
    expect(requestDigest(one, undefined)).toBe(requestDigest(same, undefined));
    for (const other of [
      request("prompts/get", one.params),
      request("tools/call", { ...one.params, name: "u" }),
      request("tools/call", { ...one.params, arguments: { a: 1, b: { c: [2, 1] } } }),
      request("tools/call", { ...one.params, more: 1 }),
    ]) {
      expect(requestDigest(other, undefined)).not.toBe(requestDigest(one, undefined));
    }
    expect(requestDigest(one, "scope")).not.toBe(requestDigest(one, undefined));
  });
});

describe("the questions of one call", () => {
  function ask(rounds: CallQuestions, method: string, params?: object) {
    const asked = { key: "", answer: undefined as unknown, fault: undefined as Fault | undefined };
    asked.key = rounds.add(
      request(method, params),
      (response) => {
        asked.answer = response.result;
      },
      (fault) => {
        asked.fault = fault;
      },
    );
    return asked;
  }

  it("show what is open, give answers by key, and ask again for what is missing", () => {
    const rounds = new CallQuestions();
    expect(rounds.unshown).toBe(false);
    const elicited = ask(rounds, "elicitation/create", { message: "Who?", big: 1 });
    const roots = ask(rounds, "roots/list");
    const dropped = ask(rounds, "sampling/createMessage", {});
    rounds.drop(dropped.key);
    expect(rounds.unshown).toBe(true);
    expect(JSON.parse(rounds.show())).toEqual({
      [elicited.key]: { method: "elicitation/create", params: { message: "Who?", big: 1 } },
      [roots.key]: { method: "roots/list", params: {} },
    });
    expect(rounds.unshown).toBe(false);
    const accept = { action: "accept", content: { name: "A" }, own: { n: 1 } };
    rounds.answer(request("tools/call", { inputResponses: { [elicited.key]: accept, extra: 1 } }));
    expect(elicited.answer).toEqual(accept);
    expect(rounds.unshown).toBe(true);
    expect(Object.keys(JSON.parse(rounds.show()) as object)).toEqual([roots.key]);
    rounds.answer(request("tools/call", {}));
    expect(rounds.size).toBe(1);
    rounds.answer(request("tools/call", { inputResponses: { [roots.key]: { roots: [] } } }));
    expect(roots.answer).toEqual({ roots: [] });
    const last = ask(rounds, "roots/list");
    expect([elicited.key, roots.key, dropped.key]).not.toContain(last.key);
    rounds.rejectAll(new Fault("closing", "over"));
    expect(last.fault?.code).toBe("closing");
    expect(dropped.fault).toBeUndefined();
  });

  it("keep the agent's own text, numbers included", () => {
    const rounds = new CallQuestions();
    let text = "";
    const key = rounds.add(
      request("elicitation/create", {}),
      (response) => {
        text = response.text;
      },
      () => {},
    );
    const json = `{"action":"accept","content":{"n":12345678901234567890}}`;
    const retry = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"inputResponses":{"${key}":${json}}}}`;
    rounds.answer(parseMessage(retry) as RequestMessage);
    expect(text).toContain(json);
  });

  it.each([
    ["elicitation/create", null, false],
    ["elicitation/create", 12345, false],
    ["elicitation/create", {}, false],
    ["elicitation/create", { action: "maybe" }, false],
    ["elicitation/create", { action: "accept", content: 1 }, false],
    ["elicitation/create", { action: "decline" }, true],
    ["sampling/createMessage", { role: "assistant" }, false],
    ["sampling/createMessage", { role: "assistant", content: { type: "text", text: "" }, model: "m" }, true],
    ["roots/list", { roots: {} }, false],
    ["roots/list", { roots: [] }, true],
  ])("check an answer to %s: %j", (method, value, good) => {
    const rounds = new CallQuestions();
    const { key } = ask(rounds, method, {});
    const retry = request("tools/call", { inputResponses: { [key]: value, unknown: 5 } });
    expect(rounds.problem(retry) === undefined).toBe(good);
  });

  it.each([[null], [[]], ["text"], [5]])("refuse inputResponses that are %j", (value) => {
    expect(new CallQuestions().problem(request("tools/call", { inputResponses: value }))).toContain("object");
  });

  it("refuse an answer that is given twice", () => {
    const text = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"inputResponses":{"a":{},"a":{}}}}';
    expect(new CallQuestions().problem(parseMessage(text) as RequestMessage)).toContain("Duplicate");
  });
});

describe("the capabilities that a question needs", () => {
  it.each([
    ["elicitation/create", {}, {}, { elicitation: {} }],
    ["elicitation/create", {}, { elicitation: {} }, undefined],
    ["elicitation/create", { mode: "form" }, { elicitation: { form: {} } }, undefined],
    ["elicitation/create", {}, { elicitation: { url: {} } }, { elicitation: {} }],
    ["elicitation/create", { mode: "url" }, { elicitation: {} }, { elicitation: { url: {} } }],
    ["elicitation/create", { mode: "url" }, { elicitation: { url: {} } }, undefined],
    ["sampling/createMessage", {}, {}, { sampling: {} }],
    ["sampling/createMessage", {}, { sampling: {} }, undefined],
    ["sampling/createMessage", { tools: [] }, { sampling: {} }, { sampling: { tools: {} } }],
    ["sampling/createMessage", { tools: [] }, { sampling: { tools: {} } }, undefined],
    ["roots/list", undefined, { sampling: {} }, { roots: {} }],
    ["roots/list", undefined, { roots: {} }, undefined],
  ])("%s %j of a client with %j", (method, params, capabilities, lacking) => {
    expect(lackingFor(request(method, params), capabilities)).toEqual(lacking);
  });
});
