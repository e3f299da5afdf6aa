// That every call is answered once, whatever the server says or does not say, with a link that is played.

import { Readable } from "node:stream";
import { beforeEach, describe, expect, it } from "vitest";
import { Agent, begin, clearStage, connect, stage, TestCall } from "../../../test/fixtures/links/played.js";
import { Fault } from "../../protocol/errors.js";
import type { Ticket } from "../link/link.js";

beforeEach(clearStage);

/** A JSON value each that is over one of the bounds. */
const EXCESSES: readonly [what: string, json: string][] = [
  ["many bytes", `"${"x".repeat(3 * 1024 * 1024)}"`],
  ["many values", `[${"1,".repeat(200_000)}1]`],
  ["many names", `{${Array.from({ length: 25_000 }, (_, n) => `"name ${n}":1`).join(",")}}`],
  ["many levels", `${"[".repeat(200_000)}${"]".repeat(200_000)}`],
  ["many levels in a short text", `${"[".repeat(200)}${"]".repeat(200)}`],
];

describe("what a server says of its own accord", () => {
  it("is dropped and counted where it is too much to be parsed, on a pipe and on an exchange [bounded]", async () => {
    const connection = connect();
    const agent = new Agent("ada");
    const call = begin(connection, agent);
    for (const [what, says] of EXCESSES) {
      const message = `{"jsonrpc":"2.0","method":"notifications/message","params":{"x":${says}}}`;
      for (const ticket of [undefined, call.ticket]) {
        stage.link.says(message, ticket);
        stage.link.events.onPieces([Buffer.from(message.slice(0, 50)), Buffer.from(message.slice(50))], ticket);
        stage.link.says(`[${message}]`, ticket);
      }
      expect(stage.noise.sample, what).toMatch(
        /^A message was dropped, because it (has|is) .*It begins with \[?\{"json/,
      );
    }
    expect([stage.notified, stage.noise.count, call.replies]).toEqual([[], 6 * EXCESSES.length, []]);
    stage.link.answers(call.ticket.id);
    expect(await call.answer()).toHaveProperty("result");
  });

  it("is answered where it is a question that is too much to be parsed: its server does not wait [bounded]", () => {
    const connection = connect();
    begin(connection, new Agent("ada"));
    for (const [n, [what, says]] of EXCESSES.entries()) {
      stage.link.says(`{"jsonrpc":"2.0","id":"a${n}","method":"sampling/createMessage","params":{"x":${says}}}`);
      stage.link.says(`{"method":"sampling/createMessage","params":{"x":${says}},"jsonrpc":"2.0","id":${1000 + n}}`);
      for (const id of [`a${n}`, 1000 + n]) {
        const message = expect.stringMatching(/^Toolway did not read this request: it (has|is) /) as string;
        expect(stage.link.answerTo(id), what).toMatchObject({ error: { message } });
      }
    }
  });

  it("is passed on where it is large within the bounds", () => {
    const connection = connect();
    const agent = new Agent("ada");
    const call = begin(connection, agent);
    const says = `[${Array.from({ length: 100_000 }, (_, n) => n).join(",")}]`;
    stage.link.says(`{"jsonrpc":"2.0","method":"notifications/message","params":{"x":${says}}}`, call.ticket);
    expect([stage.notified.length, stage.noise.count]).toEqual([1, 0]);
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
      stage.link.says(shape(call.ticket.id));
      stage.link.says(shape(call.ticket.id));
      expect(await call.answer()).toMatchObject({ id: "mine", result: { ü: 1 } });
    }
    expect(connection.inFlight).toBe(0);
  });

  it("in a batch are read one by one: one that cannot be read costs no other", async () => {
    const connection = connect();
    const [first, second] = [begin(connection, new Agent("ada")), begin(connection, new Agent("ada"))];
    const good = ({ ticket }: { ticket: Ticket }) => `{"jsonrpc":"2.0","id":${ticket.id},"result":{}}`;
    stage.link.says(`[${good(first)}, 7, {"jsonrpc":"2.0"}, ${good(second)}]`);
    expect(await first.answer()).toHaveProperty("result");
    expect(await second.answer()).toHaveProperty("result");
  });

  it("in an endless batch do not fill the memory", () => {
    connect();
    stage.link.says(`[${",".repeat(5_000_000)}]`);
  });

  it("with their id where nobody looks fail their call where they are too much to be parsed [bounded]", async () => {
    const connection = connect();
    for (const [what, says] of EXCESSES) {
      const [call, other] = [begin(connection, new Agent("ada")), begin(connection, new Agent("bob"))];
      stage.link.says(`{"id":${call.ticket.id},"x":${says},"jsonrpc":"2.0","result":{}}`);
      expect(await call.answer(), what).toMatchObject({
        error: { code: -31005, message: expect.stringMatching(/answered with a reply that (has|is) .*not passed on/) },
      });
      stage.link.answers(other.ticket.id);
      expect(await other.answer(), what).toHaveProperty("result");
    }
    expect(stage.noise.count).toBe(EXCESSES.length);
  });

  it.each([
    [
      "before its result",
      (id: number, more: string) => `{"jsonrpc":"2.0","id":${id},"method":"ping","result":${more}}`,
    ],
    ["before its error", (id: number, more: string) => `{"jsonrpc":"2.0","id":${id},"method":"ping","error":${more}}`],
    ["behind its result", (id: number, more: string) => `{"jsonrpc":"2.0","id":${id},"result":${more},"method":"x"}`],
    ["in capitals", (id: number, more: string) => `{"jsonrpc":"2.0","id":${id},"METHOD":"ping","result":${more}}`],
    [
      "beside a result in capitals",
      (id: number, more: string) => `{"jsonrpc":"2.0","id":${id},"method":"x","RESULT":${more}}`,
    ],
    ["that is no text", (id: number, more: string) => `{"jsonrpc":"2.0","id":${id},"method":7,"result":${more}}`],
    [
      "far from their id",
      (id: number, more: string) => `{"method":"ping","result":${more},"jsonrpc":"2.0","id":${id}}`,
    ],
  ])("that are requests too, with a method %s, fail their call at once and no other", async (_what, text) => {
    const connection = connect();
    for (const bytes of [0, 10_000, 4_000_000]) {
      const [call, other] = [begin(connection, new Agent("ada")), begin(connection, new Agent("bob"))];
      const more = `{"text":"${"x".repeat(bytes)}"}`;
      stage.link.says(text(call.ticket.id, more));
      expect(await call.answer()).toMatchObject({ error: { code: -31005 } });
      expect([other.replies, stage.notified]).toEqual([[], []]);
      stage.link.answers(other.ticket.id);
      expect(await other.answer()).toHaveProperty("result");
    }
  });

  it("to a call are not seen in a request that has its id and no answer", async () => {
    const connection = connect();
    const call = begin(connection, new Agent("ada"));
    stage.link.says(`{"jsonrpc":"2.0","id":${call.ticket.id},"method":"ping","params":{"result":{}}}`);
    stage.link.says(`{"jsonrpc":"2.0","id":${call.ticket.id},"method":7}`);
    stage.link.says(`{"jsonrpc":"2.0","id":${call.ticket.id},"method":"ping","METHOD":"ping"}`);
    expect(call.replies).toEqual([]);
    stage.link.answers(call.ticket.id);
    expect(await call.answer()).toHaveProperty("result");
  });

  it("that stream with the id of another call answer neither [crossed-never]", async () => {
    const connection = connect();
    const [asked, other] = [begin(connection, new Agent("ada")), begin(connection, new Agent("bob"))];
    const head = Buffer.from(`{"jsonrpc":"2.0","id":${other.ticket.id},"result":{"text":"${"x".repeat(200)}`);
    const rest = Readable.from([Buffer.from('"}}')]);
    connection.onLargeReply(asked.ticket, head, rest, undefined);
    expect(await asked.answer()).toMatchObject({
      error: { code: -31005, message: expect.stringContaining("has the id of another call") },
    });
    expect([other.replies, rest.destroyed]).toEqual([[], true]);
  });

  it("that are not JSON fail their call at once", async () => {
    const connection = connect();
    const call = begin(connection, new Agent("ada"));
    stage.link.says(`{"jsonrpc":"2.0","id":${call.ticket.id},"result":{oops}}`);
    expect(await call.answer()).toMatchObject({ error: { code: -31005 } });
  });

  it.each([
    ["the id first", (id: number) => `{"id":${id},"result":{}}`],
    ["the id last", (id: number) => `{"result":{},"id":${id}}`],
    ["another version", (id: number) => `{"jsonrpc":"1.0","id":${id},"result":{}}`],
    ["a long result", (id: number) => `{"result":{"x":"${"x".repeat(10_000)}"},"id":${id}}`],
    ["neither result nor error", (id: number) => `{"jsonrpc":"2.0","id":${id}}`],
  ])("without the version of JSON-RPC, or an answer, fail their call at once: %s", async (_what, text) => {
    const connection = connect();
    const [call, other] = [begin(connection, new Agent("ada")), begin(connection, new Agent("bob"))];
    stage.link.says(text(call.ticket.id));
    expect(await call.answer()).toMatchObject({
      error: { code: -31005, message: expect.stringContaining("jsonrpc") as string },
    });
    expect([other.replies, connection.inFlight]).toEqual([[], 1]);
  });

  it("are made for all that is in flight when the connection ends, and for what comes after", async () => {
    const connection = connect();
    const calls = [begin(connection, new Agent("ada")), begin(connection, new Agent("bob"))];
    const own = begin(connection, undefined);
    stage.link.events.onClosed(new Fault("outcome-unknown", "It died."));
    stage.link.events.onClosed(new Fault("outcome-unknown", "It died twice."));
    await connection.close();
    for (const call of calls) {
      expect(await call.answer()).toMatchObject({ error: { code: -31003, message: expect.stringContaining("died") } });
    }
    expect(await own.answer()).toHaveProperty("error");
    const late = new TestCall(new Agent("ada"));
    connection.send(late);
    expect(stage.unsent).toEqual([late]);
    expect(connection.inFlight).toBe(0);
  });

  it("are not made twice for a call that is cancelled as it is answered", async () => {
    const connection = connect();
    const call = begin(connection, new Agent("ada"));
    connection.cancel(call, "no more");
    connection.cancel(call, "no more");
    stage.link.answers(call.ticket.id);
    expect(await call.answer()).toMatchObject({ error: { code: -31008 } });
    const cancelled = stage.link.sent.filter(({ method }) => method === "notifications/cancelled");
    expect(cancelled).toEqual([expect.objectContaining({ params: { requestId: call.ticket.id, reason: "no more" } })]);
  });
});
