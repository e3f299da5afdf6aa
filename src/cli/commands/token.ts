// `toolway token create`, `list`, `show`, `rotate` and `revoke`: who may come in, with which role. A token is shown when
// it is made; only its hash is kept, but for the default token.

import { ADMIN_POWERS, EXECUTOR_ROLE, SHARER_ROLE } from "../../contracts/settings.js";
import { isObject } from "../../protocol/jsonrpc.js";
import { nearest } from "../../runtime/nearest.js";
import { type GatewayClient, type GatewaySource, runningGateway } from "../gateway/port.js";
import { gatewayFor } from "../gateway/which.js";
import { withGateway } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit, type ExitCode, UserError, usageError } from "../line/errors.js";
import { type Io, note, print, printJson } from "../line/io.js";
import { clockTime, fittedTable, heading, oneLine, styleOf } from "../text/print.js";

export const tokenCreate = defineCommand({
  metadata: {
    name: "token create",
    summary: "Makes a token for an agent or a person, with a role.",
    description:
      "Makes a token and prints it, this once: only its hash is kept. What a role may use is in the config, under `roles`; " +
      "a role that is not there gets what `unlistedRoles` says, and a remark. With --admin it is a token of the operator's " +
      "door in place of that: it has no role, and opens nothing for an agent.",
  },
  args: {},
  options: {
    id: { value: "ID", required: true, description: "Who it is for; shown in lists and logs." },
    role: {
      value: "ROLE",
      requiredUnless: "admin",
      completes: "role",
      description: "The role that the token carries. Needed, but with --admin.",
    },
    admin: {
      value: "POWER",
      description:
        "Opens the operator's door: `metrics` its /metrics alone, `viewer` what is to be seen, `operator` what acts too.",
    },
    name: {
      value: "NAMES",
      description:
        "Of an executor: the names it may dial in under, separated by commas; no patterns. Default: the one that is its id.",
    },
    maySendTo: {
      value: "ID",
      repeat: true,
      description: "A mailbox that it may send to, by its id as it is written: no patterns, no list.",
    },
    maySendToAny: { description: "It may send to every mailbox." },
    expires: { value: "TIME", description: "When it ends: 30d, 12h, or a date such as 2030-01-31. Default: never." },
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    { line: "toolway token create --id ci --role reader --expires 30d", note: "for a month" },
    {
      line: "export TOOLWAY_TOKEN=$(toolway token create --id me --role admin)",
      note: "straight into the environment",
    },
    {
      line: "toolway token create --id prometheus --admin metrics",
      note: "for a scrape of /metrics at the operator's door",
    },
    {
      line: "toolway token create --id office --role executor",
      note: "lets an executor in at /executors/office, and no agent",
    },
    {
      line: "toolway token create --id site --role executor --name lab,annex",
      note: "at /executors/lab and .../annex",
    },
    {
      line: "toolway token create --id studio --role sharer",
      note: "for a machine that shares its tools in the mailbox studio",
    },
    {
      line: "toolway token create --id worker-1 --role researcher --may-send-to studio",
      note: "for an agent that uses them",
    },
  ],
  async handler(input, io) {
    const expires = input.expires === undefined ? {} : { expires: input.expires };
    if (input.id.trim() === "") throw usageError("--id is empty.");
    if (input.admin !== undefined) return createAdminToken({ ...input, admin: input.admin }, io);
    const { role } = input;
    if (role === undefined) throw usageError("--role is missing, or --admin for a token of the operator's door.");
    if (role.trim() === "") throw usageError("--role is empty.");
    const names = { ...namesIn(input.name, role), ...recipientsIn(input.maySendTo, input.maySendToAny) };
    const source = await gatewayFor(input, io, { orBroker: true });
    return withGateway(source, io, { servers: false }, async ({ client }) => {
      const answer = await client.post("/tokens", { id: input.id, role, ...names, ...expires }, io.signal);
      const token = isObject(answer) ? String(answer["token"]) : "";
      if (input.json) printJson(io, isObject(answer) ? { id: input.id, role, ...names, ...answer } : answer);
      else print(io, token);
      if (!input.json && io.isErrTTY) note(io, "Keep it: it cannot be shown again.");
      // Whoever sends to mailboxes needs no role of a config, and a broker has none.
      const isOfNoConfig = names.maySendTo !== undefined && source.configPath === undefined;
      const remark = isOfNoConfig ? undefined : await remarkOn(role, names.names ?? [input.id], source);
      if (remark !== undefined) note(io, remark);
      if (Array.isArray(names.maySendTo)) await noteUnknown(names.maySendTo, client, io);
      return Exit.ok;
    });
  },
});

