// What the fault runs share beside the e2e harness: entries of their own servers, and one call as a probe.

import { join } from "node:path";
import { root, type ServerEntry } from "../e2e/harness.js";
import { type HttpWire, lastOf } from "../e2e/wire.js";

export function faultServer(name: string, args: readonly string[] = [], more: object = {}): ServerEntry {
  return { command: process.execPath, args: [join(root, "test/faults/servers", `${name}.mjs`), ...args], ...more };
}

export function toolCall(id: number | string, name: string, args: object = {}): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } });
}

/** The same of `echo`, with arguments that are a text already, however large or wrong they are. */
export function echoOf(args: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":${args}}}`;
}

interface Answer {
  readonly id: unknown;
  readonly result?: { readonly content: readonly [{ readonly text: string }] };
  readonly error?: { readonly code: number; readonly message: string };
}

export async function call(wire: HttpWire, name: string, args: object = {}, id: number | string = 1): Promise<Answer> {
  return JSON.parse(lastOf(await wire.send(toolCall(id, name, args)))) as Answer;
}

/** The text of the answer; undefined where it is an error. */
export async function callText(
  wire: HttpWire,
  name: string,
  args: object = {},
  id: number | string = 1,
): Promise<string | undefined> {
  return (await call(wire, name, args, id)).result?.content[0].text;
}
