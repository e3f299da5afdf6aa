import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { type Answer, events, json, Peer, plain, Recorder, reply } from "../../../test/fixtures/links/recorder.js";
import type { HttpTarget } from "../../contracts/server-spec.js";
import { openHttpLink } from "./link.js";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function listen(answer: Answer): Promise<Peer> {
  const peer = new Peer(answer);
  await peer.listen();
  cleanups.push(() => peer.close());
  return peer;
}

async function expectQuietEnd(recorder: Recorder, peer: Peer): Promise<void> {
  await recorder.link.close();
  await sleep(50);
  expect(recorder.order).toEqual([]);
  const count = () => new Promise((resolve) => peer.server.getConnections((_error, open) => resolve(open)));
  await expect.poll(count).toBe(0);
}

function make(kind: HttpTarget["kind"], url: string) {
  const recorder = new Recorder();
  const link = openHttpLink({ kind, url, headers: { authorization: "Bearer canary-token" } }, recorder);
  cleanups.push(() => link.close());
  return { recorder, link };
}

async function connect(kind: HttpTarget["kind"], url: string): Promise<Recorder> {
  const { recorder, link } = make(kind, url);
  await recorder.attach(link);
  return recorder;
}

/** An old server: the stream at GET, messages to `/messages`; answers each request with its own method. */
function old(post: (answer: () => void, ...seen: Parameters<Answer>) => void = (answer) => answer()) {
  const state: { stream: ServerResponse | undefined; streams: number } = { stream: undefined, streams: 0 };
  const answer: Answer = (seen, response) => {
    if (seen.method === "GET") {
      state.streams++;
      state.stream = events(response);
      response.write(": hello\r\n\r\nevent: endpoint\r\ndata: /messages?sessionId=s-canary\r\n\r\n");
      return;
    }
    if (seen.path !== "/messages?sessionId=s-canary") {
      response.writeHead(404).end("Cannot POST /mcp");
      return;
    }
    post(
      () => {
        const { id, method } = seen.message;
        const result = method === "initialize" ? { protocolVersion: "2024-11-05", capabilities: {} } : { method };
        if (id !== undefined) state.stream?.write(`event: message\ndata: ${reply(id, result)}\n\n`);
        response.writeHead(202).end("Accepted");
      },
      seen,
      response,
    );
  };
  return { state, answer };
}

describe("the old HTTP+SSE", () => {
  it.each(["sse", "http"] as const)("is spoken by a target of kind %s", async (kind) => {
    const { answer, state } = old();
    const peer = await listen(answer);
    const recorder = await connect(kind, peer.url);
    await recorder.handshake("2024-11-05");
    for (let i = 0; i < 5; i++) {
      const got = await recorder.reply(recorder.request("tools/list"));
      expect(got).toMatchObject({ value: { result: { method: "tools/list" } }, ticket: undefined });
    }
    state.stream?.write('event: ping\ndata: x\n\ndata: {"jsonrpc":"2.0","method":"unasked"}\n\n');
    await recorder.until(() => recorder.order.includes("unasked"));
    expect(recorder.link.describe()).toEqual({ kind: "sse", url: peer.url });
    expect(state.streams).toBe(1);
    expect(new Set(peer.seen.map(({ headers }) => headers.authorization))).toEqual(new Set(["Bearer canary-token"]));
    expect(recorder.failures).toEqual([]);
  });

  it("never sends messages to another origin", async () => {
    let stolen = 0;
    const thief = await listen((_, response) => {
      stolen++;
      response.end();
    });
    const peer = await listen((_, r) => void events(r).write(`event: endpoint\ndata: ${thief.url}\n\n`));
    const { link } = make("sse", peer.url);
    const opening = link.open(new AbortController().signal);
    await expect(opening).rejects.toMatchObject({
      code: "protocol",
      message: expect.stringContaining("another origin"),
    });
    expect(stolen).toBe(0);
  });

  it.each<[string, Answer, string]>([
    ["401", (_, response) => response.writeHead(401).end(), "unauthorized"],
    ["404", (_, response) => response.writeHead(404).end(), "protocol"],
    ["a page", (_, r) => r.writeHead(200, { "content-type": "text/html" }).end("<html>"), "protocol"],
    ["a stream that ends", (_, response) => void events(response).end(), "outcome-unknown"],
    ["a cut", (_, response) => response.socket?.destroy(), "outcome-unknown"],
  ])("says at open() what is wrong: %s", async (_name, answer, code) => {
    const peer = await listen(answer);
    const { link, recorder } = make("sse", peer.url);
    await expect(link.open(new AbortController().signal)).rejects.toMatchObject({ code });
    expect(recorder.order).toEqual([]);
  });

  it("can be given up while it is opened", async () => {
    const peer = await listen((_, response) => void events(response));
    const { link } = make("sse", peer.url);
    const abort = new AbortController();
    const opening = link.open(abort.signal);
    setTimeout(() => abort.abort(), 50);
    await expect(opening).rejects.toMatchObject({ code: "closing" });
  });

  it("fails one call where its POST fails, and all where the stream ends [unknown-is-said]", async () => {
    const { answer, state } = old((accept, seen, response) => {
      if (seen.message.method === "bad") response.writeHead(500).end("oops sessionId=s-canary");
      else if (seen.message.method === "hangs") response.writeHead(202).end();
      else accept();
    });
    const peer = await listen(answer);
    const recorder = await connect("sse", peer.url);
    await recorder.handshake("2024-11-05");
    const bad = await recorder.failure(recorder.request("bad"));
    expect({ code: bad.fault.code, sent: bad.sent }).toEqual({ code: "outcome-unknown", sent: true });
    expect(bad.fault.message).not.toContain("canary");
    await recorder.reply(recorder.request("good"));
    recorder.request("hangs");
    await recorder.until(() => peer.seen.at(-1)?.message.method === "hangs");
    state.stream?.end();
    await recorder.until(() => recorder.closed.length > 0);
    expect(recorder.closed[0]?.code).toBe("outcome-unknown");
  });

  it("ends where the server has forgotten the session; the call may be sent again [restart-unseen]", async () => {
    const { answer } = old((accept, seen, response) => {
      if (seen.message.method === "tools/call") response.writeHead(404).end("Could not find session");
      else accept();
    });
    const recorder = await connect("sse", (await listen(answer)).url);
    await recorder.handshake("2024-11-05");
    const { fault, sent } = await recorder.failure(recorder.request("tools/call"));
    expect({ code: fault.code, sent }).toEqual({ code: "unavailable", sent: false });
    expect(recorder.closed).toHaveLength(1);
  });

  it("is closed by close() with all that is in flight, and nobody is told", async () => {
    const { answer } = old(() => {});
    const peer = await listen(answer);
    const recorder = await connect("sse", peer.url);
    recorder.request("hangs");
    await recorder.until(() => peer.seen.length === 2);
    await expectQuietEnd(recorder, peer);
  });
});

