// What the entry of a server says of tools whose calls are kept while the server is away, and what does not go together
// with that.

import type { OwnToolName } from "../contracts/names.js";
import { ownToolName } from "../contracts/names.js";
import type { ConfirmTerms, KeyPlace, LaneTerms, OutboxTerms } from "../contracts/outbox.js";
import { nearest } from "../runtime/nearest.js";
import { DEFAULT_OUTBOX_AGE_MS } from "./config.js";
import type { KeyPath, Report } from "./mistakes.js";
import type { OutboxEntryForm, ServerEntry, ToolEntry } from "./schema.js";

type Tools = Readonly<Record<string, ToolEntry>>;

/** The terms of a tool whose `outbox` is `true`. */
const USUAL: OutboxTerms = {
  key: undefined,
  lane: { by: "principal" },
  maxAgeMs: DEFAULT_OUTBOX_AGE_MS,
  onUnknown: "skip",
  confirm: undefined,
  tells: true,
};

/** Undefined where no tool of the entry has an outbox. What is wrong is in the report. */
export function resolveOutbox(
  {
    tools,
    isolation,
  }: { readonly tools?: Tools | undefined; readonly isolation?: ServerEntry["isolation"] | undefined },
  isMailbox: boolean,
  path: KeyPath,
  report: Report,
): ReadonlyMap<OwnToolName, OutboxTerms> | undefined {
  if (tools === undefined) return undefined;
  const terms = new Map<OwnToolName, OutboxTerms>();
  for (const [own, entry] of Object.entries(tools)) {
    const { outbox } = entry;
    if (outbox === undefined || outbox === false) continue;
    const at = [...path, own, "outbox"];
    if (isolation === "session") {
      report.mistake(at, 'calls cannot be kept at a server with "isolation": "session": its session is gone by then', {
        hint: 'remove the key, or the "isolation"',
        onKey: true,
      });
    }
    tellContradictions(entry, at, report);
    const said = outbox === true ? USUAL : read(outbox, own, tools, at, report);
    // The machine behind a mailbox writes down what it begins: the id of the message is key enough.
    const isByMessage = isMailbox && said.key === undefined;
    terms.set(ownToolName(own), isByMessage ? { ...said, key: { in: "message" } } : said);
  }
  return terms.size === 0 ? undefined : terms;
}

function tellContradictions({ readOnly, cache, hide }: ToolEntry, at: KeyPath, report: Report): void {
  const why = readOnly
    ? 'a tool that is "readOnly" has nothing that would have to be delivered later'
    : cache
      ? 'a tool with "cache" is one that only reads, and has nothing that would have to be delivered later'
      : undefined;
  if (why !== undefined) report.mistake(at, why, { hint: "remove one of the two keys", onKey: true });
  if (hide) report.warning(at, 'has no effect: the tool is hidden by "hide"', { onKey: true });
}

function read(entry: OutboxEntryForm, own: string, tools: Tools, at: KeyPath, report: Report): OutboxTerms {
  const key = entry.key === undefined ? undefined : readKey(entry.key, [...at, "key"], report);
  const lane = readLane(entry.lane, [...at, "lane"], report);
  if (key?.in === "argument" && lane.by === "argument" && key.path.join("\0") === lane.path.join("\0")) {
    report.mistake([...at, "lane"], "this is the key, which is another one for each call: there would be no order", {
      hint: 'name another argument, or set "lane" to false',
    });
  }
  const { maxAgeMs, onUnknown, tells } = entry;
  return { key, lane, maxAgeMs, onUnknown, confirm: readConfirm(entry, own, tools, [...at, "confirm"], report), tells };
}

/** Members of `_meta` that belong to the protocol or to us: a server does not look for a key there. */
const RESERVED_META = /^(?:progressToken|io\.modelcontextprotocol\/.*)$/;

function readKey(said: string, at: KeyPath, report: Report): KeyPlace | undefined {
  if (said.startsWith("_meta.") && said.length > "_meta.".length) {
    // The names of `_meta` have dots in them, so that all the rest is one name.
    const name = said.slice("_meta.".length);
    if (!RESERVED_META.test(name)) return { in: "meta", path: [name] };
    report.mistake(at, `"${name}" of _meta is the protocol's own`, {
      hint: 'name another, as "_meta.example.com/key"',
    });
    return undefined;
  }
  const path = argumentPath(said);
  if (path !== undefined) return { in: "argument", path };
  report.mistake(at, `expected "arguments.NAME" or "_meta.NAME", found ${JSON.stringify(said)}`, { hint: meant(said) });
  return undefined;
}

function readLane(said: string | boolean | undefined, at: KeyPath, report: Report): LaneTerms {
  if (said === undefined) return { by: "principal" };
  if (said === false) return { by: "none" };
  const path = said === true ? undefined : argumentPath(said);
  if (path !== undefined) return { by: "argument", path };
  const hint = said === true ? "remove the key: one lane for each principal is the default" : meant(said);
  report.mistake(at, `expected "arguments.NAME" or false, found ${JSON.stringify(said)}`, { hint });
  return { by: "principal" };
}

/** `arguments.a.b` → `["a", "b"]`. */
function argumentPath(said: string): string[] | undefined {
  const [first, ...path] = said.split(".");
  return first === "arguments" && path.length > 0 && path.every((name) => name !== "") ? path : undefined;
}

/** People write the bare name of the argument. */
function meant(said: string): string | undefined {
  return /^[\w-]+$/.test(said) && said !== "arguments" ? `did you mean "arguments.${said}"?` : undefined;
}

function readConfirm(
  { confirm, key }: OutboxEntryForm,
  own: string,
  tools: Tools,
  at: KeyPath,
  report: Report,
): ConfirmTerms | undefined {
  if (confirm === undefined) return undefined;
  const asked = Object.hasOwn(tools, confirm.tool) ? tools[confirm.tool] : undefined;
  if (confirm.tool === own) {
    report.mistake([...at, "tool"], "this is the tool itself: expected one that only reads");
  } else if (asked?.outbox !== undefined && asked.outbox !== false) {
    report.mistake([...at, "tool"], `"${confirm.tool}" has an "outbox" itself: expected a tool that only reads`);
  }
  const text = JSON.stringify(confirm.arguments);
  if (!text.includes("{key}")) {
    const near = /\{[^{}"]*\}/.exec(text)?.[0];
    const hint = near !== undefined && nearest(near, ["{key}"]) !== undefined ? 'did you mean "{key}"?' : undefined;
    report.mistake(
      [...at, "arguments"],
      'expected "{key}" in one of the strings: the same is asked of every write otherwise',
      {
        hint: hint ?? 'for instance { "query": "{key}" }',
      },
    );
  }
  if (!/^(?:\/(?:[^~/]|~[01])*)+$/.test(confirm.found)) {
    report.mistake([...at, "found"], "expected a JSON pointer, which begins with /", {
      hint: 'for instance "/issues/0"',
    });
  }
  if (key === undefined) {
    report.warning(
      at,
      'has an effect only where agents choose keys themselves: without "key" the server is not given one',
      {
        hint: 'add "key" beside it',
        onKey: true,
      },
    );
  }
  return { tool: ownToolName(confirm.tool), arguments: text, found: confirm.found };
}
