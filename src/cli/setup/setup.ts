// What `toolway setup CLIENT` does: our entry into the client's own config, shown first, with a principal and a token of
// its own; and out of it again.

import { isOurs, ownedKeys, type SetupScope, type Way } from "../../agents/setup/clients.js";
import { textWithout } from "../../agents/setup/entry-text.js";
import { quotedWord } from "../../runtime/words/shell-word.js";
import type { GatewaySource } from "../gateway/port.js";
import { gatewayFor } from "../gateway/which.js";
import { confirm } from "../line/ask.js";
import { Exit, type ExitCode, UserError, usageError } from "../line/errors.js";
import { hinted, type Io, note, print, printJson, shortPath, shown } from "../line/io.js";
import { styleOf } from "../text/print.js";
import { readBackup, readClientFile, showChange, writeClientFile } from "./client-file.js";
import { endpointOf, factsFor, ownProgram, type SetupTarget, targetOf, wayOf } from "./plan.js";
import { demandToken, keptOf, letGo } from "./principal.js";

interface SetupInput {
  readonly config: string | undefined;
  readonly state: string | undefined;
  readonly scope: SetupScope | undefined;
  readonly role: string | undefined;
  readonly via: Way | undefined;
  readonly remove: boolean;
  readonly dryRun: boolean;
  readonly yes: boolean;
  readonly json: boolean;
}

export async function setUp(word: string, input: SetupInput, io: Io): Promise<ExitCode> {
  const target = targetOf(word, input.scope ?? "user", io);
  const source = await gatewayFor(input, io);
  return input.remove ? takeOut(target, source, input, io) : putIn(target, source, input, io);
}

async function putIn(target: SetupTarget, source: GatewaySource, input: SetupInput, io: Io): Promise<ExitCode> {
  const { client, place, principal } = target;
  const way = wayOf(target, input.via);
  if (way === "program" && source.configPath === undefined) {
    throw usageError(
      `${client.name} would start \`toolway stdio\`, which needs a config, and none is named here or found.`,
      "Make one with `toolway import --write`, or add --config FILE.",
    );
  }
  const { url, isUp } = await endpointOf(source, io);
  const entry = client.entry(way, factsFor(target, url, source, ownProgram()));
  const edit: Edit = (text) => {
    refuseForeign(target, text, (there) => isOurs(there, url));
    return client.text.put(text, place, entry, ownedKeys(client));
  };
  const facts = { client: client.id, file: place.file, via: way, url };
  const done = await change(target, edit, `Set up ${client.name}`, input, io);
  if (done === "refused") return Exit.failure;
  if (input.dryRun) {
    if (input.json) printJson(io, { ...facts, entry, changed: done === "changed" });
    else if (done === "same") print(io, `${client.name} is set up already, in ${shortPath(io, place.file)}.`);
    return Exit.ok;
  }
  // First the token, so that whoever reads the entry is let in.
  const role = await demandToken(principal, place.file, input.role, source, io);
  const backup = done === "changed" ? write(target, edit) : undefined;
  if (input.json) {
    printJson(io, { ...facts, principal, role, changed: done === "changed", backup });
    return Exit.ok;
  }
  print(io, `${client.name} is set up${done === "same" ? " already" : ""}, in ${shortPath(io, place.file)}.`);
  tellBackup(backup, io);
  for (const line of nextLines(target, source, way, isUp, io)) print(io, hinted(io, line));
  return Exit.ok;
}

/** What is said when all is written. */
function nextLines(
  { client, principal, variable }: SetupTarget,
  source: GatewaySource,
  way: Way,
  isUp: boolean,
  io: Io,
): string[] {
  // A profile is read in every folder: `npx toolway` is not found in all of them.
  const program = io.program === "toolway" ? ["toolway"] : ownProgram();
  const words = [...program, "token", "show", "--id", principal, "--state", source.stateDir];
  const shell = [
    `It reads its token from ${variable}. Put this line into your shell's profile:`,
    `  export ${variable}="$(${words.map(quotedWord).join(" ")})"`,
    "A program that is not started from a shell does not see it: for one, set up again with --via program.",
  ];
  return [
    ...(way === "variable" ? shell : []),
    ...(client.remark === undefined ? [] : [client.remark]),
    ...(isUp || way === "program" ? [] : ["No gateway runs for this config: start it with `toolway serve`."]),
    `It comes in as ${principal}. \`toolway setup ${client.id} --remove\` takes it out again.`,
  ];
}

