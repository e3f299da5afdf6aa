// Makes a Config of an object: decides which keys count, and resolves the settings. The servers are entries.ts's. What
// is wrong goes to the report; reading files and text is load.ts.

import type { MenuRule, RoleRules, UnlistedRoles } from "../contracts/settings.js";
import { DEFAULT_ROLE, EXECUTOR_ROLE } from "../contracts/settings.js";
import { fits, readGlob } from "../runtime/glob.js";
import { nearest } from "../runtime/nearest.js";
import { isObject } from "../runtime/words/json-object.js";
import { resolveAdmin } from "./admin.js";
import { FOREIGN_GROUPS, FOREIGN_TOP_KEYS } from "./clients/foreign-keys.js";
import { type Config, type ExecutorConfig, parseListen, type ShareConfig } from "./config.js";
import { resolveEngine } from "./engine.js";
import { type EntriesContext, nameProblem, resolveEntries } from "./entries.js";
import { mismatch, readFields } from "./form.js";
import type { KeyPath } from "./mistakes.js";
import { absolutePath } from "./paths.js";
import { type Settings, settingsFields, TOP_KEYS } from "./schema.js";
import { resolveSocketUrl, resolveToken, resolveUrl } from "./servers.js";
import { type ResolveContext, text } from "./variables.js";

/** A server's name and a tool's fit in twice. */
const MAX_PATTERN = 512;

/** A body takes three times its bytes of "heldBytes", of which its principal has three quarters at most. */
export const HELD_FOR_BODY = 4;

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
  const serverNames = [...servers, ...misconfigured].map(({ name }) => name).concat(disabled);
  const roles = resolveRoles(settings.roles ?? {}, serverNames, context);
  const menus = resolveMenus(settings.menus ?? [], serverNames, context);
  tellDefaultRole(roles, settings.unlistedRoles, context);
  (settings.allowedOrigins ?? []).forEach((origin, index) => {
    const wrong = originProblem(origin);
    if (wrong !== undefined) report.mistake(["allowedOrigins", index], wrong.message, { hint: wrong.hint });
  });
  tellUnusedExecutors(settings.executors ?? {}, value, context);
  const tls = settings.tls;
  const tlsPaths = tls && {
    cert: absolutePath(text(tls.cert, ["tls", "cert"], context), dir, variables.home),
    key: absolutePath(text(tls.key, ["tls", "key"], context), dir, variables.home),
  };
  const { state } = settings;
  const stateDir = state && absolutePath(text(state, ["state"], context), dir, variables.home);
  const telemetry = resolveTelemetry(settings.telemetry, context);
  const audit = settings.audit && {
    ...settings.audit,
    path:
      settings.audit.path && absolutePath(text(settings.audit.path, ["audit", "path"], context), dir, variables.home),
  };
  const share = resolveShare(settings.share, context);
  const engine = resolveEngine(settings.engine, context);
  const admin = resolveAdmin(settings.admin, context);
  checkMemory(settings.limits, value, context);
  if (report.failed || listen === undefined) return undefined;
  // No mistake was found, so every setting is there.
  const {
    names,
    menu,
    allowedHosts,
    allowedOrigins,
    unlistedRoles,
    sessions,
    limits,
    drainMs,
    pageSize,
    cache,
    outbox,
    log,
  } = settings as Settings;
  return {
    path: file,
    dir,
    servers,
    misconfigured,
    unanswered: [],
    disabled,
    executors,
    share,
    mailboxes: settings.mailboxes !== undefined,
    engine,
    admin,
    listen,
    names,
    menu,
    allowedHosts,
    allowedOrigins,
    tls: tlsPaths,
    stateDir,
    roles,
    unlistedRoles,
    menus,
    sessions,
    limits,
    drainMs,
    pageSize,
    cache,
    outbox,
    telemetry,
    audit,
    log,
    warnings: report.warnings,
  };
}

/** A body that there is never room for would be refused, whatever its own limit says. */
function checkMemory(
  limits: Settings["limits"] | undefined,
  value: Readonly<Record<string, unknown>>,
  { report }: ResolveContext,
): void {
  if (limits === undefined) return;
  const { bodyBytes, heldBytes } = limits;
  const largest = Math.floor(heldBytes / HELD_FOR_BODY);
  if (bodyBytes <= largest) return;
  // Whichever of the two the file has: the other is the default.
  const key = isObject(value["limits"]) && "heldBytes" in value["limits"] ? "heldBytes" : "bodyBytes";
  report.warning(
    ["limits", key],
    `bodies of more than ${largest} bytes are refused, although "bodyBytes" is ${bodyBytes}: ` +
      `there is never room for them with "heldBytes" at ${heldBytes}`,
    { hint: `four times "bodyBytes", ${HELD_FOR_BODY * bodyBytes}, has room for the largest` },
  );
}

