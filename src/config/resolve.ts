// Makes a Config of an object: decides which keys count, and resolves the settings and the servers in their order. What
// is wrong goes to the report; reading files and text is load.ts.

import type { RoleRules } from "../contracts/settings.js";
import { nearest } from "../runtime/nearest.js";
import { type Config, MAX_SERVER_NAME, parseListen, type ServerConfig } from "./config.js";
import { resolveExecutors } from "./executors.js";
import { FOREIGN_TOP_KEYS } from "./foreign-keys.js";
import { isObject, mismatch, readFields } from "./form.js";
import { keyText } from "./mistakes.js";
import { absolutePath } from "./paths.js";
import { type Settings, serverForm, settingsFields, TOP_KEYS } from "./schema.js";
import { checkEntryKeys, type ResolveContext, resolveServer, resolveUrl, text } from "./servers.js";

/** A server's name and a tool's fit in twice. */
const MAX_PATTERN = 512;

/** Undefined where the report has mistakes. */
export function resolve(value: unknown, file: string | undefined, context: ResolveContext): Config | undefined {
  const { dir, report, variables } = context;
  if (!isObject(value)) {
    report.mistake([], mismatch('an object with "mcpServers"', value));
    return undefined;
  }
  checkTopKeys(value, context);
  const settings = readFields(settingsFields, value, [], report);
  const executors = resolveExecutors(settings.executors, (name) => nameProblem(name, "executor"), context);
  const { servers, disabled } = resolveServers(value, context);

  const listen = settings.listen === undefined ? undefined : parseListen(settings.listen);
  if (settings.listen !== undefined && listen === undefined) {
    report.mistake(["listen"], "expected HOST:PORT with a port from 0 to 65535", {
      hint: 'for instance "127.0.0.1:7420" or "[::1]:7420"',
    });
  }
  const roles = resolveRoles(settings.roles ?? {}, [...servers.map((server) => server.name), ...disabled], context);
  const tls = settings.tls;
  const tlsPaths = tls && {
    cert: absolutePath(text(tls.cert, ["tls", "cert"], context), dir, variables.home),
    key: absolutePath(text(tls.key, ["tls", "key"], context), dir, variables.home),
  };
  const telemetry = resolveTelemetry(settings.telemetry, context);
  if (report.failed || listen === undefined) return undefined;
  // No mistake was found, so every setting is there.
  const { names, menu, allowedHosts, allowedOrigins, unlistedRoles, sessions, limits, drainMs, pageSize, cache } =
    settings as Settings;
  return {
    path: file,
    dir,
    servers,
    disabled,
    executors,
    listen,
    names,
    menu,
    allowedHosts,
    allowedOrigins,
    tls: tlsPaths,
    roles,
    unlistedRoles,
    sessions,
    limits,
    drainMs,
    pageSize,
    cache,
    telemetry,
    warnings: report.warnings,
  };
}

/** An object without our key is another client's. */
function resolveTelemetry(
  telemetry: Settings["telemetry"] | undefined,
  context: ResolveContext,
): { otlp: string } | undefined {
  if (telemetry?.otlp === undefined) return undefined;
  const otlp = resolveUrl(telemetry.otlp, ["telemetry", "otlp"], context);
  return otlp === undefined ? undefined : { otlp };
}

/** Other clients keep dozens of keys at the top level: only what looks like one of ours is worth a word. */
function checkTopKeys(value: Readonly<Record<string, unknown>>, { report }: ResolveContext): void {
  for (const key of Object.keys(value)) {
    if (TOP_KEYS.includes(key) || FOREIGN_TOP_KEYS.has(key)) continue;
    const near = nearest(key, TOP_KEYS);
    if (near !== undefined) report.mistake([key], "unknown key", { hint: `did you mean "${near}"?`, onKey: true });
  }
  if ("mcpServers" in value || "servers" in value || report.failed) return;
  const foreign = ["mcp", "context_servers", "mcp_servers", "projects"].find((key) => isObject(value[key]));
  if (foreign === undefined) {
    report.warning([], 'there are no servers in this config: expected "mcpServers"');
  } else {
    report.mistake([foreign], `expected the servers under "mcpServers": this is the form of another client`, {
      hint: "run `toolway import` to bring its servers over",
      onKey: true,
    });
  }
}

