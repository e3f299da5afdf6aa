// Whose a server's message is, how long a call may take, and that every call is answered once: with a link that is
// played, since a real server cannot be made to say the wrong thing at the right moment.

import { beforeEach, describe, expect, it } from "vitest";
import { SUPERVISED } from "../../test/fixtures/spec.js";
import type { Caller } from "../caller.js";
import { Fault } from "../protocol/errors.js";
import type { JsonObject, RpcId } from "../protocol/jsonrpc.js";
import {
  type NotificationMessage,
  parseMessage,
  type RequestMessage,
  type ResponseMessage,
} from "../protocol/message.js";
import { type Reply, replyText } from "../protocol/reply.js";
import type { UpstreamCall } from "../upstream.js";
import { Breaker } from "./breaker.js";
import { Connection } from "./connection.js";
import type { Link, LinkEvents, Ticket } from "./link.js";

class PlayedLink implements Link {
  readonly sent: JsonObject[] = [];
  readonly tickets: Ticket[] = [];
  readonly events: LinkEvents;

  constructor(events: LinkEvents) {
    this.events = events;
  }

  async open(): Promise<void> {}
  established(): void {}
  forget(): void {}
  async close(): Promise<void> {}

  describe() {
    return { kind: "stdio" } as const;
  }

  send(text: string, ticket: Ticket | undefined): void {
    this.sent.push(JSON.parse(text) as JsonObject);
    if (ticket !== undefined) this.tickets.push(ticket);
  }

  /** The server says something; on the exchange of `ticket`, where the transport has such. */
  says(message: JsonObject | JsonObject[] | string, ticket?: Ticket): void {
    const json = typeof message === "string" ? message : JSON.stringify(message);
    this.events.onMessage(Buffer.from(json), ticket);
  }

  asks(id: RpcId, ticket?: Ticket, params: JsonObject = {}): void {
    this.says({ jsonrpc: "2.0", id, method: "elicitation/create", params }, ticket);
  }

  answers(id: unknown, result: JsonObject = {}): void {
    this.says({ jsonrpc: "2.0", id, result });
  }

  /** What the server got under an id of its own. */
  answerTo(id: RpcId): JsonObject | undefined {
    return this.sent.find((message) => message["id"] === id && message["method"] === undefined);
  }
}

class Agent implements Caller {
  readonly principal = { id: "agent", role: "default" };
  readonly era = "legacy";
  readonly logLevel = undefined;
  readonly version = "2025-11-25";
  readonly capabilities: JsonObject = {};
  readonly clientInfo: JsonObject = {};
  readonly heard: JsonObject[] = [];
  readonly asked: { request: RequestMessage; signal: AbortSignal; answer(result: JsonObject): void; refuse(): void }[] =
    [];
  readonly sessionKey: string;

  constructor(sessionKey: string) {
    this.sessionKey = sessionKey;
  }

  setLogLevel(): void {}

  notify(text: string): void {
    this.heard.push(JSON.parse(text) as JsonObject);
  }

  ask(request: RequestMessage, signal: AbortSignal): Promise<ResponseMessage> {
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(new Fault("cancelled", "Taken back.")), { once: true });
      this.asked.push({
        request,
        signal,
        answer: (result) =>
          resolve(parseMessage(JSON.stringify({ jsonrpc: "2.0", id: "x", result })) as ResponseMessage),
        refuse: () => reject(new Fault("no-caller", "Not me.")),
      });
    });
  }
}

class TestCall implements UpstreamCall {
  readonly method = "tools/call";
  readonly subject = "tool";
  readonly caller: Caller | undefined;
  readonly progressToken: RpcId | undefined;
  readonly replies: Reply[] = [];

  constructor(caller: Caller | undefined, progressToken?: RpcId) {
    this.caller = caller;
    this.progressToken = progressToken;
  }

  render(id: number): string {
    return JSON.stringify({ jsonrpc: "2.0", id, method: this.method, params: {} });
  }

  reply(reply: Reply): void {
    this.replies.push(reply);
  }

