// `toolway setup` alone: which clients are on this machine, and in which of their files Toolway stands.

import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { entryPlace, isOurs, SETUP_CLIENTS, type SetupClient, type SetupScope } from "../../agents/setup/clients.js";
import { findProgram } from "../../runtime/processes/find-program.js";
import { Exit, type ExitCode } from "../line/errors.js";
import { hinted, type Io, print, printJson, shortPath } from "../line/io.js";
import { fittedTable, heading, styleOf } from "../text/print.js";
import { readClientFile } from "./client-file.js";
import { placeOf } from "./plan.js";

interface FoundFile {
  readonly scope: SetupScope;
  readonly file: string;
  /** "other": an entry of our name that leads elsewhere. */
  readonly state: "set up" | "other" | "broken";
  /** What is wrong with a broken file, with its place. */
  readonly error?: string;
}

interface FoundClient {
  readonly client: SetupClient;
  /** `toolway run` finds its program, or it is an app that has a folder here. */
  readonly isInstalled: boolean;
  /** A file or a folder of its own is there. */
  readonly hasFolder: boolean;
  readonly files: readonly FoundFile[];
}

export function listClients(io: Io, json: boolean): ExitCode {
  const found = SETUP_CLIENTS.map((client) => look(client, io));
  if (json) {
    printJson(
      io,
      found.map(({ client: { id, name }, isInstalled, files }) => ({ id, name, installed: isInstalled, files })),
    );
    return Exit.ok;
  }
  const style = styleOf(io);
  const rows = found.map(({ client, isInstalled, hasFolder, files }) => [
    style.bold(client.id),
    client.name,
    // What it left here says that it was: who has it elsewhere learns why it is not found.
    isInstalled ? "yes" : hasFolder ? "not on the PATH" : "no",
    files.length === 0 ? "no" : files.map((file) => stateText(file, io)).join("; "),
  ]);
  print(
    io,
    fittedTable([heading(style, ["CLIENT", "NAME", "INSTALLED", "SET UP"]), ...rows], io, { whole: ["CLIENT"] }),
  );
  for (const { error } of found.flatMap(({ files }) => files)) if (error !== undefined) print(io, error);
  const next = found.find(({ isInstalled, files }) => isInstalled && files.length === 0);
  if (next !== undefined) print(io, hinted(io, `\nTo set one up: \`toolway setup ${next.client.id}\`.`));
  return Exit.ok;
}

function stateText({ state, scope, file }: FoundFile, io: Io): string {
  const where = `${shortPath(io, file)}${scope === "project" ? " (project)" : ""}`;
  if (state === "set up") return where;
  return state === "other" ? `${where} has another entry of that name` : `${where} cannot be read`;
}

function look(client: SetupClient, io: Io): FoundClient {
  const place = placeOf(io);
  const files = (["user", "project"] as const).flatMap((scope) =>
    client.files(scope, place).flatMap((file) => lookInto(client, scope, file)),
  );
  const hasFolder = client.files("user", place).some((file) => existsSync(file) || isOwnFolder(dirname(file), io));
  const hasProgram = client.programs.some((name) => findProgram(name, io) !== undefined);
  return { client, isInstalled: hasProgram || (client.isApp === true && hasFolder), hasFolder, files };
}

/** The home folder is everybody's, and says nothing of a client. */
function isOwnFolder(folder: string, { home }: Io): boolean {
  return folder !== home && existsSync(folder);
}

function lookInto(client: SetupClient, scope: SetupScope, file: string): FoundFile[] {
  try {
    const text = readClientFile(file);
    const entry = text === undefined ? undefined : client.text.read(text, entryPlace(client, file));
    if (entry === undefined) return [];
    return [{ scope, file, state: isOurs(entry, undefined) ? "set up" : "other" }];
  } catch (error) {
    return [{ scope, file, state: "broken", error: (error as Error).message }];
  }
}
