// Resolves `executors` of a config: who makes HTTP requests in networks that the gateway cannot reach.

import type { ExecutorConfig } from "./config.js";
import type { KeyPath } from "./mistakes.js";
import type { Settings } from "./schema.js";
import { resolveSocketUrl, resolveToken } from "./servers.js";
import type { ResolveContext } from "./variables.js";

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
