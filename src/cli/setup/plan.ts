// What a set-up is about: which client and file, which gateway, and what the entry says of it.

import { existsSync } from "node:fs";
import {
  type EntryFacts,
  entryPlace,
  principalOf,
  SETUP_CLIENTS,
  type SetupClient,
  type SetupScope,
  setupClient,
  variableOf,
  type Way,
} from "../../agents/setup/clients.js";
import type { ClientEntryPlace } from "../../agents/setup/entry-text.js";
import type { GatewayStatus } from "../../contracts/status.js";
import { fromHere } from "../../runtime/addresses.js";
import { nearest } from "../../runtime/nearest.js";
import { quotedWord } from "../../runtime/words/shell-word.js";
import { type GatewaySource, runningGateway } from "../gateway/port.js";
import { usageError } from "../line/errors.js";
import type { Io } from "../line/io.js";

/** Where a client's files are looked for. */
export function placeOf({ home, cwd, env }: Io) {
  return { home, cwd, env, platform: process.platform };
}

export interface SetupTarget {
  readonly client: SetupClient;
  readonly scope: SetupScope;
  readonly place: ClientEntryPlace;
  readonly principal: string;
  readonly variable: string;
}

export function targetOf(word: string, scope: SetupScope, io: Io): SetupTarget {
  const client = clientNamed(word);
  const place = entryPlace(client, fileOf(client, scope, io));
  return { client, scope, place, principal: principalOf(client), variable: variableOf(client) };
}

/** Throws for a word that is no client's, with the nearest. */
function clientNamed(word: string): SetupClient {
  const client = setupClient(word);
  if (client !== undefined) return client;
  const ids = SETUP_CLIENTS.map(({ id }) => id);
  const near = nearest(word, ids);
  const meant = near === undefined ? "" : ` Did you mean ${near}?`;
  throw usageError(`No client "${word}" is known.${meant}`, `Known are: ${ids.join(", ")}.`);
}

/** The file of that scope that is there, else the one that the client itself would make. */
function fileOf(client: SetupClient, scope: SetupScope, io: Io): string {
  const files = client.files(scope, placeOf(io));
  const file = files.find((path) => existsSync(path)) ?? files[0];
  if (file !== undefined) return file;
  throw usageError(`${client.name} is not known to have a config for one project.`, "Leave --scope out.");
}

export function wayOf({ client, scope }: SetupTarget, named: Way | undefined): Way {
  if (named !== undefined) {
    if (client.ways.includes(named)) return named;
    throw usageError(`${client.name} does not take a ${named}.`, `It takes: ${client.ways.join(", ")}.`);
  }
  // A project's file goes to other machines, where our paths mean nothing.
  const portable = scope === "project" ? client.ways.find((way) => way === "variable") : undefined;
  return portable ?? client.ways[0] ?? "program";
}

/** What the entry says of the gateway. `program`: the words that start this very program. */
export function factsFor(
  target: SetupTarget,
  url: string,
  source: GatewaySource,
  program: readonly string[],
): EntryFacts {
  const { principal, variable } = target;
  const state = ["--state", source.stateDir];
  const header = [...program, "token", "header", "--id", principal, ...state];
  const config = source.configPath === undefined ? [] : [source.configPath];
  return {
    url,
    variable,
    helper: header.map(quotedWord).join(" "),
    program: [...program, "stdio", ...config, "--as", principal, ...state],
  };
}

/** The endpoint of the gateway that runs, else the one that it will have. One that runs for `toolway run` is gone soon. */
export async function endpointOf(source: GatewaySource, io: Io): Promise<{ url: string; isUp: boolean }> {
  const running = await (await runningGateway()).find(source);
  const status = running === undefined ? undefined : ((await running.get("/status", io.signal)) as GatewayStatus);
  if (status?.endpoint !== undefined && status.forRuns !== true) return { url: fromHere(status.endpoint), isUp: true };
  const { loadConfig, resolveConfig } = await import("../../config/load.js");
  const { env, home, configPath } = source;
  const { listen, tls } =
    configPath === undefined
      ? resolveConfig({ mcpServers: {} }, { env, home })
      : loadConfig(configPath, { env, home, wrongEntries: "keep" });
  if (listen.port === 0) {
    throw usageError(
      "The gateway of this config takes another port at each start.",
      'Give it a fixed one by "listen".',
    );
  }
  const host = listen.host.includes(":") ? `[${listen.host}]` : listen.host;
  const scheme = tls === undefined ? "http" : "https";
  return { url: fromHere(`${scheme}://${host}:${listen.port}/mcp`), isUp: false };
}

/**
 * Node and the script, as they were started: an agent, or an editor on a desktop, may have another PATH than this shell,
 * or one without Node.
 */
export function ownProgram(): string[] {
  return [process.execPath, ...(process.argv[1] === undefined ? [] : [process.argv[1]])];
}
