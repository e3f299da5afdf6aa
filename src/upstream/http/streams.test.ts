import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { type Answer, events, json, linked, plain, reply } from "../../../test/fixtures/links/recorder.js";
import { reconnectDelay } from "./get-stream.js";
import { StreamableLink } from "./streamable.js";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const start = (answer: Answer) =>
  linked(cleanups, answer, (url, recorder) => new StreamableLink({ kind: "http", url, headers: {} }, recorder));

/** POSTs as in plain(), GETs as told. */
function withGet(call: Answer, get: Answer): Answer {
  const posts = plain(call);
  return (seen, response) => (seen.method === "GET" ? get : posts)(seen, response);
}

const note = (name: string) => `{"jsonrpc":"2.0","method":"${name}"}`;

describe("a stream that ends before the reply", () => {
  it("is resumed from its last event, after the server's own delay, as often as it takes", async () => {
    let polls = 0;
    const endedAt: number[] = [];
    const { peer, recorder } = await start(
      withGet(
        (_seen, response) => {
          events(response).end("id: a/0\nretry: 300\ndata:\n\n", () => endedAt.push(performance.now()));
        },
        (_seen, response) => {
          polls++;
          expect(performance.now() - (endedAt.at(-1) ?? 0)).toBeGreaterThanOrEqual(290);
          events(response);
          if (polls === 1) response.write(`id: a/1\ndata: ${note("notifications/progress")}\n\n`);
          if (polls === 3) response.write(`id: a/2\ndata: ${reply(1, "late")}\n\n`);
          response.end(() => endedAt.push(performance.now()));
        },
      ),
    );
    const id = recorder.request("tools/call");
    expect((await recorder.reply(id)).value.result).toBe("late");
    expect(recorder.messages.map(({ ticket }) => ticket)).toEqual([id, id]);
    const gets = peer.seen.filter(({ method }) => method === "GET");
    expect(gets.map(({ headers }) => headers["last-event-id"])).toEqual(["a/0", "a/1", "a/1"]);
    expect(peer.seen.filter(({ method }) => method === "POST")).toHaveLength(1);
  });

  it("is resumed after a cut too, and while the server is away for a moment", async () => {
    let tries = 0;
    const { recorder } = await start(
      withGet(
        (_seen, r) => void events(r).write("id: 1\nretry: 50\ndata:\n\n", () => r.socket?.resetAndDestroy()),
        (_seen, response) => {
          tries++;
          if (tries === 1) response.socket?.destroy();
          else if (tries === 2) response.writeHead(503).end();
          else events(response).end(`data: ${reply(1)}\n\n`);
        },
      ),
    );
    await recorder.reply(recorder.request("tools/call"));
    expect(tries).toBe(3);
  });

  it.each<[string, Answer]>([
    ["405", (_, response) => response.writeHead(405).end()],
    ["JSON", (_, response) => json(response, {})],
    ["nothing but cuts", (_, response) => response.socket?.destroy()],
  ])(
    "and cannot be resumed (%s) leaves the outcome unknown and the link alive [unknown-is-said]",
    async (_name, get) => {
      const { recorder } = await start(withGet((_, r) => void events(r).end("id: 1\nretry: 20\ndata:\n\n"), get));
      const { fault, sent } = await recorder.failure(recorder.request("tools/call"));
      expect({ code: fault.code, sent }).toEqual({ code: "outcome-unknown", sent: true });
      expect(recorder.closed).toEqual([]);
    },
  );

  it("and whose session is gone by then leaves the outcome unknown and ends the link [unknown-is-said]", async () => {
    const { recorder } = await start(
      withGet(
        (_, response) => void events(response).end("id: 1\nretry: 20\ndata:\n\n"),
        (_, response) => response.writeHead(404).end(),
      ),
    );
    await recorder.reply(recorder.request("initialize"));
    const { fault, sent } = await recorder.failure(recorder.request("tools/call"));
    expect({ code: fault.code, sent }).toEqual({ code: "outcome-unknown", sent: true });
    await recorder.until(() => recorder.closed.length === 1);
  });

  it("and is forgotten is not resumed", async () => {
    const { peer, recorder } = await start(
      withGet(
        (_, response) => void events(response).end("id: 1\nretry: 1500\ndata:\n\n"),
        (_, response) => void events(response),
      ),
    );
    const id = recorder.request("tools/call");
    await recorder.until(() => peer.seen.length === 1);
    // The end is seen by then, and its delay has not passed: a loop that hangs for so long would be another fault.
    await sleep(100);
    recorder.forget(id);
    await sleep(2_000);
    expect(peer.seen).toHaveLength(1);
    expect(recorder.order).toEqual([]);
  });
});