describe("the choice between streamable HTTP and the old HTTP+SSE", () => {
  it.each([400, 404, 405])("tries the old stream after a plain %d to initialize", async (status) => {
    const { answer, state } = old();
    const peer = await listen((seen, response) => {
      if (seen.method === "POST" && seen.path === "/mcp") response.writeHead(status).end("no");
      else answer(seen, response);
    });
    const recorder = await connect("http", peer.url);
    await recorder.handshake("2024-11-05");
    expect(state.streams).toBe(1);
  });

  it.each<[string, Answer]>([
    ["401", (_, response) => response.writeHead(401).end()],
    ["500", (_, response) => response.writeHead(500).end()],
    ["400 in JSON-RPC", (_, r) => json(r, { jsonrpc: "2.0", id: null, error: { code: -32000, message: "no" } }, 400)],
    ["a cut", (_, response) => response.socket?.destroy()],
  ])("does not try it after %s", async (_name, answer) => {
    const peer = await listen(answer);
    const recorder = await connect("http", peer.url);
    await recorder.failure(recorder.request("initialize"));
    await sleep(100);
    expect(peer.seen.map(({ method }) => method)).toEqual(["POST"]);
  });

  it("is not made again after later refusals", async () => {
    const peer = await listen(plain((_, response) => response.writeHead(405).end()));
    const recorder = await connect("http", peer.url);
    await recorder.handshake();
    await recorder.failure(recorder.request("tools/list"));
    expect(recorder.link.describe().kind).toBe("http");
  });

  it("tells both reasons where the server speaks neither", async () => {
    const peer = await listen((_, response) => response.writeHead(404).end("Nothing here"));
    const recorder = await connect("http", peer.url);
    const { fault, sent } = await recorder.failure(recorder.request("initialize"));
    expect({ code: fault.code, sent, data: fault.data }).toEqual({
      code: "protocol",
      sent: false,
      data: { fault: "protocol", status: 404 },
    });
    expect(fault.message).toMatch(/does not exist.*old HTTP\+SSE kind.*Check the path/);
  });

  it("ends with close()", async () => {
    const peer = await listen(({ method }, response) => {
      if (method === "POST") response.writeHead(405).end();
      else events(response);
    });
    const recorder = await connect("http", peer.url);
    recorder.request("initialize");
    await recorder.until(() => peer.seen.length === 2);
    await expectQuietEnd(recorder, peer);
  });
});