interface AdminTokenInput extends Pick<TokenNamed, "config" | "state"> {
  readonly id: string;
  readonly admin: string;
  readonly role: string | undefined;
  readonly name: string | undefined;
  readonly maySendTo: readonly string[];
  readonly maySendToAny: boolean;
  readonly expires: string | undefined;
  readonly json: boolean;
}

async function createAdminToken(input: AdminTokenInput, io: Io): Promise<ExitCode> {
  const { id, admin, expires } = input;
  if (!ADMIN_POWERS.some((power) => power === admin)) {
    throw usageError(`--admin ${admin}: expected ${ADMIN_POWERS.join(", ")}.`);
  }
  if (input.role !== undefined) throw usageError("--role is for agents: a token with --admin has none.");
  if (input.name !== undefined) throw usageError(`--name is for tokens of the role ${EXECUTOR_ROLE}.`);
  if (input.maySendTo.length > 0 || input.maySendToAny) throw usageError("A token with --admin sends to no mailbox.");
  return withGateway(await gatewayFor(input, io, { orBroker: true }), io, { servers: false }, async ({ client }) => {
    const asked = { id, admin, ...(expires === undefined ? {} : { expires }) };
    const { token } = (await client.post("/tokens", asked, io.signal)) as { readonly token: string };
    if (input.json) printJson(io, { id, admin, token });
    else print(io, token);
    if (!input.json && io.isErrTTY) note(io, "Keep it: it cannot be shown again.");
    const { held } = (await client.get("/door", io.signal)) as { readonly held?: boolean };
    if (held !== true) {
      note(
        io,
        'The operator\'s door opens when `toolway dashboard` asks for it. "admin": {} in the config holds it open.',
      );
    }
    return Exit.ok;
  });
}

function namesIn(option: string | undefined, role: string): { readonly names?: readonly string[] } {
  if (option === undefined) return {};
  if (role !== EXECUTOR_ROLE) throw usageError(`--name is for tokens of the role ${EXECUTOR_ROLE}.`);
  const names = option.split(",").map((name) => name.trim());
  if (names.includes("")) throw usageError("--name has an empty name in it.");
  return { names };
}

/** An id may have commas and whatever else in it, so each is taken as it is written. */
function recipientsIn(ids: readonly string[], any: boolean): { readonly maySendTo?: readonly string[] | "any" } {
  if (any && ids.length > 0) throw usageError("--may-send-to-any is every mailbox: leave --may-send-to out.");
  if (any) return { maySendTo: "any" };
  if (ids.length === 0) return {};
  if (ids.includes("")) throw usageError("--may-send-to has an empty id in it.");
  return { maySendTo: [...new Set(ids)] };
}

/** A mailbox may be made later; a typo is found by nobody else. */
async function noteUnknown(maySendTo: readonly string[], client: GatewayClient, io: Io): Promise<void> {
  const { tokens = [] } = (await client.get("/tokens", io.signal)) as { tokens?: readonly TokenEntry[] };
  const known = tokens.map(({ id }) => id);
  for (const id of maySendTo) {
    const [owner = ""] = id.split("#");
    if (known.includes(owner)) continue;
    const isList = id.includes(",");
    const hint = isList ? " Several are named with a --may-send-to for each." : insteadOf(nearest(owner, known));
    note(io, `No mailbox "${id}" is known here yet: no token has that id.${hint}`);
  }
}

