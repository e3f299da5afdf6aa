// Which agent a server's message is for. The link is played, since a real server cannot be made to say the wrong thing
// at the right moment.

import { beforeEach, describe, expect, it } from "vitest";
import {
  Agent,
  begin,
  CALL_MS,
  clearStage,
  connect,
  type PlayedLink,
  settled,
  stage,
  TestCall,
} from "../../../test/fixtures/links/played.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import { type NotificationMessage, parseMessage } from "../../protocol/message.js";
import { HeldBytes } from "../../runtime/memory/held-bytes.js";
import { MIB } from "../../runtime/sizes.js";
import type { Connection } from "./connection.js";

beforeEach(clearStage);

describe("a question of a server", () => {
  it("on a pipe is for the one session that is calling", async () => {
    const connection = connect();
    const [ada, bob] = [new Agent("ada"), new Agent("bob")];
    begin(connection, ada);
    begin(connection, ada);
    begin(connection, undefined);
    stage.link.asks("q");
    expect([ada.asked.length, bob.asked.length]).toEqual([1, 0]);
    ada.asked[0]?.answer({ action: "accept" });
    await settled();
    expect(stage.link.answerTo("q")).toMatchObject({ id: "q", result: { action: "accept" } });
  });

  it("on a pipe is put to the newest call of that session", () => {
    const connection = connect();
    // More than the first table holds, so that the order is not the table's by chance.
    for (let id = 1; id <= 40; id++) {
      const ada = new Agent("ada");
      begin(connection, ada);
      stage.link.asks(id);
      expect(ada.asked).toHaveLength(1);
    }
  });

  it("on a pipe is refused while two sessions are calling, with a hint what to do", () => {
    const connection = connect();
    const [ada, bob] = [new Agent("ada"), new Agent("bob")];
    begin(connection, ada);
    begin(connection, bob);
    stage.link.asks(7);
    expect([ada.asked, bob.asked]).toEqual([[], []]);
    expect(stage.link.answerTo(7)).toMatchObject({
      error: { code: -31010, message: expect.stringContaining('"session"') },
    });
  });

  it("on a pipe is refused while nobody is calling", () => {
    connect();
    stage.link.asks(1);
    expect(stage.link.answerTo(1)).toMatchObject({ error: { code: -31010 } });
  });

  it("for roots, which stock servers ask at their start, is refused with how to keep them from it [told-why]", () => {
    connect();
    stage.link.says({ jsonrpc: "2.0", id: 1, method: "roots/list", params: {} });
    const declare = expect.stringContaining('or "declare": ["sampling", "elicitation"] so that it does not ask');
    expect(stage.link.answerTo(1)).toMatchObject({ error: { code: -31010, message: declare } });
  });

  it.each(["cancelled", "timed out"])(
    "on a pipe is put to nobody else while the server may still work on a call that was %s",
    (how) => {
      const connection = connect();
      const [ada, bob] = [new Agent("ada"), new Agent("bob")];
      const gone = begin(connection, ada);
      if (how === "cancelled") connection.cancel(gone, "changed my mind");
      else {
        stage.nowMs += CALL_MS;
        connection.expire(stage.nowMs);
      }
      begin(connection, bob);
      stage.link.asks("early");
      expect(bob.asked).toEqual([]);
      expect(stage.link.answerTo("early")).toMatchObject({ error: { code: -31010 } });
      // The server has answered after all: it is done with that call.
      stage.link.answers(gone.ticket.id);
      stage.link.asks("later");
      expect(bob.asked).toHaveLength(1);
    },
  );

  it("is put to others again when calls that were cancelled are forgotten: after a time, and beyond a number", () => {
    const connection = connect();
    const [ada, bob] = [new Agent("ada"), new Agent("bob")];
    for (let i = 0; i < 5_000; i++) connection.cancel(begin(connection, ada), undefined);
    begin(connection, bob);
    stage.link.asks(1);
    expect(bob.asked).toEqual([]);
    stage.nowMs += 30_000;
    connection.expire(stage.nowMs);
    begin(connection, bob);
    stage.link.asks(2);
    expect(bob.asked).toHaveLength(1);
  });

  it("on the exchange of a call is for that call's agent, however many are calling", () => {
    const connection = connect();
    const [ada, bob] = [new Agent("ada"), new Agent("bob")];
    const adas = begin(connection, ada);
    const bobs = begin(connection, bob);
    stage.link.asks("for bob", bobs.ticket);
    stage.link.asks("for ada", adas.ticket);
    expect([ada, bob].map(({ asked }) => asked.map(({ request }) => request.id))).toEqual([["for ada"], ["for bob"]]);
  });

  it("on the exchange of a call that has ended is refused", () => {
    const connection = connect();
    const [ada, bob] = [new Agent("ada"), new Agent("bob")];
    const adas = begin(connection, ada);
    begin(connection, bob);
    connection.cancel(adas, undefined);
    stage.link.asks("late", adas.ticket);
    expect([ada.asked, bob.asked]).toEqual([[], []]);
    expect(stage.link.answerTo("late")).toHaveProperty("error");
  });

  it("on a connection of one agent's own is always for that agent", () => {
    const owner = new Agent("owner");
    const connection = connect(owner);
    stage.link.asks(1);
    connection.cancel(begin(connection, owner), undefined);
    stage.link.asks(2);
    expect(owner.asked).toHaveLength(2);
  });

  it("that the server cancels has no answer", async () => {
    const connection = connect();
    const ada = new Agent("ada");
    begin(connection, ada);
    stage.link.asks(5);
    stage.link.says({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 5 } });
    await settled();
    expect(ada.asked[0]?.signal.aborted).toBe(true);
    expect(stage.link.answerTo(5)).toBeUndefined();
    // The id is free again.
    stage.link.asks(5);
    expect(ada.asked).toHaveLength(2);
  });

  it("that its agent cannot answer is refused as the protocol has it, by -32601 [told-truly]", async () => {
    const connection = connect();
    const ada = new Agent("ada");
    begin(connection, ada);
    stage.link.asks(5);
    ada.asked[0]?.refuse();
    await settled();
    expect(stage.link.answerTo(5)).toMatchObject({ error: { code: -32601, data: { fault: "no-caller" } } });
  });

  it("is refused where too many are open, or where its id is in use", () => {
    const connection = connect();
    const ada = new Agent("ada");
    begin(connection, ada);
    stage.link.asks(1);
    stage.link.asks(1);
    expect(stage.link.answerTo(1)).toMatchObject({ error: { message: expect.stringContaining("in use") } });
    for (let i = 2; i <= 200; i++) stage.link.asks(i);
    expect(ada.asked).toHaveLength(100);
    expect(stage.link.answerTo(200)).toMatchObject({ error: { message: expect.stringContaining("Too many") } });
  });

  it("is counted while it waits, and refused where there is no room for it [bounded]", async () => {
    const held = new HeldBytes(8 * MIB);
    const connection = connect(undefined, held);
    const ada = new Agent("ada");
    begin(connection, ada);
    const params = { message: "x".repeat(700_000) };
    for (let id = 1; id <= 5; id++) stage.link.asks(id, undefined, params);
    expect(ada.asked.length).toBeGreaterThanOrEqual(1);
    expect(held.used).toBeGreaterThan(ada.asked.length * 2_100_000);
    expect(held.used).toBeLessThanOrEqual(6 * MIB);
    expect(stage.link.answerTo(5)).toMatchObject({ error: { message: expect.stringContaining("limits.heldBytes") } });
    ada.asked[0]?.answer({ action: "accept" });
    await settled();
    stage.link.asks("again", undefined, params);
    expect(stage.link.answerTo("again")).toBeUndefined();
    await connection.close();
    expect(held.used).toBe(0);
  });

  it("is counted by its many small values as well [bounded]", async () => {
    const held = new HeldBytes(64 * MIB);
    const connection = connect(undefined, held);
    const ada = new Agent("ada");
    begin(connection, ada);
    const params = { message: "x", requestedSchema: { all: Array.from({ length: 20_000 }, () => ({})) } };
    stage.link.asks(1, undefined, params);
    expect(ada.asked).toHaveLength(1);
    expect(held.used).toBeGreaterThan(3 * JSON.stringify(params).length + 20_000 * 64);
    await connection.close();
    expect(held.used).toBe(0);
  });

  it("ends with the connection, so that the agent need not answer any more", async () => {
    const connection = connect();
    const ada = new Agent("ada");
    begin(connection, ada);
    stage.link.asks(1);
    await connection.close();
    await settled();
    expect(ada.asked[0]?.signal.aborted).toBe(true);
    expect(stage.link.answerTo(1)).toBeUndefined();
  });
});