  async answer(): Promise<JsonObject> {
    expect(this.replies).toHaveLength(1);
    return JSON.parse(await replyText(this.replies[0] as Reply, '"mine"')) as JsonObject;
  }
}

const CALL_MS = 1_000;
let nowMs: number;
let link: PlayedLink;
let notified: { message: NotificationMessage; caller: Caller | undefined }[];
let unsent: UpstreamCall[];

function connect(owner?: Caller): Connection {
  return new Connection(
    {
      spec: {
        name: "played",
        target: { kind: "stdio", command: "none", args: [], env: {}, cwd: undefined },
        isolation: owner === undefined ? "shared" : "session",
        connectTimeoutMs: 500,
        callTimeoutMs: CALL_MS,
        ...SUPERVISED,
      },
      owner,
      offer: { clientInfo: {}, capabilities: {} },
      now: () => nowMs,
      noise: { count: 0, sample: undefined },
      makeLink: (events) => {
        link = new PlayedLink(events);
        return link;
      },
      breaker: new Breaker(SUPERVISED.supervision.breaker),
    },
    {
      isRepeatable: () => false,
      onLost: () => {},
      onNotification: (message, caller) => void notified.push({ message, caller }),
      onUnsent: (call) => void unsent.push(call),
      onClosed: () => {},
    },
  );
}

function begin(connection: Connection, caller: Caller | undefined, token?: RpcId): TestCall & { ticket: Ticket } {
  const call = new TestCall(caller, token);
  connection.send(call);
  return Object.assign(call, { ticket: link.tickets.at(-1) as Ticket });
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

beforeEach(() => {
  nowMs = 0;
  notified = [];
  unsent = [];
});

describe("whose a server's question is", () => {
  it("on a pipe: the one session's that is calling", async () => {
    const connection = connect();
    const [ada, bob] = [new Agent("ada"), new Agent("bob")];
    begin(connection, ada);
    begin(connection, ada);
    begin(connection, undefined);
    link.asks("q");
    expect([ada.asked.length, bob.asked.length]).toEqual([1, 0]);
    ada.asked[0]?.answer({ action: "accept" });
    await settled();
    expect(link.answerTo("q")).toMatchObject({ id: "q", result: { action: "accept" } });
  });

  it("on a pipe with two sessions calling: nobody's, and the hint says what to do", () => {
    const connection = connect();
    const [ada, bob] = [new Agent("ada"), new Agent("bob")];
    begin(connection, ada);
    begin(connection, bob);
    link.asks(7);
    expect([ada.asked, bob.asked]).toEqual([[], []]);
    expect(link.answerTo(7)).toMatchObject({ error: { code: -31010, message: expect.stringContaining('"session"') } });
  });

  it("on a pipe with nobody calling: nobody's", () => {
    connect();
    link.asks(1);
    expect(link.answerTo(1)).toMatchObject({ error: { code: -31010 } });
  });

  it.each(["taken back", "timed out"])(
    "on a pipe, while a call that was %s may still be worked on: nobody else's",
    (how) => {
      const connection = connect();
      const [ada, bob] = [new Agent("ada"), new Agent("bob")];
      const gone = begin(connection, ada);
      if (how === "taken back") connection.cancel(gone, "changed my mind");
      else {
        nowMs += CALL_MS;
        connection.expire(nowMs);
      }
      begin(connection, bob);
      link.asks("early");
      expect(bob.asked).toEqual([]);
      expect(link.answerTo("early")).toMatchObject({ error: { code: -31010 } });
      // The server has answered after all: it is done with that call.
      link.answers(gone.ticket.id);
      link.asks("later");
      expect(bob.asked).toHaveLength(1);
    },
  );

  it("forgets calls that were taken back: in time, and beyond a number", () => {
    const connection = connect();
    const [ada, bob] = [new Agent("ada"), new Agent("bob")];
    for (let i = 0; i < 5_000; i++) connection.cancel(begin(connection, ada), undefined);
    begin(connection, bob);
    link.asks(1);
    expect(bob.asked).toEqual([]);
    nowMs += 30_000;
    connection.expire(nowMs);
    begin(connection, bob);
    link.asks(2);
    expect(bob.asked).toHaveLength(1);
  });

  it("where the exchange tells: its caller's, however many are calling", () => {
    const connection = connect();
    const [ada, bob] = [new Agent("ada"), new Agent("bob")];
    const adas = begin(connection, ada);
    const bobs = begin(connection, bob);
    link.asks("for bob", bobs.ticket);
    link.asks("for ada", adas.ticket);
    expect([ada, bob].map(({ asked }) => asked.map(({ request }) => request.id))).toEqual([["for ada"], ["for bob"]]);
  });

  it("where the exchange tells, and its call has ended: nobody's", () => {
    const connection = connect();
    const [ada, bob] = [new Agent("ada"), new Agent("bob")];
    const adas = begin(connection, ada);
    begin(connection, bob);
    connection.cancel(adas, undefined);
    link.asks("late", adas.ticket);
    expect([ada.asked, bob.asked]).toEqual([[], []]);
    expect(link.answerTo("late")).toHaveProperty("error");
  });

  it("on a connection of one agent's own: always that agent's", () => {
    const owner = new Agent("owner");
    const connection = connect(owner);
    link.asks(1);
    connection.cancel(begin(connection, owner), undefined);
    link.asks(2);
    expect(owner.asked).toHaveLength(2);
  });

  it("is taken back by the server, and has no answer then", async () => {
    const connection = connect();
    const ada = new Agent("ada");
    begin(connection, ada);
    link.asks(5);
    link.says({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 5 } });
    await settled();
    expect(ada.asked[0]?.signal.aborted).toBe(true);
    expect(link.answerTo(5)).toBeUndefined();
    // The id is free again, and what the agent refuses the server is told.
    link.asks(5);
    ada.asked[1]?.refuse();
    await settled();
    expect(link.answerTo(5)).toMatchObject({ error: { code: -31010 } });
  });

  it("is bounded in number, and an id in use is refused", () => {
    const connection = connect();
    const ada = new Agent("ada");
    begin(connection, ada);
    link.asks(1);
    link.asks(1);
    expect(link.answerTo(1)).toMatchObject({ error: { message: expect.stringContaining("in use") } });
    for (let i = 2; i <= 200; i++) link.asks(i);
    expect(ada.asked).toHaveLength(100);
    expect(link.answerTo(200)).toMatchObject({ error: { message: expect.stringContaining("Too many") } });
  });

  it("ends with the connection: the agent need not answer any more", async () => {
    const connection = connect();
    const ada = new Agent("ada");
    begin(connection, ada);
    link.asks(1);
    await connection.close();
    await settled();
    expect(ada.asked[0]?.signal.aborted).toBe(true);
    expect(link.answerTo(1)).toBeUndefined();
  });
});