/** What the config does not have is legal, and seldom what was meant: so it is said what the token may do. */
async function remarkOn(
  role: string,
  executors: readonly string[],
  { configPath, env, home }: GatewaySource,
): Promise<string | undefined> {
  // Not of the config: it opens a mailbox, and no tools.
  if (role === SHARER_ROLE) return undefined;
  const { loadConfig } = await import("../../config/load.js");
  try {
    const config = configPath === undefined ? undefined : loadConfig(configPath, { env, home, wrongEntries: "keep" });
    if (role === EXECUTOR_ROLE) return executorRemark(executors, config?.executors.map(({ name }) => name) ?? []);
    const { roles, unlistedRoles } = config ?? { roles: {}, unlistedRoles: "allow" };
    if (Object.hasOwn(roles, role)) return undefined;
    const near = nearest(role, [...Object.keys(roles), EXECUTOR_ROLE, SHARER_ROLE]);
    const may = `this token may use ${unlistedRoles === "allow" ? "every tool" : "no tool"}.`;
    if (config === undefined && near === undefined) return `The built-in demo has no roles: ${may}`;
    return `The config has no role "${role}" under "roles": ${may}${insteadOf(near)}`;
  } catch {
    // The token was made; what is wrong with the config is for `config check` to tell.
    return undefined;
  }
}

/** The role opens the door of executors of these names, and no tools. */
function executorRemark(names: readonly string[], known: readonly string[]): string | undefined {
  const missing = names.find((name) => !known.includes(name));
  if (missing === undefined) return undefined;
  const near = nearest(missing, known);
  const add = near === undefined ? ` Add it: "executors": { ${JSON.stringify(missing)}: {} }.` : insteadOf(near);
  return `The config has no executor "${missing}" under "executors": nobody is let in by that name.${add}`;
}

function insteadOf(near: string | undefined): string {
  return near === undefined ? "" : ` Did you mean "${near}"? Then revoke this one, and make another.`;
}

interface TokenEntry {
  readonly id: string;
  /** Undefined for a token of the operator's door. */
  readonly role?: string;
  /** What a token of that door opens. */
  readonly admin?: string;
  /** Of an executor's token. Undefined where its only name is its id. */
  readonly names?: readonly string[];
  /** The mailboxes that it may send to. Undefined where it sends to none. */
  readonly maySendTo?: readonly string[] | "any";
  /** Undefined for the default token. */
  readonly createdAt?: string;
  readonly expiresAt?: string;
  /** Until when the secret from before a rotation is good. */
  readonly oldSecretUntil?: string;
}

/** Longer ids are cut in the table; `--json` has them whole. */
const ID_WIDTH = 60;

export const tokenList = defineCommand({
  metadata: { name: "token list", summary: "Lists who has a token, with role, mailboxes and expiry." },
  args: {},
  options: { ...gatewayOptions, ...jsonOption },
  examples: [{ line: "toolway token list", note: "ids, roles, dates; never a token" }],
  async handler(input, io) {
    return withGateway(await gatewayFor(input, io, { orBroker: true }), io, { servers: false }, async ({ client }) => {
      const answer = await client.get("/tokens", io.signal);
      const tokens = (isObject(answer) && Array.isArray(answer["tokens"]) ? answer["tokens"] : []) as TokenEntry[];
      if (input.json) {
        printJson(io, tokens);
        return Exit.ok;
      }
      const style = styleOf(io);
      // A column for mailboxes is of use where there are any.
      const hasMailboxes = tokens.some(({ maySendTo }) => maySendTo !== undefined);
      const rows = tokens.map(({ id, role = "", admin, names, maySendTo, createdAt, expiresAt, oldSecretUntil }) => [
        style.bold(oneLine(id, ID_WIDTH)),
        oneLine(opensText(role, admin, names ?? [id]), ID_WIDTH),
        ...(hasMailboxes ? [oneLine(recipientsText(maySendTo), ID_WIDTH)] : []),
        createdAt ?? "-",
        `${expiresAt === undefined ? "never" : expiryText(expiresAt, style.red)}${oldSecretText(oldSecretUntil)}`,
      ]);
      print(
        io,
        fittedTable(
          [heading(style, ["ID", "ROLE", ...(hasMailboxes ? ["MAY SEND TO"] : []), "CREATED", "EXPIRES"]), ...rows],
          io,
          { whole: ["ID"] },
        ),
      );
      return Exit.ok;
    });
  },
});

