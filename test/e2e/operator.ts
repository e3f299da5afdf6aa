// What an operator does beside a running gateway, by the command line and the socket behind it, and what an agent is told meanwhile: raw
// answers, because the SDKs keep the data of an error to themselves.

import { execFile } from "node:child_process";
import type { GatewayStatus } from "../../src/contracts/status.js";
import { findGateway } from "../../src/control/client.js";
import type { ServerStatus } from "../../src/index.js";
import { type Reply, send } from "./eras.js";
import { cli, type Gateway, until } from "./harness.js";

/** As long as the command line waits for a server by itself. */
const COMMAND_MS = 60_000;

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The command line by itself, to its end. */
export function runCli(...words: string[]): Promise<Ran> {
  return new Promise((done) => {
    execFile(process.execPath, [cli, ...words], { timeout: COMMAND_MS }, (error, out, err) => {
      done({ code: error === null ? 0 : Number(error.code ?? -1), out, err });
    });
  });
}

/** The command line beside a gateway. */
export function toolway({ configPath, stateDir }: Gateway, ...words: string[]): Promise<Ran> {
  return runCli(...words, "--config", configPath, "--state", stateDir);
}

/**
 * What `toolway token create` prints, from where it has it: a process for each would take longer than most tests. `maySendTo` are
 * mailboxes. Tests of the verb start it themselves.
 */
export async function createToken(
  { stateDir }: Pick<Gateway, "stateDir">,
  id: string,
  role: string,
  ...maySendTo: string[]
): Promise<string> {
  const recipients = maySendTo.length === 0 ? {} : { maySendTo };
  const control = await controlOf(stateDir);
  return (await control.post<{ token: string }>("/tokens", { id, role, ...recipients })).token;
}

let ids = 0;

/** Another at each try of a test: what the one before made is still there. */
export function freshId(name: string): string {
  return `${name}-${++ids}`;
}

/** Lets go and drops whatever writes are kept for these servers: what a try before this one left. */
export async function emptyOutbox({ stateDir }: Pick<Gateway, "stateDir">, ...servers: string[]): Promise<void> {
  const control = await controlOf(stateDir);
  for (const server of servers) {
    await control.post("/outbox/release", { server });
    const { writes } = await control.get<{ writes: readonly { id: string }[] }>(`/outbox?server=${server}`);
    // One that is with its server at this moment is not dropped, and ends by itself.
    // Dropped, and dropped again: the first is told to its agent, the second forgets it.
    for (const { id } of [...writes, ...writes]) await control.post(`/outbox/writes/${id}/drop`, {}).catch(() => {});
  }
}

async function controlOf(stateDir: string) {
  const control = await findGateway(stateDir);
  if (control === undefined) throw new Error(`No gateway runs in ${stateDir}.`);
  return control;
}

/** What `toolway status --json` prints, from where it has it: tests that wait by it would start a process at each look. */
export async function statusOfAll({ stateDir }: Pick<Gateway, "stateDir">): Promise<GatewayStatus> {
  return (await controlOf(stateDir)).get<GatewayStatus>("/status");
}

export async function statusOf(gateway: Gateway, server: string): Promise<ServerStatus> {
  const { servers } = await statusOfAll(gateway);
  const found = servers.find(({ name }) => name === server);
  if (found === undefined) throw new Error(`status has no ${server}: ${JSON.stringify(servers)}`);
  return found;
}

export interface Told {
  readonly code: number;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
}

function bearing(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** One call of a tool by an agent that keeps no session. */
export async function callTool(
  url: string,
  name: string,
  args: Record<string, unknown> = {},
  token?: string,
  meta: Record<string, unknown> = {},
): Promise<Reply> {
  const params = { name, arguments: args };
  return (await send(url, { method: "tools/call", params, meta, headers: bearing(token) })).reply;
}

/** The same, for a call that is refused; throws where it was answered. */
export async function refusal(...call: Parameters<typeof callTool>): Promise<Told> {
  const reply = await callTool(...call);
  if (reply.error === undefined) throw new Error(`It was answered: ${JSON.stringify(reply)}`);
  return reply.error as Told;
}

/** The JSON in the text of a result; throws where there is none. */
export function made<T = Record<string, unknown>>({ result, error }: Reply): T {
  const content = result?.["content"] as readonly { text: string }[] | undefined;
  if (content?.[0] === undefined) throw new Error(`No result: ${JSON.stringify(error ?? result)}`);
  return JSON.parse(content[0].text) as T;
}

/** Until the list has the tool. */
export async function hasTool(url: string, name: string, token?: string): Promise<boolean> {
  return (await listed(url, token)).includes(name);
}

export async function listed(url: string, token?: string): Promise<string[]> {
  const { reply } = await send(url, { method: "tools/list", headers: bearing(token) });
  return ((reply.result?.["tools"] ?? []) as { name: string }[]).map((tool) => tool.name);
}

/** Until what is known of these tools is on the gateway's disk, which is a moment after they are listed. */
export async function untilKept(gateway: Parameters<typeof toolway>[0], ...tools: string[]): Promise<void> {
  await until(`${tools.join(", ")} on disk`, async () => {
    const { out } = await toolway(gateway, "state", "dump");
    // The pins have the tools' names as well.
    const lists = out.split("\n").filter((line) => line.includes('"known"'));
    return tools.every((tool) => lists.some((line) => line.includes(tool)));
  });
}
