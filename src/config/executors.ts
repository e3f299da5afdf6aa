// Resolves `executors` of a config: who makes HTTP requests in networks that the gateway cannot reach.

import { isLoopback } from "../runtime/addresses.js";
import type { ExecutorConfig } from "./config.js";
import type { KeyPath } from "./mistakes.js";
import type { Settings } from "./schema.js";
import { expandAt, type ResolveContext } from "./servers.js";

type Entry = NonNullable<Settings["executors"]>[string];

/** What cannot be used is left out, and the reason in the report. */
export function resolveExecutors(
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

function resolveExecutor(name: string, entry: Entry, path: KeyPath, context: ResolveContext): ExecutorConfig {
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
      hint: `executors that dial in show one of ours: toolway token create --id ${name} --role executor`,
      onKey: true,
    });
  }
  const urls: string[] = [];
  for (const { url, at } of given) {
    const resolved = resolveSocketUrl(url, at, token !== undefined, context);
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

function resolveToken(raw: string, path: KeyPath, context: ResolveContext): string | undefined {
  const { value, complete } = expandAt(raw, path, context);
  if (!complete) return undefined;
  if (/^[\x21-\x7e]+$/.test(value)) return value;
  context.report.mistake(path, "expected a token without spaces, in letters that can be sent in a header");
  return undefined;
}

function resolveSocketUrl(raw: string, path: KeyPath, secret: boolean, context: ResolveContext): string | undefined {
  const { value, complete } = expandAt(raw, path, context);
  if (!complete) return undefined;
  const url = URL.canParse(value.trim()) ? new URL(value.trim()) : undefined;
  if (url?.protocol !== "ws:" && url?.protocol !== "wss:") {
    // The value may hold a secret by now, so it is not shown.
    context.report.mistake(path, "expected an address that starts with ws:// or wss://");
    return undefined;
  }
  if (url.protocol === "ws:" && !isLoopback(url.hostname)) {
    const what = secret ? "the token and all requests" : "all requests";
    context.report.warning(path, `${what} go there unencrypted`, { hint: "use wss://" });
  }
  return url.href;
}