it("a stream that stays open after the reply is cut in the end", async () => {
  let closed = false;
  const { recorder } = await start(
    plain(({ message }, response) => {
      response.on("close", () => {
        closed = true;
      });
      events(response).write(`data: ${reply(message.id)}\n\n`);
    }),
  );
  await recorder.reply(recorder.request("tools/call"));
  expect(closed).toBe(false);
  await expect.poll(() => closed).toBe(true);
  expect(recorder.failures).toEqual([]);
});

describe("the GET stream", () => {
  it("brings messages without a ticket, and is taken up again where it ended", async () => {
    const streams: ServerResponse[] = [];
    const { peer, recorder } = await start(
      withGet(
        () => {},
        (_seen, response) => {
          streams.push(response);
          events(response).write(`id: ${streams.length}\nretry: 100\ndata: ${note(`n${streams.length}`)}\n\n`);
          if (streams.length === 1) response.end();
          if (streams.length === 2) setTimeout(() => response.socket?.resetAndDestroy(), 20);
        },
      ),
    );
    await recorder.handshake();
    await recorder.until(() => recorder.order.includes("n3"));
    expect(recorder.messages.filter(({ value }) => value.method !== undefined).map(({ ticket }) => ticket)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    const gets = peer.seen.filter(({ method }) => method === "GET");
    expect(gets.map(({ headers }) => headers["last-event-id"])).toEqual([undefined, "1", "2"]);
    expect(gets.map(({ headers }) => headers["mcp-session-id"])).toEqual(["s-1", "s-1", "s-1"]);
    expect(gets[0]?.headers).toMatchObject({ accept: "text/event-stream", "mcp-protocol-version": "2025-11-25" });
  });

  it("is not asked for again where it is refused, and nothing ends", async () => {
    const refusals: [string, Answer][] = [
      ["405", (_, response) => response.writeHead(405).end()],
      ["401", (_, response) => response.writeHead(401).end()],
      ["400", (_, response) => response.writeHead(400).end()],
      ["a page", (_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>")],
      ["404 from a server without that route", (_, response) => response.writeHead(404).end("Cannot GET /mcp")],
      ["a redirect elsewhere", (_, response) => response.writeHead(302, { location: "http://other.example/" }).end()],
    ];
    const answer: Answer = ({ message }, response) => json(response, { jsonrpc: "2.0", id: message.id, result: {} });
    const outcomes = refusals.map(async ([name, get]) => {
      const { peer, recorder } = await start(withGet(answer, get));
      await recorder.handshake();
      await sleep(1_500);
      await recorder.reply(recorder.request("tools/list"));
      const gets = peer.seen.filter(({ method }) => method === "GET").length;
      return { name, gets, closed: recorder.closed.length };
    });
    expect(await Promise.all(outcomes)).toEqual(refusals.map(([name]) => ({ name, gets: 1, closed: 0 })));
  });

  it("tells that the session is gone, also when nobody calls [restart-unseen]", async () => {
    let gets = 0;
    const { recorder } = await start(
      withGet(
        () => {},
        (_, response) => {
          if (++gets === 1) events(response).end("retry: 50\n\n");
          else response.writeHead(404).end();
        },
      ),
    );
    await recorder.handshake();
    await recorder.until(() => recorder.closed.length > 0);
    expect(recorder.closed[0]?.code).toBe("unavailable");
  });

  it("is opened ever less often while it fails, and never without a pause", () => {
    expect(reconnectDelay(0, undefined, 0)).toBe(1_000);
    expect(reconnectDelay(0, 500, 0)).toBe(500);
    expect(reconnectDelay(0, 0, 0)).toBe(100);
    expect(reconnectDelay(3, undefined, 0)).toBe(8_000);
    expect(reconnectDelay(50, undefined, 1)).toBe(72_000);
    expect(reconnectDelay(0, 600_000, 0)).toBe(600_000);
  });

  it("that ends at once each time is not asked for in a loop [bounded]", async () => {
    const { peer, recorder } = await start(
      withGet(
        () => {},
        (_, response) => void events(response).end(),
      ),
    );
    await recorder.handshake();
    await sleep(2_500);
    expect(peer.seen.filter(({ method }) => method === "GET").length).toBeLessThanOrEqual(3);
  });
});
