// Many agents that choose the same ids, on one shared server: each gets its own answers and nobody else's.

import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { connectV1, waitForTools } from "./clients.js";
import { type Gateway, startGateway, stdioFixture, until } from "./harness.js";
import { lastOf, openHttpWire } from "./wire.js";

const CLIENTS = 200;
const ROUNDS = 3;

let gateway: Gateway;

/** Answers a call with a long text of the letter that it asks for, and the rest as a server does. */
const letters = createServer((req, res) => {
  const chunks: Buffer[] = [];
  req.on("data", (chunk: Buffer) => chunks.push(chunk));
  req.on("end", () => {
    const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString() || "{}") as Asked;
    if (id === undefined) return void res.writeHead(req.method === "POST" ? 202 : 405).end();
    const { letter, times } = params?.arguments ?? {};
    if (letter !== undefined) asked.add(`${letter}${times ?? ""}`);
    const results: Record<string, () => object> = {
      initialize: () => ({
        protocolVersion: "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: "letters", version: "1" },
      }),
      "tools/list": () => ({ tools: [{ name: "letter", inputSchema: { type: "object" } }] }),
      "tools/call": () => ({
        content: [{ type: "text", text: (letter ?? "").repeat(times ?? LONG) }],
      }),
    };
    res.writeHead(200, { "content-type": "application/json" });
    const text = JSON.stringify({ jsonrpc: "2.0", id, result: results[method]?.() ?? {} });
    if (times === undefined) return void res.end(text);
    // In many chunks of HTTP: several of them are one read of the gateway's.
    for (let at = 0; at < text.length; at += CHUNK) res.write(text.slice(at, at + CHUNK));
    res.end();
  });
});
const LONG = 1_500_000;
/** More than the gateway holds of one reply: it passes at the pace of its reader. */
const STREAMED = 3_000_000;
const CHUNK = 5_000;
/** The letters that it was asked for. */
const asked = new Set<string>();

interface Asked {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly arguments?: { readonly letter?: string; readonly times?: number } };
}

function headOf(session: string): string {
  return `POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:${gateway.port}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-session-id: ${session}\r\nmcp-protocol-version: 2025-11-25\r\n`;
}

beforeAll(async () => {
  letters.listen(0, "127.0.0.1");
  await once(letters, "listening");
  const url = `http://127.0.0.1:${(letters.address() as AddressInfo).port}/mcp`;
  gateway = await startGateway({
    mcpServers: { slow: stdioFixture("slow"), fidelity: stdioFixture("fidelity"), letters: { type: "http", url } },
  });
  await waitForTools(await connectV1(gateway.url), "sleep", "answer", "letter");
});

afterAll(() => {
  letters.closeAllConnections();
  letters.close();
});

it("a client that reads its long answers late gets no byte of those that came after them [crossed-never]", async () => {
  const ask = (letter: string) =>
    `{"jsonrpc":"2.0","id":"${letter}","method":"tools/call","params":{"name":"letter","arguments":{"letter":"${letter}"}}}`;
  const isOf = (letter: string, body: string) => {
    const { id, result } = JSON.parse(body) as Reply;
    return id === letter && result.content[0].text === letter.repeat(LONG);
  };
  const wire = await openHttpWire(gateway.url);
  // More than the kernel takes: most of it waits in the gateway until somebody reads.
  const late = [..."abcdefgh"];
  const socket = connect(gateway.port, "127.0.0.1");
  socket.pause();
  for (const letter of late) {
    const text = ask(letter);
    const head = headOf(wire.sessionId);
    const last = letter === late.at(-1) ? "connection: close\r\n" : "";
    socket.write(`${head}${last}content-length: ${text.length}\r\n\r\n${text}`);
  }
  await until("the late client's calls", () => late.every((letter) => asked.has(letter)));
  for (const letter of "ijklmnop") {
    const pair = [letter, letter.toUpperCase()];
    const answers = await Promise.all(pair.map((one) => wire.send(ask(one))));
    expect(answers.map((answer, i) => isOf(pair[i] as string, lastOf(answer)))).toEqual([true, true]);
  }
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  let rest = Buffer.concat(chunks);
  for (const letter of late) {
    const body = rest.indexOf("\r\n\r\n") + 4;
    const end = body + Number(/content-length: (\d+)/i.exec(rest.toString("latin1", 0, body))?.[1]);
    expect(isOf(letter, rest.toString("latin1", body, end))).toBe(true);
    rest = rest.subarray(end);
  }
});

