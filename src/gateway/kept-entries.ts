// What a config that was read becomes while another is in use: a server whose new entry is wrong goes on by the entry
// that it had.

import { type Config, inFileOrder, type ServerConfig, type WrongEntry } from "../config/config.js";

export interface KeptEntries {
  /** The config to use. `misconfigured` has those alone that had no entry to go on by. */
  readonly config: Config;
  /** Servers that go on by their entry before: name → what is wrong with the new one. */
  readonly kept: ReadonlyMap<string, string>;
}

export function keepEntries(read: Config, before: Config): KeptEntries {
  if (read.misconfigured.length === 0) return { config: read, kept: NOTHING_KEPT };
  const entries = new Map(before.servers.map((server) => [server.name, server]));
  const kept = new Map<string, string>();
  const servers: ServerConfig[] = [];
  const misconfigured: WrongEntry[] = [];
  for (const one of inFileOrder(read.servers, read.misconfigured)) {
    const entry = "place" in one ? entries.get(one.name) : one;
    if (entry !== undefined) servers.push(entry);
    if (!("place" in one)) continue;
    if (entry === undefined) misconfigured.push({ ...one, place: servers.length });
    else kept.set(one.name, one.forOperator);
  }
  return { config: { ...read, servers, misconfigured }, kept };
}

export const NOTHING_KEPT: ReadonlyMap<string, string> = new Map();

/** Servers that have an entry and do not run by it: it is wrong, or switches them off. */
export function idleNames({ misconfigured, disabled }: Config): string[] {
  return [...misconfigured.map(({ name }) => name), ...disabled];
}
