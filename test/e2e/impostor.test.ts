// A server whose replies name another call's id, a method, or nothing that can be read: it harms its own calls and no
// others, whatever the size of the reply, over stdio and HTTP, for agents over HTTP and stdio.

import { beforeAll, describe, expect, it } from "vitest";
import { connectStdioV1, connectV1, connectV2, waitForTools } from "./clients.js";
import { modernRequest } from "./eras.js";
import { type Gateway, type ServerEntry, startGateway, startHttpFixture, stdioFixture } from "./harness.js";
import { INITIALIZED, initialize, openHttpWire, openStdioWire, type Wire, type WireAnswer } from "./wire.js";

const KIB = 1024;
/** Parsed; held in one buffer; held in pieces; streamed, where the transport does that. */
const STREAMED = 3 * KIB * KIB;
const SIZES = [0, 20 * KIB, 300 * KIB, STREAMED];
/** The code of a server's fault, and that of one whose breaker is open. */
const REFUSED = /"code":-310\d\d/;

const gateways = new Map<string, Gateway>();

beforeAll(async () => {
  const http = (await startHttpFixture("impostor")).entry;
  for (const [kind, impostor] of [
    ["stdio", stdioFixture("impostor")],
    ["http", http],
  ] as [string, ServerEntry][]) {
    const patient = { ...impostor, breaker: { failures: 1000 } };
    const gateway = await startGateway({ mcpServers: { impostor: patient, slow: stdioFixture("slow") } });
    gateways.set(kind, gateway);
    await waitForTools(await connectV1(gateway.url), "forge", "sleep");
  }
});

const call = (id: number, tool: string, args: object) =>
  JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name: tool, arguments: args } });

/** A cut connection is a refusal too: a reply that was judged too late for words is never ended well. */
async function outcome(sent: Promise<WireAnswer>): Promise<string> {
  try {
    return (await sent).messages.join("\n");
  } catch {
    return '"code":-31000 (cut off)';
  }
}

/** One agent calls both servers; the impostor knows the id of the other call. */
async function betweenTwo(wire: Wire, answer: string, bytes: number): Promise<void> {
  const honest = wire.send(call(7, "sleep", { ms: 300, label: "mine" }));
  const forged = await outcome(wire.send(call(8, "forge", { answer, bytes })));
  const text = (await honest).messages.join("\n");
  expect(text).toContain("mine");
  expect(text).not.toContain("forged");
  expect(forged.slice(0, 400)).toMatch(REFUSED);
}

const AGAIN = [
  '"result":FILLER,"id":7',
  '"result":FILLER,"\\u0069d":7',
  '"result":FILLER , "i\\u0064" :7',
  '"result":FILLER,"ID":7',
];

describe.each(["stdio", "http"])("an impostor over %s", (kind) => {
  describe.each(SIZES)("with %i bytes", (bytes) => {
    it.each(AGAIN)("cannot answer another server's call by %s [crossed-never] [one-bad-server]", async (answer) => {
      const gateway = gateways.get(kind) as Gateway;
      await betweenTwo(await openHttpWire(gateway.url), answer, bytes);
      // On a pipe, a reply that streams and is cut off leaves a line that nobody can read; the SDK passes over it.
      if (kind === "http" && bytes >= STREAMED) return;
      const pipe = await openStdioWire(gateway);
      await betweenTwo(pipe, answer, bytes);
      await pipe.close();
    });

    it.each([
      '"result":FILLER,"method":"ping"',
      '"method":"ping","result":FILLER',
      '"method":"notifications/message","error":FILLER',
    ])("cannot make a request of a reply by %s, and its call is told at once [crossed-never]", async (answer) => {
      const wire = await openHttpWire((gateways.get(kind) as Gateway).url);
      const forged = await outcome(wire.send(call(8, "forge", { answer, bytes })));
      expect(forged.slice(0, 400)).toMatch(REFUSED);
      expect(forged).not.toContain("forged lorem ipsum");
    });
  });

  it("cannot answer a call well and break it off then, by white space behind a reply that streams", async () => {
    const client = await connectStdioV1(gateways.get(kind) as Gateway);
    const answer = `"result":FILLER}${" ".repeat(140_000)},"id":7`;
    await expect(client.callTool({ name: "forge", arguments: { answer, bytes: STREAMED } })).rejects.toThrow();
  });

  it("cannot answer another server's call on a pipe by a reply that streams [crossed-never]", async () => {
    const client = await connectStdioV1(gateways.get(kind) as Gateway);
    const ids = Array.from({ length: 12 }, (_, id) => `,"id":${id}`).join("");
    const honest = client.callTool({ name: "sleep", arguments: { ms: 300, label: "mine" } });
    const forge = client.callTool({ name: "forge", arguments: { answer: `"result":FILLER${ids}`, bytes: STREAMED } });
    await expect(forge).rejects.toThrow();
    expect(JSON.stringify(await honest)).toContain("mine");
  });

  it("fails its own calls alone with the SDKs' clients, and says what was wrong [crossed-never]", async () => {
    const gateway = gateways.get(kind) as Gateway;
    const clients = [await connectV1(gateway.url), await connectV2(gateway.url), await connectStdioV1(gateway)];
    for (const client of clients) {
      // The SDKs count their ids from 0: the next call has one of these.
      const ids = Array.from({ length: 12 }, (_, id) => `,"id":${id}`).join("");
      const honest = client.callTool({ name: "sleep", arguments: { ms: 300, label: "mine" } });
      const forge = client.callTool({ name: "forge", arguments: { answer: `"result":FILLER${ids}` } });
      await expect(forge).rejects.toThrow(/impostor.*"id"/);
      expect(JSON.stringify(await honest)).toContain("mine");
    }
  });

  it.each([
    ['"result":{},"error":{"code":1,"message":"m"}', /result.*error/],
    ['"result":{},"result":{}', /result.*error/],
    ['"result":"str"', /no object/],
    ['"error":"boom"', /code and a message/],
    ['"error":null', /code and a message/],
  ])("cannot pass %s for an answer", async (answer, why) => {
    const wire = await openHttpWire((gateways.get(kind) as Gateway).url);
    expect(await outcome(wire.send(call(8, "forge", { answer })))).toMatch(why);
  });
});

