// Makes a Config of an object: decides which keys count, and resolves the settings. The servers are entries.ts's. What
// is wrong goes to the report; reading files and text is load.ts.

import type { RoleRules } from "../contracts/settings.js";
import { nearest } from "../runtime/nearest.js";
import { type Config, parseListen } from "./config.js";
import { type EntriesContext, nameProblem, resolveEntries } from "./entries.js";
import { resolveExecutors } from "./executors.js";
import { FOREIGN_TOP_KEYS } from "./foreign-keys.js";
import { isObject, mismatch, readFields } from "./form.js";
import { absolutePath } from "./paths.js";
import { type Settings, settingsFields, TOP_KEYS } from "./schema.js";
import { type ResolveContext, resolveUrl, text } from "./servers.js";

/** A server's name and a tool's fit in twice. */
const MAX_PATTERN = 512;

/** Undefined where the report has mistakes. */
export function resolve(value: unknown, context: EntriesContext): Config | undefined {
  const { file, dir, report, variables } = context;
  if (!isObject(value)) {
    report.mistake([], mismatch('an object with "mcpServers"', value));
    return undefined;
  }
  checkTopKeys(value, context);
  const settings = readFields(settingsFields, value, [], report);
  const executors = resolveExecutors(settings.executors, (name) => nameProblem(name, "executor"), context);
  const { servers, misconfigured, disabled } = resolveEntries(value, context);

  const listen = settings.listen === undefined ? undefined : parseListen(settings.listen);
  if (settings.listen !== undefined && listen === undefined) {
    report.mistake(["listen"], "expected HOST:PORT with a port from 0 to 65535", {
      hint: 'for instance "127.0.0.1:7420" or "[::1]:7420"',
    });
  }
  const roles = resolveRoles(
    settings.roles ?? {},
    [...servers, ...misconfigured].map(({ name }) => name).concat(disabled),
    context,
  );
  const tls = settings.tls;
  const tlsPaths = tls && {
    cert: absolutePath(text(tls.cert, ["tls", "cert"], context), dir, variables.home),
    key: absolutePath(text(tls.key, ["tls", "key"], context), dir, variables.home),
  };
  const { state } = settings;
  const stateDir = state && absolutePath(text(state, ["state"], context), dir, variables.home);
  const telemetry = resolveTelemetry(settings.telemetry, context);
  if (report.failed || listen === undefined) return undefined;
  // No mistake was found, so every setting is there.
  const { names, menu, allowedHosts, allowedOrigins, unlistedRoles, sessions, limits, drainMs, pageSize, cache, log } =
    settings as Settings;
  return {
    path: file,
    dir,
    servers,
    misconfigured,
    disabled,
    executors,
    listen,
    names,
    menu,
    allowedHosts,
    allowedOrigins,
    tls: tlsPaths,
    stateDir,
    roles,
    unlistedRoles,
    sessions,
    limits,
    drainMs,
    pageSize,
    cache,
    telemetry,
    log,
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
