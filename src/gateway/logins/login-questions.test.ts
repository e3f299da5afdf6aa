import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Caller } from "../../contracts/caller.js";
import type { AgentCall, EndedLogin } from "../../contracts/service.js";
import type { LoginAnswer } from "../../credentials/login-source.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import type { RequestMessage, ResponseMessage } from "../../protocol/message.js";
import type { Reply } from "../../protocol/reply.js";
import { LoginQuestions } from "./login-questions.js";

const URL_PAGES = { elicitation: { url: {} } };

/** An agent whose user is asked by hand. */
class Agent {
  readonly asked: RequestMessage[] = [];
  readonly notified: string[] = [];
  answer: (action: string) => void = () => {};
  readonly caller: Caller;

  constructor(
    sessionKey: string,
    { era = "legacy", capabilities = URL_PAGES }: { era?: Caller["era"]; capabilities?: JsonObject } = {},
  ) {
    this.caller = {
      principal: { id: `agent-${sessionKey}`, role: "dev" },
      sessionKey,
      era,
      capabilities,
      notify: ({ method }: { method: string }) => void this.notified.push(method),
      ask: (request: RequestMessage, signal: AbortSignal) => {
        this.asked.push(request);
        return new Promise<ResponseMessage>((resolve, reject) => {
          this.answer = (action) => resolve({ result: { action } } as unknown as ResponseMessage);
          signal.addEventListener("abort", () => reject(new Error("taken back")));
        });
      },
    } as unknown as Caller;
  }

  call(): AgentCall & { readonly replies: Reply[] } {
    const replies: Reply[] = [];
    const message = { method: "tools/call" } as RequestMessage;
    return {
      caller: this.caller,
      message,
      scope: undefined,
      replies,
      onCancel: undefined,
      reply: (one) => void replies.push(one),
    };
  }
}

const ANSWER: LoginAnswer = { state: "s", code: "c", iss: undefined, error: undefined };
let finished: number;
let begun: number;
let closed: number;
let isNear: boolean;
let back: (answer: LoginAnswer) => void;
let finishFails: boolean;
let isStopped: boolean;
let logged: string[];
let pages: (string | undefined)[];
let told: EndedLogin[];
let questions: LoginQuestions;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  [finished, begun, closed, isNear, finishFails, isStopped, logged, told, pages] = [
    0,
    0,
    0,
    true,
    false,
    false,
    [],
    [],
    [],
  ];
  questions = new LoginQuestions({
    loginOf: (server) =>
      server !== "linear"
        ? undefined
        : {
            redirectPort: undefined,
            get finished() {
              return finished;
            },
            get isStopped() {
              return isStopped;
            },
            begin: async () => ({ address: `https://login.example/${++begun}`, state: "s" }),
            finish: async () => {
              if (finishFails) throw new Error("wrong issuer");
              finished++;
            },
          },
    isNear: () => isNear,
    listen: async () => ({
      redirectUri: "http://127.0.0.1:1/callback",
      answerTo: () =>
        new Promise((resolve) => {
          back = resolve;
        }),
      tell: (failure) => void pages.push(failure),
      close: () => void closed++,
    }),
    log: (text) => void logged.push(text),
    ended: (login) => void told.push(login),
  });
});

afterEach(() => vi.useRealTimers());

const settled = () => vi.advanceTimersByTimeAsync(0);

/** A call that was refused, and what became of it. */
function refused(agent: Agent, server = "linear") {
  const call = agent.call();
  const ends: string[] = [];
  const isTaken = questions.take(
    call,
    server,
    () => ends.push("again"),
    () => ends.push("gave up"),
  );
  return { call, ends, isTaken };
}

