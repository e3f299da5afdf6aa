// What `serve` says at the start: where it is, who may come in, and how to connect. The token itself appears at the
// first start only. What the config warns of is in the log, which goes to the same terminal or journal.

import { brokerUrlOf } from "../../mailbox/wire/address.js";
import { fromHere, isLoopback } from "../../runtime/addresses.js";
import { packageVersion } from "../../runtime/version.js";
import type { StartedGateway } from "../gateway/port.js";
import { type Io, pasted, shortPath, shown } from "../line/io.js";
import { pasteLines, TOKEN_VARIABLE } from "./paste-lines.js";
import { oneLine, styleOf, table } from "./print.js";

interface BannerOptions {
  readonly noAuth: boolean;
}

/** As many names as fit a line or two; `status` has the rest. */
const SERVER_LIMIT = 12;

/** The names of roles, where they are many, are cut to fit a line. */
const ROLE_WIDTH = 60;

export function banner(started: StartedGateway, options: BannerOptions, io: Io): string {
  const style = styleOf(io);
  const { config, token } = started;
  const verb = (words: string): string => pasted(io, words);

  const facts: string[][] = [
    ["endpoint", style.bold(started.url)],
    ["config", config.path === undefined ? "built-in demo (no toolway.json found)" : shortPath(io, config.path)],
    ["servers", shown(serverList(started), io.isTTY)],
    ["roles", shown(roleText(config), io.isTTY)],
    ...(config.mailboxes ? [["mailboxes", `kept, at ${brokerUrlOf(started.url)}/mailboxes`]] : []),
    ["token", options.noAuth ? "none asked for" : tokenText(token, verb, io.isTTY)],
  ];

  const lines = [`${style.bold("Toolway")} ${packageVersion()}`, "", table(facts, "  ")];
  const warnings = shown(warningsOf(started, options), io.isTTY);
  if (warnings.length > 0) lines.push("", ...warnings.map((text) => style.yellow(`  warning: ${text}`)));

  lines.push("", "Run an agent with it, this once:", `  ${verb("run claude")}`, "", "Or connect one for good:");
  if (!options.noAuth && !token.fromEnv) lines.push(`  export ${TOKEN_VARIABLE}=$(${verb("token show")})`, "");
  for (const { client, line } of pasteLines(fromHere(started.url), !options.noAuth))
    lines.push(`  ${style.dim(`# ${client}`)}`, `  ${line}`);

  lines.push("", "From another terminal:", `  ${verb("status")}`, `  ${verb("tools")}`);
  if (config.path === undefined) lines.push(`  ${verb("call demo__add --arg a=2 --arg b=3")}`);
  return `${lines.join("\n")}\n`;
}

/** No token in it: what scripts log stays harmless. */
export function bannerJson(started: StartedGateway): Record<string, unknown> {
  return {
    endpoint: started.url,
    pid: process.pid,
    stateDir: started.stateDir,
    config: started.config.path ?? null,
    servers: started.config.servers.map(({ name }) => name),
    misconfigured: started.config.misconfigured.map(({ name, why }) => ({ name, why })),
    unlistedRoles: started.config.unlistedRoles,
  };
}

export function tokenText(token: StartedGateway["token"], verb: (words: string) => string, isSeen: boolean): string {
  if (token.fromEnv) return `from ${TOKEN_VARIABLE}`;
  if (!token.isNew || token.value === undefined) return `as before; ${verb("token show")} prints it`;
  // A pipe leads to a log as a rule, and a token belongs in none.
  if (!isSeen) return `made just now; ${verb("token show")} prints it`;
  return `${token.value}  (shown this once; later: ${verb("token show")})`;
}

/** What the default is must be seen at the start: it decides what a new token can do. */
function roleText({ roles, unlistedRoles }: StartedGateway["config"]): string {
  const rest = unlistedRoles === "allow" ? "every tool" : "no tool";
  const names = Object.keys(roles);
  if (names.length === 0) return `none in the config: every token may use ${rest}`;
  return `${oneLine(names.join(", "), ROLE_WIDTH)}; a token of another role may use ${rest}`;
}

function serverList(started: StartedGateway): string {
  const { servers, misconfigured, disabled } = started.config;
  if (servers.length + misconfigured.length === 0)
    return "none; add some to the config, it is read again when it changes";
  const names = servers.slice(0, SERVER_LIMIT).map(({ name, target }) => `${oneLine(name, 40)} (${target.kind})`);
  const more = servers.length > SERVER_LIMIT ? ` and ${servers.length - SERVER_LIMIT} more` : "";
  const asides = Object.entries({ misconfigured: misconfigured.map(({ name }) => name), "switched off": disabled });
  const rest = asides.flatMap(([what, some]) => (some.length === 0 ? [] : [`${what}: ${some.join(", ")}`]));
  return [...(names.length === 0 ? [] : [names.join(", ") + more]), ...rest].join("; ");
}

function warningsOf(started: StartedGateway, options: BannerOptions): string[] {
  const host = new URL(started.url).hostname.replace(/^\[|\]$/g, "");
  const found: string[] = [];
  if (options.noAuth) found.push("no token is asked for: every program on this machine can use the tools.");
  if (!isLoopback(host)) {
    found.push(
      started.url.startsWith("https:")
        ? `it listens on ${host}: other machines can reach it, and need a token.`
        : `it listens on ${host} without TLS: other machines can reach it, and tokens cross the network unencrypted.`,
    );
  }
  if (host === "0.0.0.0" || host === "::") {
    found.push(`from elsewhere, use this machine's address in place of ${host}; a name, if "allowedHosts" has it.`);
  }
  return found;
}