function opensText(role: string, admin: string | undefined, names: readonly string[]): string {
  if (admin !== undefined) return `(door: ${admin})`;
  return role === EXECUTOR_ROLE ? `${role} ${names.join(", ")}` : role;
}

function recipientsText(maySendTo: TokenEntry["maySendTo"]): string {
  return maySendTo === undefined ? "-" : maySendTo === "any" ? "any mailbox" : maySendTo.join(", ");
}

/** Of a token that was rotated a moment ago. */
function oldSecretText(until: string | undefined): string {
  if (until === undefined || Date.parse(until) <= Date.now()) return "";
  return `, old secret until ${clockTime(until, Date.now())}`;
}

function expiryText(expiresAt: string, alarm: (text: string) => string): string {
  return Date.parse(expiresAt) <= Date.now() ? alarm(`${expiresAt} (expired)`) : expiresAt;
}

/** Of whom `token show` and `token header` can print a token. */
const keptIdOption = {
  id: {
    value: "ID",
    description: "The principal of a client that `toolway setup` set up. Default: the default token.",
  },
} as const;

export const tokenShow = defineCommand({
  metadata: {
    name: "token show",
    summary: "Prints the default token.",
    description:
      "Prints the default token: of the running gateway, else from the state directory. With --id, the token of a client " +
      "that was set up.",
  },
  args: {},
  options: { ...keptIdOption, ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "export TOOLWAY_TOKEN=$(toolway token show)", note: "for the agents started from this shell" },
    { line: "export TOOLWAY_GEMINI_TOKEN=$(toolway token show --id setup-gemini)", note: "as its entry refers to it" },
  ],
  async handler(input, io) {
    const token = await shownToken(input, io);
    if (input.json) printJson(io, { token });
    else print(io, token);
    return Exit.ok;
  },
});

export const tokenHeader = defineCommand({
  metadata: {
    name: "token header",
    summary: "Prints the header that lets an agent in, as JSON.",
    description:
      'Prints the header that lets an agent in, as a JSON object: {"Authorization":"Bearer …"}. For clients that run a ' +
      "program for their headers: Claude Code's headersHelper, Codex's http_headers_helper.",
  },
  args: {},
  options: { ...keptIdOption, ...gatewayOptions },
  examples: [
    { line: "toolway token header --id setup-claude", note: "what `toolway setup claude` has Claude Code run" },
  ],
  async handler(input, io) {
    print(io, JSON.stringify({ Authorization: `Bearer ${await shownToken(input, io)}` }));
    return Exit.ok;
  },
});

interface TokenNamed {
  readonly id: string | undefined;
  readonly config: string | undefined;
  readonly state: string | undefined;
}

async function shownToken(input: TokenNamed, io: Io): Promise<string> {
  return input.id === undefined ? defaultTokenOf(input, io) : keptTokenOf(input.id, input, io);
}

/** Read from the disk: the gateway that runs knows only its hash. */
async function keptTokenOf(id: string, input: TokenNamed, io: Io): Promise<string> {
  const { stateDir } = await gatewayFor(input, io, { orBroker: true });
  const { readKept } = await import("../gateway/running.js");
  const kept = readKept(stateDir, id);
  if (kept !== undefined) return kept.token;
  throw new UserError(`No token of "${id}" is kept in ${stateDir}.`, {
    hint: "Those of clients that were set up are: run `toolway setup CLIENT` once more. Another config's: add --config FILE.",
  });
}

async function defaultTokenOf(input: TokenNamed, io: Io): Promise<string> {
  const source = await gatewayFor(input, io, { orBroker: true });
  const port = await runningGateway();
  const running = await port.find(source);
  const answer = running === undefined ? undefined : await running.get("/tokens/default", io.signal);
  const asked = isObject(answer) && typeof answer["token"] === "string" ? answer["token"] : undefined;
  // Without a config, a running gateway or a named directory, nothing says whose token is wanted.
  const isMeant = source.configPath !== undefined || source.stateNamed;
  const token = asked ?? (running !== undefined || isMeant ? await port.defaultToken(source) : undefined);
  if (token === undefined && !isMeant && running === undefined) {
    throw new UserError("No config is named here or found, and no gateway runs.", {
      hint: "Add --config FILE, or start the demo with `toolway serve`.",
    });
  }
  if (token === undefined) {
    throw new UserError(
      running === undefined ? "There is no token yet for this config." : "This gateway asks for no token.",
      { hint: "`toolway serve` makes one at its first start. Another config's: add --config FILE." },
    );
  }
  return token;
}