type ExecutorEntry = NonNullable<Settings["executors"]>[string];

/** What cannot be used is left out, and the reason in the report. */
function resolveExecutors(
  entries: Settings["executors"] | undefined,
  nameProblem: (name: string) => string | undefined,
  context: ResolveContext,
): ExecutorConfig[] {
  const executors: ExecutorConfig[] = [];
  for (const [name, entry] of Object.entries(entries ?? {})) {
    const path = ["executors", name];
    const wrong = nameProblem(name);
    if (wrong !== undefined) context.report.mistake(path, wrong, { hint: "rename the executor", onKey: true });
    else executors.push(resolveExecutor(name, entry, path, context));
  }
  return executors;
}

function resolveExecutor(name: string, entry: ExecutorEntry, path: KeyPath, context: ResolveContext): ExecutorConfig {
  const { report } = context;
  if (entry.url !== undefined && entry.urls !== undefined) {
    report.mistake([...path, "urls"], '"url" and "urls" mean the same: expected one of them', { onKey: true });
  }
  const given =
    entry.url === undefined
      ? (entry.urls ?? []).map((url, index) => ({ url, at: [...path, "urls", index] }))
      : [{ url: entry.url, at: [...path, "url"] }];
  const token = entry.token === undefined ? undefined : resolveToken(entry.token, [...path, "token"], context);
  if (entry.token !== undefined && given.length === 0) {
    report.mistake([...path, "token"], 'a "token" is shown to executors at a "url", and there is none', {
      hint: `executors that dial in show one of ours: \`toolway token create --id ${name} --role executor\``,
      onKey: true,
    });
  }
  const urls: string[] = [];
  for (const { url, at } of given) {
    const what = token === undefined ? "all requests" : "the token and all requests";
    const resolved = resolveSocketUrl(url, at, what, context);
    if (resolved !== undefined && urls.includes(resolved)) report.mistake(at, "this address is there already");
    else if (resolved !== undefined) urls.push(resolved);
  }
  if (entry.noAuth === true && given.length > 0) {
    report.mistake([...path, "noAuth"], '"noAuth" is for executors that dial in, and this one is dialled', {
      hint: "remove it",
      onKey: true,
    });
  }
  return { name, urls, token, noAuth: entry.noAuth ?? false };
}

/** An object without our key is another client's. */
function resolveTelemetry(telemetry: Settings["telemetry"] | undefined, context: ResolveContext): Config["telemetry"] {
  if (telemetry?.otlp === undefined) return undefined;
  const otlp = resolveUrl(telemetry.otlp, ["telemetry", "otlp"], context);
  return otlp === undefined ? undefined : { otlp, metrics: telemetry.metrics ?? true };
}

function resolveShare(share: Settings["share"] | undefined, context: ResolveContext): ShareConfig | undefined {
  if (share === undefined) return undefined;
  const broker = resolveSocketUrl(share.broker, ["share", "broker"], "the token and all messages", context);
  const as = text(share.as, ["share", "as"], context);
  const token = share.token === undefined ? undefined : resolveToken(share.token, ["share", "token"], context);
  if (as.includes("#")) context.report.mistake(["share", "as"], 'expected the id of a token, which has no "#"');
  return broker === undefined ? undefined : { broker, as, token, calls: share.calls };
}

/** Other clients keep dozens of keys at the top level: only what looks like one of ours is worth a word. */
function checkTopKeys(value: Readonly<Record<string, unknown>>, { report }: ResolveContext): void {
  for (const key of Object.keys(value)) {
    if (TOP_KEYS.includes(key) || FOREIGN_TOP_KEYS.has(key)) continue;
    const near = nearest(key, TOP_KEYS);
    if (near !== undefined) report.mistake([key], "unknown key", { hint: `did you mean "${near}"?`, onKey: true });
  }
  if ("mcpServers" in value || "servers" in value || report.failed) return;
  const foreign = FOREIGN_GROUPS.find((key) => isObject(value[key]));
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
  context: ResolveContext,
): Record<string, RoleRules> {
  const result: Record<string, RoleRules> = Object.create(null);
  for (const [role, { allow, deny, budget }] of Object.entries(roles)) {
    result[role] = { allow, deny, budget };
    checkPatterns(allow, ["roles", role, "allow"], serverNames, context);
    checkPatterns(deny, ["roles", role, "deny"], serverNames, context);
    if (role === EXECUTOR_ROLE) {
      context.report.warning(
        ["roles", role],
        "this has no effect: tokens of that role let executors in, and no agent",
        {
          hint: "name the role otherwise",
          onKey: true,
        },
      );
    }
  }
  return result;
}