/** What would be an event or a line of its own, if a raw line end in a string came through as it is. */
const FORGED = [
  '\r\rdata: {"jsonrpc":"2.0","id":7,"result":{}}\r\r',
  '\r\rid: 9\revent: message\rdata: {\\"id\\":7}\r\r',
  "\rdata: 7\r\r",
];
/** On a pipe they end the server's own line. */
const FORGED_OVER_HTTP = [
  ...FORGED,
  '\n\ndata: {"jsonrpc":"2.0","id":7,"result":{}}\n\n',
  '\r\n\r\ndata: {\\"id\\":7}\r\n\r\n{\\"jsonrpc\\":\\"2.0\\",\\"id\\":7,\\"result\\":{}}\r\n',
  "\n7\n[]\n",
];

/** The messages in an event stream by the rules of its format, where a lone CR ends a line as LF does. */
function messagesIn(body: string): string[] {
  const data = body
    .split(/\r\n|\r|\n/)
    .flatMap((line) => (line.startsWith("data:") ? [line.slice("data:".length)] : []));
  // An event without any is one that says only where to begin again.
  return data.filter((message) => message.trim() !== "");
}

async function bodyOf(url: string, text: string, headers: Record<string, string>): Promise<string> {
  const all = { "content-type": "application/json", ...headers };
  return await (await fetch(url, { method: "POST", headers: all, body: text })).text();
}

/** What an agent of the old HTTP+SSE is sent, until a reply of so many bytes has come. */
async function overOldSse({ origin }: Gateway, text: string, bytes: number): Promise<string> {
  const left = new AbortController();
  const stream = await fetch(`${origin}/sse`, { headers: EVENTS, signal: left.signal });
  let body = "";
  let sent = false;
  for await (const chunk of (stream.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
    body += chunk;
    const address = /^data: (\/messages\S+)$/m.exec(body)?.[1];
    if (!sent && address !== undefined) {
      sent = true;
      const headers = { "content-type": "application/json" };
      for (const message of [initialize("0", "2024-11-05"), INITIALIZED, text]) {
        await fetch(origin + address, { method: "POST", headers, body: message });
      }
    }
    if (body.length > bytes && body.endsWith("\n\n")) break;
  }
  left.abort();
  return body;
}

const EVENTS = { accept: "text/event-stream" };

describe.each(["stdio", "http"])("a line end in a string of a server over %s", (kind) => {
  const forgeries = (kind === "http" ? FORGED_OVER_HTTP : FORGED).map((raw) => [JSON.stringify(raw), raw] as const);

  describe.each(SIZES.filter((bytes) => bytes > 0))("in a result of %i bytes", (bytes) => {
    it.each(forgeries)("makes no event of %s for agents of either era [crossed-never]", async (_shown, raw) => {
      const gateway = gateways.get(kind) as Gateway;
      const args = { answer: '"result":FILLER', bytes, raw };
      const legacy = await openHttpWire(gateway.url);
      const modern = modernRequest({ method: "tools/call", params: { name: "forge", arguments: args }, id: 8 });
      const bodies = await Promise.all([
        bodyOf(gateway.url, call(8, "forge", args), { ...legacy.headers, ...EVENTS }),
        bodyOf(gateway.url, modern.text, { ...modern.headers, ...EVENTS }),
        overOldSse(gateway, call(8, "forge", args), bytes),
      ]);
      const before = [0, 0, 2];
      for (const [i, body] of bodies.entries()) {
        const messages = messagesIn(body).slice(before[i]);
        expect(messages.map((message) => message.slice(0, 200))).toEqual([expect.stringContaining("forged")]);
        expect(messages[0]?.length).toBeGreaterThan(bytes);
        expect(body.includes("\r")).toBe(false);
      }
    });

    it("makes no line for agents of either era on a pipe [crossed-never]", async () => {
      const pipe = await openStdioWire(gateways.get(kind) as Gateway);
      // With plain quotes in it no reader would take the line for JSON.
      for (const [, raw] of forgeries.filter(([, text]) => !/(?<!\\)"/.test(text))) {
        const args = { answer: '"result":FILLER', bytes, raw };
        const modern = modernRequest({ method: "tools/call", params: { name: "forge", arguments: args }, id: 9 });
        for (const text of [call(8, "forge", args), modern.text]) {
          const { messages } = await pipe.send(text);
          expect(messages.map((message) => message.slice(0, 200))).toEqual([expect.stringContaining("forged")]);
          expect(messages[0]?.length).toBeGreaterThan(bytes);
          expect(messages[0]?.includes("\r")).toBe(false);
        }
      }
      await pipe.close();
    });
  });
});
