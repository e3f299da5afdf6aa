// What is known of one server, and how that goes to disk and back. Who keeps it on disk is not decided here.

import { type ExposedName, exposedName, type OwnName, type OwnToolName, ownName } from "../contracts/names.js";
import type { ConfirmTerms, KeyPlace } from "../contracts/outbox.js";
import type { Freshness, Listed, ListKind, ServerIntro } from "../contracts/upstream.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import { type ItemList, readItems } from "./items.js";
import { isHidden, type Overrides, type Shown } from "./names.js";

export const LIST_KINDS = ["tools", "prompts", "resources", "resourceTemplates"] as const satisfies ListKind[];

/** The lists whose entries have exposed names. */
export type NamedKind = "tools" | "prompts";

/** Which tools of a server are answered with a receipt where it is away. */
export interface KeptTools {
  has(tool: OwnToolName): boolean;
  /** What the config says of the tool. Absent where nobody knows. */
  get?(tool: OwnToolName): KeptTerms | undefined;
}

export interface KeptTerms {
  /** Where the server wants the key of a call. */
  readonly key: KeyPlace | undefined;
  /** The tool that is asked whether a call took effect. */
  readonly confirm?: Pick<ConfirmTerms, "tool"> | undefined;
}

export interface KnownServer {
  readonly name: string;
  readonly overrides: Readonly<Record<NamedKind, Overrides>>;
  /** The tools that are shown at all; undefined where all are that are not hidden. */
  readonly only: Shown | undefined;
  /** The tools whose calls may be kept. Undefined where there are none. */
  readonly outbox?: KeptTools | undefined;
  /** The tools that the config calls read-only. */
  readonly readOnly: ReadonlySet<OwnName>;
  intro: ServerIntro | undefined;
  /** A list that is absent has never been read; an empty one has. */
  readonly lists: Map<ListKind, ItemList>;
  /** What a modern server said of a list; a legacy server's has none. */
  readonly freshness: Map<ListKind, Freshness>;
}

/** What the config says of one kind of entries. */
export function settingsOf(
  { overrides, only }: Pick<KnownServer, "overrides" | "only">,
  kind: NamedKind,
): { readonly overrides: Overrides; readonly only: Shown | undefined } {
  return { overrides: overrides[kind], only: kind === "tools" ? only : undefined };
}

/** Whether agents are shown nothing of it, and may not use it. */
export function hides(known: Pick<KnownServer, "overrides" | "only">, kind: NamedKind, own: OwnName): boolean {
  return isHidden(settingsOf(known, kind), own);
}

/** Raised when the format changes; another version is ignored, and the lists are read from the servers again. */
const FORMAT = 1;

export interface Restored {
  readonly prefix: string | undefined;
  readonly intro: ServerIntro | undefined;
  readonly lists: ReadonlyMap<ListKind, ItemList>;
  readonly names: Readonly<Record<NamedKind, ReadonlyMap<OwnName, ExposedName>>>;
}

export function toSnapshot(
  known: KnownServer,
  prefix: string | undefined,
  names: Readonly<Record<NamedKind, ReadonlyMap<OwnName, ExposedName> | undefined>>,
): JsonObject {
  const lists: JsonObject = {};
  for (const [kind, { items }] of known.lists) lists[kind] = items.map(({ json }) => json);
  return {
    format: FORMAT,
    ...(prefix === undefined ? {} : { prefix }),
    ...(known.intro === undefined ? {} : { intro: known.intro }),
    lists,
    names: { tools: [...(names.tools ?? [])], prompts: [...(names.prompts ?? [])] },
  };
}

/** Undefined for what no snapshot can be; parts that make no sense are left out. */
export function fromSnapshot(server: string, snapshot: unknown): Restored | undefined {
  if (!isObject(snapshot) || snapshot["format"] !== FORMAT) return undefined;
  const { prefix, intro, lists, names } = snapshot;
  const restored = new Map<ListKind, ItemList>();
  for (const kind of LIST_KINDS) {
    const texts = isObject(lists) && Object.hasOwn(lists, kind) ? lists[kind] : undefined;
    if (!Array.isArray(texts)) continue;
    const listed = texts.map(toListed).filter((item) => item !== undefined);
    restored.set(kind, readItems(server, kind, listed, true));
  }
  return {
    prefix: typeof prefix === "string" ? prefix : undefined,
    intro: toIntro(intro),
    lists: restored,
    names: {
      tools: toNames(isObject(names) ? names["tools"] : undefined),
      prompts: toNames(isObject(names) ? names["prompts"] : undefined),
    },
  };
}

function toListed(text: unknown): Listed | undefined {
  if (typeof text !== "string") return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? { json: text, value } : undefined;
  } catch {
    return undefined;
  }
}

function toIntro(value: unknown): ServerIntro | undefined {
  if (!isObject(value)) return undefined;
  const { era, version, capabilities, serverInfo, instructions, more } = value;
  if (typeof version !== "string" || !isObject(capabilities) || !isObject(serverInfo)) return undefined;
  return {
    ...(era === "modern" ? { era } : {}),
    version,
    capabilities,
    serverInfo,
    instructions: typeof instructions === "string" ? instructions : undefined,
    ...(isObject(more) ? { more } : {}),
  };
}

function toNames(pairs: unknown): Map<OwnName, ExposedName> {
  const names = new Map<OwnName, ExposedName>();
  if (!Array.isArray(pairs)) return names;
  for (const pair of pairs as unknown[]) {
    if (!Array.isArray(pair)) continue;
    const [own, exposed] = pair as unknown[];
    if (typeof own === "string" && typeof exposed === "string") names.set(ownName(own), exposedName(exposed));
  }
  return names;
}