describe("a login in the middle of a call", () => {
  it("is one for all calls that wait, each agent is asked once, and all go on when the browser is back [token-unseen]", async () => {
    const [one, other] = [new Agent("1"), new Agent("2", { era: "modern" })];
    const calls = [refused(one), refused(one), refused(other)];
    await settled();
    expect([begun, one.asked.length, other.asked.length]).toEqual([1, 1, 1]);
    expect(one.asked[0]?.params).toMatchObject({ mode: "url", url: "https://login.example/1" });
    expect(one.asked[0]?.params?.["elicitationId"]).toEqual(expect.any(String));
    // The modern era has no names for pages.
    expect(other.asked[0]?.params).not.toHaveProperty("elicitationId");
    one.answer("accept");
    await settled();
    expect(calls.flatMap(({ ends }) => ends)).toEqual([]);
    back(ANSWER);
    await settled();
    expect(calls.map(({ ends }) => ends)).toEqual([["again"], ["again"], ["again"]]);
    expect([one.notified, other.notified]).toEqual([["notifications/elicitation/complete"], []]);
    expect([closed, vi.getTimerCount()]).toEqual([1, 0]);
  });

  it("is begun by an operator at their page, waits for the browser when nobody else does, and serves calls that come meanwhile [token-unseen]", async () => {
    expect(questions.open("files")).toBeUndefined();
    expect(await questions.open("linear")).toBe("https://login.example/1");
    // Whoever asks again goes to the same.
    expect(await questions.open("linear")).toBe("https://login.example/1");
    const agent = new Agent("1");
    const { ends } = refused(agent);
    await settled();
    agent.answer("decline");
    await settled();
    expect([ends, closed]).toEqual([["gave up"], 0]);
    const other = refused(new Agent("2"));
    back(ANSWER);
    await settled();
    expect([other.ends, finished, closed, vi.getTimerCount()]).toEqual([["again"], 1, 1, 0]);
    finishFails = true;
    expect(await questions.open("linear")).toBe("https://login.example/2");
    back(ANSWER);
    await settled();
    expect(pages).toEqual([undefined, "wrong issuer"]);
    expect(logged).toEqual(['server "linear": a login that was begun failed: wrong issuer']);
    await questions.open("linear");
    await vi.advanceTimersByTimeAsync(5 * 60_000);
    expect([closed, vi.getTimerCount()]).toEqual([3, 0]);
  });

  it("is told once when it has ended, well or not, with whose call or which person began it [audit-tells]", async () => {
    const [one, other] = [new Agent("1"), new Agent("2")];
    for (const agent of [one, other]) refused(agent);
    await settled();
    back(ANSWER);
    await settled();
    await vi.advanceTimersByTimeAsync(1_000);
    await questions.open("linear");
    finishFails = true;
    back(ANSWER);
    await settled();
    await questions.open("linear");
    await vi.advanceTimersByTimeAsync(5 * 60_000);
    // By `toolway login`: that one tells of it.
    refused(other);
    finished++;
    await vi.advanceTimersByTimeAsync(300);
    refused(other).call.onCancel?.("no need");
    await settled();
    const first = { server: "linear", by: "call", principal: { id: "agent-1", role: "dev" } };
    expect(told).toEqual([
      { ...first, outcome: "ok" },
      { server: "linear", by: "operator", outcome: "failed" },
      { server: "linear", by: "operator", outcome: "timeout" },
      { ...first, principal: { id: "agent-2", role: "dev" }, outcome: "cancelled" },
    ]);
  });

  it("that a user declines is the refusal for that agent's calls alone [token-unseen]", async () => {
    const [one, other] = [new Agent("1"), new Agent("2")];
    const [first, second, third] = [refused(one), refused(one), refused(other)];
    await settled();
    one.answer("decline");
    await settled();
    expect([first.ends, second.ends, third.ends]).toEqual([["gave up"], ["gave up"], []]);
    back(ANSWER);
    await settled();
    expect(third.ends).toEqual(["again"]);
    expect(first.ends).toEqual(["gave up"]);
  });

  it("ends with the last call that waits for it, and one that was taken back is told so", async () => {
    const { call, ends } = refused(new Agent("1"));
    await settled();
    call.onCancel?.("no need");
    expect(call.replies).toMatchObject([{ kind: "error", error: { message: "no need" } }]);
    await settled();
    expect([ends, closed, vi.getTimerCount()]).toEqual([[], 1, 0]);
    // The next begins anew.
    refused(new Agent("1"));
    await settled();
    expect(begun).toBe(2);
  });

  it("goes on while somebody is on the page, though the call that asked for it was given up, and the next call has it [token-unseen]", async () => {
    const agent = new Agent("1");
    const first = refused(agent);
    await settled();
    agent.answer("accept");
    await settled();
    first.call.onCancel?.("timed out");
    await settled();
    expect(closed).toBe(0);
    // The next call waits for the same login, and nobody is asked twice.
    const second = refused(agent);
    await settled();
    expect([begun, agent.asked.length]).toEqual([1, 1]);
    back(ANSWER);
    await settled();
    expect([first.ends, second.ends, closed, vi.getTimerCount()]).toEqual([[], ["again"], 1, 0]);
  });

  it("on a page ends with its entry, and nothing listens any more [bounded]", async () => {
    const agent = new Agent("1");
    const { call } = refused(agent);
    await settled();
    agent.answer("accept");
    await settled();
    call.onCancel?.("closing");
    isStopped = true;
    await vi.advanceTimersByTimeAsync(300);
    expect([closed, vi.getTimerCount()]).toEqual([1, 0]);
  });

  it("goes on where somebody logs in otherwise, and gives up after five minutes or a login that fails [bounded]", async () => {
    const first = refused(new Agent("1"));
    await settled();
    // By toolway login.
    finished++;
    await vi.advanceTimersByTimeAsync(300);
    expect(first.ends).toEqual(["again"]);
    const second = refused(new Agent("1"));
    await vi.advanceTimersByTimeAsync(5 * 60_000);
    expect(second.ends).toEqual(["gave up"]);
    finishFails = true;
    const third = refused(new Agent("1"));
    await settled();
    back(ANSWER);
    await settled();
    expect(third.ends).toEqual(["gave up"]);
    expect(logged.join()).toContain("wrong issuer");
    expect(pages.at(-1)).toBe("wrong issuer");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is asked of nobody who cannot open pages, is on another machine, or wants a server without logins; and of a hundred at most [bounded]", () => {
    expect(refused(new Agent("1", { capabilities: { elicitation: {} } })).isTaken).toBe(false);
    expect(refused(new Agent("1"), "files").isTaken).toBe(false);
    const far = new Agent("1");
    Object.assign(far.caller, { beforeSend: async () => {} });
    expect(refused(far).isTaken).toBe(false);
    isNear = false;
    expect(refused(new Agent("1")).isTaken).toBe(false);
    isNear = true;
    const all = Array.from({ length: 101 }, () => refused(new Agent("1")).isTaken);
    expect(all.filter(Boolean)).toHaveLength(100);
  });
});