function resolveMenus(menus: Settings["menus"], serverNames: readonly string[], context: ResolveContext): MenuRule[] {
  menus.forEach(({ show, hide }, index) => {
    checkPatterns(show, ["menus", index, "show"], serverNames, context);
    checkPatterns(hide, ["menus", index, "hide"], serverNames, context);
    if (show === undefined && hide.length === 0) {
      context.report.warning(["menus", index], "this has no effect: it neither shows nor hides anything");
    }
  });
  return menus;
}

function checkPatterns(
  patterns: readonly string[] = [],
  path: KeyPath,
  serverNames: readonly string[],
  { report }: ResolveContext,
): void {
  patterns.forEach((pattern, index) => {
    const place = [...path, index];
    if (pattern.length > MAX_PATTERN || !/^[^/]+(?:\/.+)?$/s.test(pattern)) {
      report.mistake(place, 'expected a pattern of the form "server/tool" or "server"', {
        hint: 'for instance "github/*"',
      });
    } else if (!mentions(pattern, serverNames)) {
      const [server = ""] = pattern.split("/");
      const near = nearest(server, serverNames);
      const meant = near === undefined ? undefined : near + pattern.slice(server.length);
      const hint = meant === undefined ? undefined : `did you mean ${JSON.stringify(meant)}?`;
      report.warning(place, `no server of this config matches ${JSON.stringify(pattern)}`, { hint });
    }
  });
}

function mentions(pattern: string, serverNames: readonly string[]): boolean {
  const [server = ""] = pattern.split("/");
  const glob = readGlob(server);
  return serverNames.some((name) => fits(glob, name) || pattern.startsWith(`${name}/`));
}

/** Whoever closes the door to roles without an entry closes it to the token that `serve` shows, and may not see that. */
function tellDefaultRole(
  roles: Readonly<Record<string, RoleRules>>,
  unlisted: UnlistedRoles | undefined,
  { report }: ResolveContext,
): void {
  if (unlisted !== "deny" || Object.hasOwn(roles, DEFAULT_ROLE)) return;
  const message = `the default token has the role "${DEFAULT_ROLE}", which has no entry: it may use no tool`;
  report.warning(["unlistedRoles"], message, {
    hint: `add "${DEFAULT_ROLE}" under "roles", or make tokens of your roles by \`toolway token create\``,
  });
}

/** What an origin is: `scheme://host[:port]`, as a browser writes it. Anything else would never fit, or fit too much. */
function originProblem(origin: string): { message: string; hint: string } | undefined {
  const message = "expected the origin of a web page: scheme://host[:port]";
  if (origin.includes("*")) {
    return { message: `${message}, without *`, hint: "name each origin: any other page could use the tools" };
  }
  if (/^[^\s/?#@]+$/.test(origin) && origin !== "null") {
    return { message, hint: `for instance ${JSON.stringify(`https://${origin}`)}` };
  }
  if (!/^[a-z][a-z\d+.-]*:\/\/[^\s/?#@]+\/?$/i.test(origin)) {
    const whole = /^https?:/i.test(origin) && URL.canParse(origin) ? new URL(origin).origin : "https://app.example.com";
    return { message, hint: `for instance ${JSON.stringify(whole)}` };
  }
  // Browsers leave out the usual port, and write names in ASCII.
  const known = /^https?:/i.test(origin) && URL.canParse(origin) ? new URL(origin).origin : undefined;
  if (known === undefined || known === origin.toLowerCase().replace(/\/$/, "")) return undefined;
  return { message: `${message}, as browsers write it`, hint: `write ${JSON.stringify(known)}` };
}

function tellUnusedExecutors(
  executors: object,
  value: Readonly<Record<string, unknown>>,
  { report }: ResolveContext,
): void {
  // Those that are switched off count: they may be switched on again.
  const entries = ["mcpServers", "servers"].flatMap((group) =>
    isObject(value[group]) ? Object.values(value[group]) : [],
  );
  const used = new Set(entries.flatMap((entry) => (isObject(entry) ? [entry["via"]] : [])));
  for (const name of Object.keys(executors)) {
    // Who begins with the executors has no servers yet.
    if (used.has(name) || entries.length === 0) continue;
    const hint = `a server goes through it by "via": ${JSON.stringify(name)}`;
    report.warning(["executors", name], "has no effect: no server goes through it", { hint, onKey: true });
  }
}
