import { afterEach, describe, expect, it } from "vitest";
import { type Answer, json, linked, plain, rpcError } from "../../../test/fixtures/links/recorder.js";
import { LOST_SESSION_PHRASES } from "./lost-session.js";
import { StreamableLink } from "./streamable.js";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const start = (answer: Answer) =>
  linked(cleanups, answer, (url, recorder) => new StreamableLink({ kind: "http", url, headers: {} }, recorder));

describe("right after the handshake", () => {
  it("nothing overtakes notifications/initialized, and all else follows at once", async () => {
    const order: (string | undefined)[] = [];
    const posts = plain(({ message }, response) => json(response, { jsonrpc: "2.0", id: message.id, result: {} }));
    const { peer, recorder } = await start((seen, response) => {
      if (seen.message.method !== "notifications/initialized") posts(seen, response);
      else setTimeout(() => response.writeHead(202).end(() => order.push("taken")), 150);
    });
    await recorder.handshake();
    const ids = [recorder.request("a"), recorder.request("b")];
    const dropped = recorder.request("dropped");
    recorder.forget(dropped);
    for (const id of ids) await recorder.reply(id);
    expect(order).toEqual(["taken"]);
    const asked = peer.seen.map(({ method, message }) => message.method ?? method);
    expect(asked.slice(0, 2)).toEqual(["initialize", "notifications/initialized"]);
    expect(new Set(asked.slice(2))).toEqual(new Set(["GET", "a", "b"]));
  });

  it("calls wait for the answer to the GET stream, on which a server may ask within them [told-truly]", async () => {
    const order: string[] = [];
    const posts = plain(({ message }, response) => {
      order.push(String(message.method));
      json(response, { jsonrpc: "2.0", id: message.id, result: {} });
    });
    const { recorder } = await start((seen, response) => {
      if (seen.method !== "GET") posts(seen, response);
      else {
        setTimeout(() => {
          order.push("listening");
          response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
        }, 100);
      }
    });
    await recorder.handshake();
    await recorder.reply(recorder.request("a"));
    expect(order.slice(-2)).toEqual(["listening", "a"]);
  });

  it("a GET stream that is never answered holds up nothing for long [bounded]", async () => {
    const posts = plain(({ message }, response) => json(response, { jsonrpc: "2.0", id: message.id, result: {} }));
    const { recorder } = await start((seen, response) => {
      if (seen.method !== "GET") posts(seen, response);
    });
    await recorder.handshake();
    await recorder.reply(recorder.request("a"));
  });

  it("what waits for it may be sent again where the session is gone by then", async () => {
    const posts = plain(() => {});
    const { recorder } = await start((seen, response) => {
      if (seen.message.method === "initialize") posts(seen, response);
      else response.writeHead(404).end();
    });
    await recorder.handshake();
    const { fault, sent } = await recorder.failure(recorder.request("a"));
    expect({ code: fault.code, sent }).toEqual({ code: "unavailable", sent: false });
    expect(recorder.order.at(-1)).toBe("closed unavailable");
  });
});

describe("a session that the server has forgotten", () => {
  const gone = { jsonrpc: "2.0", id: null, error: { code: -32001, message: "Session not found" } };
  it.each<[string, Answer]>([
    ["404", (_, r) => r.writeHead(404).end("no")],
    ["404 in JSON-RPC", (_, r) => json(r, gone, 404)],
    ["404 with our id", ({ message }, r) => json(r, { ...gone, id: message.id }, 404)],
    ["400 with the code that SDKs have for it", (_, r) => json(r, rpcError(null, -32001, "Sitzung unbekannt"), 400)],
    [
      "400, with words of the server's own behind an SDK's",
      (_, r) =>
        json(r, rpcError(null, -32000, "Bad Request: No valid session ID provided. Send initialize first."), 400),
    ],
    ...LOST_SESSION_PHRASES.flatMap(({ sdk, versions, status, says }): [string, Answer][] => [
      [`${sdk} ${versions}: "${says}", in JSON-RPC`, (_, r) => json(r, rpcError(null, -32000, says), status)],
      [`${sdk} ${versions}: "${says}", as text`, (_, r) => r.writeHead(status).end(`${says}\n`)],
    ]),
  ])("%s: all that was refused may be sent again, then the link ends [restart-unseen]", async (_name, answer) => {
    const { peer, recorder } = await start(plain(answer));
    await recorder.handshake();
    const ids = Array.from({ length: 10 }, () => recorder.request("tools/call"));
    await recorder.until(() => recorder.closed.length > 0);
    expect(recorder.failures.map(({ id }) => id).sort((a, b) => a - b)).toEqual(ids);
    expect(recorder.failures.every(({ sent, fault }) => !sent && fault.code === "unavailable")).toBe(true);
    expect(recorder.order.at(-1)).toBe("closed unavailable");
    await recorder.link.close();
    expect(peer.seen.some(({ method }) => method === "DELETE")).toBe(false);
    expect(recorder.closed).toHaveLength(1);
  });

  it("does not take a call with it that is answered in time", async () => {
    const { recorder } = await start(
      plain(({ message }, response) => {
        if (message.method !== "slow") response.writeHead(404).end();
        else setTimeout(() => json(response, { jsonrpc: "2.0", id: message.id, result: {} }), 200);
      }),
    );
    await recorder.handshake();
    const slow = recorder.request("slow");
    const refused = recorder.request("quick");
    await recorder.reply(slow);
    await recorder.until(() => recorder.closed.length > 0);
    expect(recorder.failures.map(({ id, sent }) => ({ id, sent }))).toEqual([{ id: refused, sent: false }]);
  });

  it("is not seen in a tool's own words, nor where there is no session", async () => {
    const words = plain(({ message }, r) => json(r, rpcError(message.id, -32000, "Session not found"), 400));
    const tool = await start(words);
    await tool.recorder.handshake();
    await tool.recorder.reply(tool.recorder.request("tools/call"));
    for (const [status, said] of [
      [401, "Invalid session ID"],
      [400, "Unauthorized: Session not found"],
      [400, "Invalid session IDs are refused"],
      [400, "The session not found"],
      [500, "Invalid session ID"],
    ] as const) {
      const other = await start(plain((_, response) => response.writeHead(status).end(said)));
      await other.recorder.handshake();
      await other.recorder.failure(other.recorder.request("tools/call"));
      expect(other.recorder.closed, said).toEqual([]);
    }
    const stateless = await start((_, response) => response.writeHead(404).end());
    const { fault, sent } = await stateless.recorder.failure(stateless.recorder.request("initialize"));
    expect({ code: fault.code, sent }).toEqual({ code: "protocol", sent: false });
    expect(fault.data).toEqual({ fault: "protocol", status: 404 });
    expect([...tool.recorder.closed, ...stateless.recorder.closed]).toEqual([]);
  });
});