describe("progress", () => {
  it("keeps a call going past its time, and not past its ceiling", async () => {
    const connection = connect();
    const ada = new Agent("ada");
    const call = begin(connection, ada, "token");
    const { callCeilingMs } = SUPERVISED.supervision;
    const params = { progressToken: call.ticket.id, progress: 1 };
    while (nowMs + CALL_MS < callCeilingMs) {
      nowMs += CALL_MS - 1;
      link.says({ jsonrpc: "2.0", method: "notifications/progress", params });
      expect(connection.expire(nowMs)).toBe(false);
    }
    nowMs = callCeilingMs;
    link.says({ jsonrpc: "2.0", method: "notifications/progress", params });
    expect(connection.expire(nowMs)).toBe(true);
    expect(JSON.stringify(await call.answer())).toContain("in spite of all progress");
  });

  it("of two calls with the same token of their agents reaches each its own", () => {
    const connection = connect();
    const [ada, bob] = [new Agent("ada"), new Agent("bob")];
    const adas = begin(connection, ada, "token");
    const bobs = begin(connection, bob, "token");
    for (const [{ ticket }, progress] of [
      [bobs, 1],
      [adas, 2],
    ] as const) {
      link.says({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: ticket.id, progress } });
    }
    const heard = (agent: Agent) => agent.heard.map(({ params }) => params);
    expect(heard(ada)).toEqual([{ progressToken: "token", progress: 2 }]);
    expect(heard(bob)).toEqual([{ progressToken: "token", progress: 1 }]);
  });

  it("keeps the agent's token a number or a string, as it was", () => {
    const connection = connect();
    const ada = new Agent("ada");
    for (const token of [7, "7"]) {
      const { ticket } = begin(connection, ada, token);
      // Some servers hand the token back as a string.
      const params = { progressToken: String(ticket.id), progress: 1 };
      link.says({ jsonrpc: "2.0", method: "notifications/progress", params });
    }
    expect(ada.heard.map(({ params }) => (params as JsonObject)["progressToken"])).toEqual([7, "7"]);
  });

  it.each([{ token: true }, { token: [1] }, { token: null }, { token: { id: 1 } }, { token: "" }])(
    "with the odd $token is nobody's",
    ({ token: progressToken }) => {
      const connection = connect();
      const ada = new Agent("ada");
      begin(connection, ada, "mine");
      link.says({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken, progress: 1 } });
      expect(ada.heard).toEqual([]);
    },
  );

  it("of an agent on a question goes to the server that asked, under that server's token", () => {
    const ada = new Agent("ada");
    const both = [0, 1].map(() => ({ connection: connect(), link }));
    const first = both[0] as { connection: Connection; link: PlayedLink };
    for (const one of both) {
      one.connection.send(new TestCall(ada));
      one.link.asks(1, undefined, { _meta: { progressToken: 0, other: "stays" } });
    }
    const metas = ada.asked.map(({ request }) => request.params?.["_meta"] as JsonObject);
    expect(new Set(metas.map(({ progressToken }) => progressToken)).size).toBe(2);
    expect(metas[0]).toMatchObject({ other: "stays" });
    const progress = { progressToken: metas[1]?.["progressToken"], progress: 5, message: "thinking" };
    const message = parseMessage(
      JSON.stringify({ jsonrpc: "2.0", method: "notifications/progress", params: progress }),
    ) as NotificationMessage;
    expect(first.connection.agentProgress("ada", message)).toBe(false);
    expect(both[1]?.connection.agentProgress("eve", message)).toBe(false);
    expect(both[1]?.connection.agentProgress("ada", message)).toBe(true);
    expect(both[1]?.link.sent.at(-1)).toMatchObject({ params: { ...progress, progressToken: 0 } });
    // An agent that sends two tokens at once harms nobody.
    const twice = message.text.replace('"params":{', '"params":{"progressToken":1,');
    expect(both[1]?.connection.agentProgress("ada", parseMessage(twice) as NotificationMessage)).toBe(true);
  });
});