function resolveServers(
  value: Readonly<Record<string, unknown>>,
  context: ResolveContext,
): { servers: ServerConfig[]; disabled: string[] } {
  const { report } = context;
  const servers: ServerConfig[] = [];
  const disabled: string[] = [];
  const seen = new Map<string, string>();
  // By what the file says: an executor with a mistake in it is not unknown.
  const executors = isObject(value["executors"]) ? Object.keys(value["executors"]) : [];
  for (const group of Object.keys(value).filter((key) => key === "mcpServers" || key === "servers")) {
    const entries = value[group];
    if (!isObject(entries)) {
      report.mistake([group], mismatch("an object with a server under each name", entries));
      continue;
    }
    for (const [rawName, entry] of Object.entries(entries)) {
      const path = [group, rawName];
      const name = rawName.trim();
      const wrong = nameProblem(name, "server");
      if (wrong !== undefined) report.mistake(path, wrong, { hint: "rename the server", onKey: true });
      const first = seen.get(name);
      if (first !== undefined) {
        report.mistake(path, `a server of this name is already there, as ${first}`, {
          hint: "rename one",
          onKey: true,
        });
      }
      seen.set(name, keyText(path));
      if (!isObject(entry)) {
        report.mistake(path, mismatch('an object with "command" or "url"', entry));
        continue;
      }
      const attempted = checkEntryKeys(entry, path, report);
      if (entry["disabled"] === true || entry["enabled"] === false) {
        // Switched off, often because it does not work: it need not.
        disabled.push(name);
        continue;
      }
      const parsed = readFields(serverForm.fields, entry, path, report);
      const server = resolveServer(name, { ...parsed, attempted: [...attempted, ...missing(entry, parsed)] }, path, {
        ...context,
        executors,
      });
      if (server !== undefined) servers.push(server);
    }
  }
  return { servers, disabled };
}

/** The keys that are there, but could not be used. */
function missing(entry: object, parsed: object): string[] {
  return Object.keys(serverForm.fields).filter((key) => Object.hasOwn(entry, key) && !Object.hasOwn(parsed, key));
}

/** Names become part of a URL, percent-encoded, and of tool names, folded: nearly everything will do. */
function nameProblem(name: string, what: "server" | "executor"): string | undefined {
  if (name === "") return `expected a name for the ${what}, found none`;
  if (name.length > MAX_SERVER_NAME) return `expected a name of at most ${MAX_SERVER_NAME} characters`;
  if (name === "." || name === "..") return `"${name}" cannot be part of an address`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(name)) return "a name must not hold control characters";
  return /\p{Surrogate}/u.test(name) ? "a name must not hold half of a character (a lone surrogate)" : undefined;
}

function resolveRoles(
  roles: Settings["roles"],
  serverNames: readonly string[],
  { report }: ResolveContext,
): Record<string, RoleRules> {
  const result: Record<string, RoleRules> = Object.create(null);
  for (const [role, { allow, deny, budget }] of Object.entries(roles)) {
    result[role] = { allow, deny, budget };
    for (const [list, patterns] of Object.entries({ allow: allow ?? [], deny })) {
      patterns.forEach((pattern, index) => {
        const path = ["roles", role, list, index];
        if (pattern.length > MAX_PATTERN || !/^[^/]+(?:\/.+)?$/s.test(pattern)) {
          report.mistake(path, 'expected a pattern of the form "server/tool" or "server"', {
            hint: 'for instance "github/*"',
          });
        } else if (!mentions(pattern, serverNames)) {
          report.warning(path, `no server of this config matches ${JSON.stringify(pattern)}`);
        }
      });
    }
  }
  return result;
}

function mentions(pattern: string, serverNames: readonly string[]): boolean {
  const [server = ""] = pattern.split("/");
  return server.includes("*") || serverNames.some((name) => name === server || pattern.startsWith(`${name}/`));
}