it("a reply that streams in chunks to a slow reader is whole and its own, whatever passes meanwhile [crossed-never]", async () => {
  const wire = await openHttpWire(gateway.url);
  const ask = (letter: string, more = "") =>
    `{"jsonrpc":"2.0","id":"${letter}${more}","method":"tools/call","params":{"name":"letter","arguments":{"letter":"${letter}"${more === "" ? "" : `,"times":${more}`}}}}`;
  const slow = [..."wxyz"].map((letter) => {
    const socket = connect(gateway.port, "127.0.0.1");
    socket.pause();
    // Another long reply goes before it, so that what the kernel takes is full.
    for (const text of [ask(letter), ask(letter, String(STREAMED))])
      socket.write(`${headOf(wire.sessionId)}content-length: ${text.length}\r\n\r\n${text}`);
    return { letter, socket };
  });
  await until("the slow clients' calls", () => slow.every(({ letter }) => asked.has(letter + STREAMED)));
  for (let i = 0; i < 8; i++) {
    const { result } = JSON.parse(lastOf(await wire.send(ask("q")))) as Reply;
    expect(result.content[0].text === "q".repeat(LONG)).toBe(true);
  }
  for (const { letter, socket } of slow) {
    let text = "";
    for await (const chunk of socket) {
      text += (chunk as Buffer).toString("latin1");
      if (text.endsWith("0\r\n\r\n")) break;
    }
    // All that is not of a chunk's frame is this letter, as often as it should be.
    const body = text
      .slice(text.lastIndexOf("HTTP/1.1"))
      .replace(/\r\n[0-9a-f]+\r\n/g, "")
      .trimEnd();
    expect(body.slice(body.indexOf('"text":"')), `reply ${letter}`).toMatch(/^"text":"(.)\1*"\}\]\}\}$/);
    expect(body.slice(body.indexOf('"text":"')).length).toBe(STREAMED + '"text":""}]}}'.length);
  }
});

it("200 clients with the same ids get no reply of another [crossed-never]", async () => {
  const wires = await Promise.all(Array.from({ length: CLIENTS }, () => openHttpWire(gateway.url)));
  const answers = await Promise.all(
    wires.flatMap((wire, client) =>
      Array.from({ length: ROUNDS }, async (_, round) => {
        // Numbers and their strings are different ids; the waits put the answers out of order.
        const id = client % 2 === 0 ? `${round}` : `"${round}"`;
        const label = `client ${client} round ${round}`;
        const ms = (client * 7 + round * 13) % 50;
        const params = `{"name":"sleep","arguments":{"ms":${ms},"label":"${label}"},"_meta":{"progressToken":1}}`;
        const answer = await wire.send(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`);
        return { wanted: { id: JSON.parse(id) as unknown, label }, got: JSON.parse(lastOf(answer)) as Reply };
      }),
    ),
  );
  expect(answers).toHaveLength(CLIENTS * ROUNDS);
  for (const { wanted, got } of answers) {
    expect(got.id).toBe(wanted.id);
    expect(JSON.parse(got.result.content[0].text)).toMatchObject({ label: wanted.label });
  }
});

it("progress of one client is seen by that client alone [crossed-never]", async () => {
  const wires = await Promise.all(Array.from({ length: 20 }, () => openHttpWire(gateway.url)));
  await Promise.all(
    wires.map(async (wire, client) => {
      const params = `{"name":"sleep","arguments":{"ms":80,"everyMs":20,"label":"c${client}."},"_meta":{"progressToken":1}}`;
      const answer = await wire.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`);
      const progress = answer.messages.slice(0, -1).map((text) => JSON.parse(text) as Progress);
      expect(progress).toHaveLength(3);
      for (const { params: seen } of progress) {
        expect(seen.progressToken).toBe(1);
        expect(seen.message.startsWith(`c${client}. `)).toBe(true);
      }
    }),
  );
});

it("one session cannot cancel the call of another by its id [crossed-never]", async () => {
  const [one, other] = await Promise.all([openHttpWire(gateway.url), openHttpWire(gateway.url)]);
  const params = '{"name":"sleep","arguments":{"ms":500,"label":"mine"}}';
  const answer = one.send(`{"jsonrpc":"2.0","id":77,"method":"tools/call","params":${params}}`);
  await other.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}');
  const { result } = JSON.parse(lastOf(await answer)) as Reply;
  expect(result.content[0].text).toContain("mine");
});

interface Reply {
  readonly id: unknown;
  readonly result: { readonly content: readonly [{ readonly text: string }] };
}

interface Progress {
  readonly params: { readonly progressToken: unknown; readonly message: string };
}