describe("the time of a call", () => {
  it("does not run while its agent is being asked, and runs anew after the answer", async () => {
    const connection = connect();
    const ada = new Agent("ada");
    const call = begin(connection, ada);
    const other = begin(connection, new Agent("bob"));
    link.asks(1, call.ticket);
    for (let i = 0; i < 20; i++) {
      nowMs += CALL_MS / 4;
      connection.expire(nowMs);
    }
    expect(call.replies).toEqual([]);
    // Another session's call has its own time.
    expect(await other.answer()).toMatchObject({ error: { code: -31004 } });
    ada.asked[0]?.answer({});
    await settled();
    nowMs += CALL_MS / 2;
    connection.expire(nowMs);
    expect(call.replies).toEqual([]);
    nowMs += CALL_MS;
    connection.expire(nowMs);
    expect(await call.answer()).toMatchObject({ error: { code: -31004 } });
  });

  it("is moved on by progress that the agent asked for, and by no other", () => {
    const connection = connect();
    const asked = begin(connection, new Agent("ada"), 1);
    const silent = begin(connection, new Agent("bob"));
    nowMs += CALL_MS - 1;
    for (const { ticket } of [asked, silent]) {
      const params = { progressToken: ticket.id, progress: 1 };
      link.says({ jsonrpc: "2.0", method: "notifications/progress", params });
    }
    nowMs += 1;
    connection.expire(nowMs);
    expect([asked.replies.length, silent.replies.length]).toEqual([0, 1]);
  });
});