async function takeOut(target: SetupTarget, source: GatewaySource, input: SetupInput, io: Io): Promise<ExitCode> {
  const { client, place, principal } = target;
  const isKept = (await keptOf(principal, source))?.files.includes(place.file) === true;
  const edit: Edit = (text) => {
    refuseForeign(target, text, (there) => isKept || isOurs(there, undefined));
    return text === undefined ? undefined : textWithout(client.text, text, place, readBackup(place.file));
  };
  const file = shortPath(io, place.file);
  const done = await change(target, edit, "Take Toolway out", input, io);
  if (done === "refused") return Exit.failure;
  const facts = { client: client.id, file: place.file, removed: done === "changed" };
  if (input.dryRun) {
    if (input.json) printJson(io, facts);
    else if (done === "same") print(io, `${client.name} is not set up in ${file}.`);
    return Exit.ok;
  }
  if (done === "changed") write(target, edit);
  const isRevoked = await letGo(principal, place.file, source, io);
  if (input.json) {
    printJson(io, { ...facts, revoked: isRevoked });
    return Exit.ok;
  }
  print(io, `${client.name} is ${done === "changed" ? "no longer" : "not"} set up in ${file}.`);
  const others = (await keptOf(principal, source))?.files ?? [];
  if (isRevoked) print(io, `The token of ${principal} is revoked.`);
  else if (others.length > 0)
    print(io, `Its token stays, for ${others.map((path) => shortPath(io, path)).join(", ")}.`);
  return Exit.ok;
}

/** Throws where the text has an entry of our name that somebody else made, or is broken. */
function refuseForeign(
  { client, place }: SetupTarget,
  text: string | undefined,
  isOwn: (entry: unknown) => boolean,
): void {
  const there = text === undefined ? undefined : client.text.read(text, place);
  if (there === undefined || isOwn(there)) return;
  throw new UserError(`${place.file} has an entry "${place.name}" that is not of this gateway. It was left as it is.`, {
    hint: "Give that entry another name, or take it out, and try again.",
  });
}

/** Undefined: there is to be no file. */
type Edit = (text: string | undefined) => string | undefined;

/** Shows what would change, and asks; writes nothing. */
async function change(
  { place }: SetupTarget,
  edit: Edit,
  what: string,
  input: SetupInput,
  io: Io,
): Promise<"changed" | "same" | "refused"> {
  const before = readClientFile(place.file);
  const after = edit(before);
  if ((after ?? "") === (before ?? "")) return "same";
  const file = shortPath(io, place.file);
  if (!input.json) {
    const act = before === undefined ? "New file" : after === undefined ? "Removal of" : "Change of";
    print(io, styleOf(io).bold(`${act} ${file}:`));
    for (const line of showChange(before ?? "", after ?? "")) print(io, shown(line, io.isTTY));
    print(io, input.dryRun ? "\nNothing was written: --dry-run." : "");
  }
  if (input.dryRun || (await confirm(io, `${what}, in ${file}?`, input.yes))) return "changed";
  note(io, "Nothing was written.");
  return "refused";
}

/** Reads the file once more: clients write theirs themselves, also while somebody thinks about an answer. */
function write({ client, place, scope }: SetupTarget, edit: Edit): string | undefined {
  const before = readClientFile(place.file);
  // With an entry of ours in it, it is not what it was before.
  const isFirst = before === undefined || client.text.read(before, place) === undefined;
  return writeClientFile(place.file, edit(before), { isShared: scope === "project", isFirst });
}

function tellBackup(backup: string | undefined, io: Io): void {
  if (backup !== undefined) print(io, `What was there before is in ${shortPath(io, backup)}.`);
}