describe("progress", () => {
  it("of two calls with the same token of their agents reaches each its own", () => {
    const connection = connect();
    const [ada, bob] = [new Agent("ada"), new Agent("bob")];
    const adas = begin(connection, ada, '"token"');
    const bobs = begin(connection, bob, '"token"');
    for (const [{ ticket }, progress] of [
      [bobs, 1],
      [adas, 2],
    ] as const) {
      stage.link.says({
        jsonrpc: "2.0",
        method: "notifications/progress",
        params: { progressToken: ticket.id, progress },
      });
    }
    const heard = (agent: Agent) => agent.heard.map(({ params }) => params);
    expect(heard(ada)).toEqual([{ progressToken: "token", progress: 2 }]);
    expect(heard(bob)).toEqual([{ progressToken: "token", progress: 1 }]);
  });

  it("keeps the agent's token a number or a string, as it was", () => {
    const connection = connect();
    const ada = new Agent("ada");
    for (const token of ["7", '"7"']) {
      const { ticket } = begin(connection, ada, token);
      // Some servers hand the token back as a string.
      const params = { progressToken: String(ticket.id), progress: 1 };
      stage.link.says({ jsonrpc: "2.0", method: "notifications/progress", params });
    }
    expect(ada.heard.map(({ params }) => (params as JsonObject)["progressToken"])).toEqual([7, "7"]);
  });

  it.each([{ token: true }, { token: [1] }, { token: null }, { token: { id: 1 } }, { token: "" }])(
    "with the odd token $token reaches nobody",
    ({ token: progressToken }) => {
      const connection = connect();
      const ada = new Agent("ada");
      begin(connection, ada, "mine");
      stage.link.says({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken, progress: 1 } });
      expect(ada.heard).toEqual([]);
    },
  );

  it("of an agent on a question goes to the server that asked, under that server's token", () => {
    const ada = new Agent("ada");
    const both = [0, 1].map(() => ({ connection: connect(), link: stage.link }));
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

it("a log message while several agents are calling reaches the modern ones that want to hear, once each", () => {
  const connection = connect();
  const [legacy, quiet, loud] = [new Agent("old"), new Agent("quiet"), new Agent("loud")];
  quiet.era = "modern";
  loud.era = "modern";
  loud.logLevel = "info";
  for (const agent of [legacy, quiet, loud, loud]) begin(connection, agent);
  const message = { jsonrpc: "2.0", method: "notifications/message", params: { level: "error", data: "whose?" } };
  stage.link.says(message);
  expect(stage.notified).toMatchObject([{ caller: undefined }]);
  expect([legacy.heard, quiet.heard, loud.heard]).toEqual([[], [], [message]]);
  // What else nobody can tell stays nobody's.
  stage.link.says({ jsonrpc: "2.0", method: "notifications/other" });
  expect(loud.heard).toHaveLength(1);
});

it("a notification that nobody knows is passed on with its caller, if that can be told", () => {
  const connection = connect();
  const ada = new Agent("ada");
  stage.link.says({ jsonrpc: "2.0", method: "notifications/odd" });
  begin(connection, ada);
  stage.link.says({ jsonrpc: "2.0", method: "notifications/odd" });
  begin(connection, new Agent("bob"));
  stage.link.says({ jsonrpc: "2.0", method: "notifications/odd" });
  expect(stage.notified.map(({ caller }) => caller)).toEqual([undefined, ada, undefined]);
});

it("a ping is answered by us, under the id as it was written", () => {
  connect();
  stage.link.says('{"jsonrpc":"2.0","id":"p","method":"ping"}');
  expect(stage.link.answerTo("p")).toEqual({ jsonrpc: "2.0", id: "p", result: {} });
});