describe("replies", () => {
  it("of any shape reach their call once, under the asker's id", async () => {
    const connection = connect();
    const shapes: ((id: number) => string)[] = [
      (id) => `{"jsonrpc":"2.0","id":${id},"result":{"ü":1}}`,
      (id) => `{"result":{"ü":1},"jsonrpc":"2.0","id":${id}}`,
      (id) => `{"id":"${id}","result":{"ü":1},"jsonrpc":"2.0"}`,
      (id) => `{"jsonrpc":"2.0","x":"ü","id":${id},"result":{"ü":1}}`,
      (id) => `[{"jsonrpc":"2.0","id":${id},"result":{"ü":1}}]`,
    ];
    for (const shape of shapes) {
      const call = begin(connection, new Agent("ada"));
      link.says(shape(call.ticket.id));
      link.says(shape(call.ticket.id));
      expect(await call.answer()).toMatchObject({ id: "mine", result: { ü: 1 } });
    }
    expect(connection.inFlight).toBe(0);
  });

  it("in a batch are each for themselves: one that cannot be read costs no other", async () => {
    const connection = connect();
    const [first, second] = [begin(connection, new Agent("ada")), begin(connection, new Agent("ada"))];
    const good = ({ ticket }: { ticket: Ticket }) => `{"jsonrpc":"2.0","id":${ticket.id},"result":{}}`;
    link.says(`[${good(first)}, 7, {"jsonrpc":"2.0"}, ${good(second)}]`);
    expect(await first.answer()).toHaveProperty("result");
    expect(await second.answer()).toHaveProperty("result");
  });

  it("without end in one batch do not fill the memory", () => {
    connect();
    link.says(`[${",".repeat(5_000_000)}]`);
  });

  it("that are not JSON fail their call at once", async () => {
    const connection = connect();
    const call = begin(connection, new Agent("ada"));
    link.says(`{"jsonrpc":"2.0","id":${call.ticket.id},"result":{oops}}`);
    expect(await call.answer()).toMatchObject({ error: { code: -31005 } });
  });

  it("are made for all that is in flight when the connection ends, and for what comes after", async () => {
    const connection = connect();
    const calls = [begin(connection, new Agent("ada")), begin(connection, new Agent("bob"))];
    const own = begin(connection, undefined);
    link.events.onClosed(new Fault("outcome-unknown", "It died."));
    link.events.onClosed(new Fault("outcome-unknown", "It died twice."));
    await connection.close();
    for (const call of calls) {
      expect(await call.answer()).toMatchObject({ error: { code: -31003, message: expect.stringContaining("died") } });
    }
    expect(await own.answer()).toHaveProperty("error");
    const late = new TestCall(new Agent("ada"));
    connection.send(late);
    expect(unsent).toEqual([late]);
    expect(connection.inFlight).toBe(0);
  });

  it("are not made twice for a call that is taken back as it is answered", async () => {
    const connection = connect();
    const call = begin(connection, new Agent("ada"));
    connection.cancel(call, "no more");
    connection.cancel(call, "no more");
    link.answers(call.ticket.id);
    expect(await call.answer()).toMatchObject({ error: { code: -31008 } });
    const cancelled = link.sent.filter(({ method }) => method === "notifications/cancelled");
    expect(cancelled).toEqual([expect.objectContaining({ params: { requestId: call.ticket.id, reason: "no more" } })]);
  });
});

it("a notification that nobody knows is passed on with its caller, if that can be told", () => {
  const connection = connect();
  const ada = new Agent("ada");
  link.says({ jsonrpc: "2.0", method: "notifications/odd" });
  begin(connection, ada);
  link.says({ jsonrpc: "2.0", method: "notifications/odd" });
  begin(connection, new Agent("bob"));
  link.says({ jsonrpc: "2.0", method: "notifications/odd" });
  expect(notified.map(({ caller }) => caller)).toEqual([undefined, ada, undefined]);
});

it("a ping is answered by us, under the id as it was written", () => {
  connect();
  link.says('{"jsonrpc":"2.0","id":"p","method":"ping"}');
  expect(link.answerTo("p")).toEqual({ jsonrpc: "2.0", id: "p", result: {} });
});