const madeIdArg = {
  required: true,
  description: "The id that it was created with.",
  completes: "token",
} as const;

export const tokenRotate = defineCommand({
  metadata: {
    name: "token rotate",
    summary: "Gives a token a new secret; the old one is good for 10 minutes more.",
    description:
      "Gives a token a new secret, and prints it once. Id, role and what it may do stay. The old secret is good for 10 " +
      "minutes more, so that nobody is cut off while the new one is carried around; what came in by it ends then. " +
      "A secret that leaked is ended at once by `toolway token revoke`, which ends both.",
  },
  args: { id: madeIdArg },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway token rotate studio", note: "prints the new secret" },
    { line: "export TOOLWAY_TOKEN=$(toolway token rotate ci)", note: "straight into the environment" },
  ],
  async handler(input, io) {
    return withGateway(await gatewayFor(input, io, { orBroker: true }), io, { servers: false }, async ({ client }) => {
      await demandId(client, input.id, io);
      const answer = await client.post(`/tokens/${encodeURIComponent(input.id)}/rotate`, { admin: true }, io.signal);
      const { token, oldSecretUntil } = (isObject(answer) ? answer : {}) as { token?: string; oldSecretUntil?: string };
      if (input.json) printJson(io, { id: input.id, token, oldSecretUntil });
      else print(io, token ?? "");
      if (!input.json && oldSecretUntil !== undefined) {
        note(
          io,
          `Keep it: it cannot be shown again. The old secret is good until ${clockTime(oldSecretUntil, Date.now())}.`,
        );
      }
      return Exit.ok;
    });
  },
});

export const tokenRedeem = defineCommand({
  metadata: {
    name: "token redeem",
    summary: "Turns a pairing code into a token for a mailbox, and keeps it.",
    description:
      "Turns the word that `toolway mailbox pair` printed at a broker into a token that sends to its mailbox, and prints " +
      "it. It is kept for this user (mode 0600), too.",
  },
  args: { word: { required: true, description: "The broker's address and the code: 127.0.0.1:7440/ABCD-EFGH-JKMN." } },
  options: { ...jsonOption },
  examples: [
    { line: "toolway token redeem 127.0.0.1:7440/ABCD-EFGH-JKMN", note: "prints the token" },
    {
      line: "export WORKER_TOKEN=$(toolway token redeem broker.example.com/ABCD-EFGH-JKMN)",
      note: "for a config that names the variable",
    },
  ],
  handler: async (input, io) => (await import("../mailbox/pair.js")).redeem(input, io),
});

export const tokenRevoke = defineCommand({
  metadata: {
    name: "token revoke",
    summary: "Ends a token, and the sessions that it opened.",
    description: "Ends a token at once, and the sessions that it opened; a secret from before a rotation, too.",
  },
  args: { id: madeIdArg },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [{ line: "toolway token revoke ci", note: "whoever holds it is out" }],
  async handler(input, io) {
    return withGateway(await gatewayFor(input, io, { orBroker: true }), io, { servers: false }, async ({ client }) => {
      await demandId(client, input.id, io);
      await client.delete(`/tokens/${encodeURIComponent(input.id)}`, io.signal);
      if (input.json) printJson(io, { revoked: input.id });
      else print(io, `Revoked ${input.id}.`);
      return Exit.ok;
    });
  },
});

async function demandId(client: GatewayClient, id: string, io: Io): Promise<void> {
  const known = idsOf(await client.get("/tokens", io.signal));
  if (known.includes(id)) return;
  const near = nearest(id, known);
  throw usageError(
    `There is no token with the id ${id}.`,
    near === undefined ? "`toolway token list` shows them." : `Did you mean ${near}?`,
  );
}

function idsOf(answer: unknown): string[] {
  const tokens = isObject(answer) && Array.isArray(answer["tokens"]) ? answer["tokens"] : [];
  return tokens.filter(isObject).map(({ id }) => String(id));
}
