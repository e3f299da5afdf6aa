// What the attacks on the gateway's memory share: a warm gateway with an attacker and an honest agent, connections that
// show their bytes, and what an attack may cost.

import { connect, type Socket } from "node:net";
import { afterEach, expect } from "vitest";
import { type Gateway, type ServerEntry, sleep, startGateway, temporaryDirectory, until } from "../e2e/harness.js";
import { createToken } from "../e2e/operator.js";
import { INITIALIZED, initialize, post } from "../e2e/wire.js";
import { faultServer, toolCall } from "./gateway.js";
import { MB, megabytes, peakRss, report, resetPeak, rss } from "./measure.js";
import { expectShortOwnTurn, watchedTurns } from "./turns.js";

/** What an attack may cost above an idle gateway: limits.heldBytes is half of it, the rest are copies and garbage. */
export const RSS_GROWTH = 256 * MB;

const sockets = new Set<Socket>();

afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
});

export interface Agent {
  readonly authorization: string;
  /** Headers of its requests, as lines. */
  readonly head: string;
  /** The text of the answer, or the message of the error. */
  call(name: string, args: object): Promise<{ status: number; text: string | undefined; error: string | undefined }>;
}

export async function agentOf(gateway: Gateway, id: string): Promise<Agent> {
  return openAgent(gateway, `Bearer ${await createToken(gateway, id, "default")}`);
}

/** One with a session of its own, of a principal that has a token already. */
export async function openAgent(gateway: Gateway, authorization: string): Promise<Agent> {
  const opened = await post(gateway.url, initialize("0"), { authorization });
  const session = opened.headers.get("mcp-session-id") ?? "";
  const headers = { authorization, "mcp-session-id": session, "mcp-protocol-version": "2025-11-25" };
  await post(gateway.url, INITIALIZED, headers);
  return {
    authorization,
    head:
      `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nContent-Type: application/json\r\n` +
      `Accept: application/json, text/event-stream\r\nAuthorization: ${authorization}\r\nMcp-Session-Id: ${session}\r\n`,
    async call(name, args) {
      const { status, messages } = await post(gateway.url, toolCall(Math.random(), name, args), headers);
      const { result, error } = JSON.parse(messages.at(-1) ?? "{}") as {
        result?: { content: [{ text: string }?] };
        error?: { message: string };
      };
      return { status, text: result?.content[0]?.text, error: error?.message };
    },
  };
}

/**
 * A gateway that is warm, an attacker and an honest agent. `told` says what an attack cost, and how long a turn of the
 * gateway took since the one before. `judgesTurn`: that is judged as well, without what V8's collector had of it.
 */
export async function scene(
  mcpServers: Record<string, ServerEntry>,
  ready: readonly [string, object][] = [],
  settings: object = {},
  judgesTurn = false,
) {
  const servers = { plain: faultServer("plain"), ...mcpServers };
  const turns = watchedTurns(await temporaryDirectory());
  const gateway = await startGateway({ mcpServers: servers, ...settings }, { auth: true, env: turns.env });
  const attacker = await agentOf(gateway, "attacker");
  const honest = await agentOf(gateway, "honest");
  for (const [name, args] of [["echo", {}], ...ready] as const) {
    await until(name, async () => (await honest.call(name, args)).error === undefined);
  }
  for (let i = 0; i < 20; i++) await honest.call("echo", { x: "x".repeat(200_000) });
  const before = rss(gateway.pid);
  resetPeak(gateway.pid);
  turns.begin();
  const told: Told = async (what, growth, served, more = "") => {
    const turn = await turns.worst();
    report(
      what,
      `RSS at most +${megabytes(growth)}; ${served.calls} calls of another principal meanwhile, ` +
        `the slowest ${Math.round(served.slowestMs)} ms; longest turn ${turns.text(turn)}${more} [bounded]`,
    );
    turns.begin();
    if (judgesTurn) expectShortOwnTurn(turn);
  };
  return { gateway, attacker, honest, told, growth: () => peakRss(gateway.pid) - before };
}

export type Told = (what: string, growth: number, served: Served, more?: string) => Promise<void>;

/** What was served while an attack went on. */
export interface Served {
  readonly calls: number;
  readonly slowestMs: number;
}

/** The honest agent's calls until `over`, with 200 kB each; how many, and the slowest. */
export async function serveHonest(honest: Agent, over: () => boolean): Promise<Served> {
  const x = "y".repeat(200_000);
  let calls = 0;
  let slowestMs = 0;
  while (!over()) {
    const asked = performance.now();
    const { text, error } = await honest.call("echo", { x });
    expect([error, text?.length]).toEqual([undefined, x.length + 8]);
    slowestMs = Math.max(slowestMs, performance.now() - asked);
    calls++;
    await sleep(50);
  }
  return { calls, slowestMs };
}

export interface Raw {
  readonly socket: Socket;
  said: string;
  closed: boolean;
}

/** A connection of its own; `reads` false: it takes nothing of what comes. */
export function raw(gateway: Gateway, pieces: readonly (string | Buffer)[], reads = true): Raw {
  const socket = connect(gateway.port, "127.0.0.1");
  const one: Raw = { socket, said: "", closed: false };
  sockets.add(socket);
  for (const piece of pieces) socket.write(piece);
  if (reads) socket.on("data", (chunk) => (one.said = (one.said + chunk.toString("latin1")).slice(0, 4096)));
  else socket.pause();
  socket.on("error", () => {});
  socket.on("close", () => (one.closed = true));
  return one;
}

export function callBody(head: string, name: string, args: object): string {
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: Math.random(),
    method: "tools/call",
    params: { name, arguments: args, _meta: { progressToken: "p" } },
  });
  return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
}
