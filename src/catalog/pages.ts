// The pages of a list as replies that are built once and sent many times, and the cursors that lead to them.

import type { ListKind } from "../contracts/upstream.js";
import { Fault } from "../protocol/errors.js";
import { type BytesReply, PreparedReply } from "../protocol/reply.js";
import type { View } from "./view.js";

export interface CursorSeal {
  /** Cursors go out sealed, so that nobody can make one up. */
  seal(text: string): string;
  /** Undefined for what is not ours. */
  unseal(token: string): string | undefined;
}

export interface Contents {
  /** The JSON of the entries that the view has. */
  readonly texts: readonly string[];
  /** Further members of the result, each with a comma before it. */
  readonly members: string;
}

/** The view by what its pages depend on: it holds no principal. */
interface Last {
  readonly view: Pick<View, "scope" | "era" | "key">;
  readonly pages: BytesReply[];
}

/** Many clients never ask for a second page: what does not fit on the first is lost on them. */
const DEFAULT_PAGE_SIZE = 1000;
/** For so many views (roles × scopes) the pages of each kind are kept: with more, some are built again. */
const MAX_VIEWS = 64;

export class Pages {
  readonly #size: number;
  readonly #cursors: CursorSeal;
  /** What was asked for last of each kind: nearly always by an agent like the one before. */
  readonly #last: Record<ListKind, Last | undefined> = {
    tools: undefined,
    prompts: undefined,
    resources: undefined,
    resourceTemplates: undefined,
  };
  readonly #built: Record<ListKind, Map<string, BytesReply[]>> = {
    tools: new Map(),
    prompts: new Map(),
    resources: new Map(),
    resourceTemplates: new Map(),
  };

  constructor(cursors: CursorSeal, size: number = DEFAULT_PAGE_SIZE) {
    this.#cursors = cursors;
    this.#size = Math.max(1, Math.trunc(size));
  }

  clear(kind: ListKind): void {
    this.#built[kind].clear();
    this.#last[kind] = undefined;
  }

  /** `contents` is called when nothing is kept for the view. */
  get(kind: ListKind, view: View, cursor: string | undefined, contents: () => Contents): BytesReply {
    const page = cursor === undefined ? 0 : this.#open(kind, view, cursor);
    // A list that has become shorter since the cursor was given ends here; list_changed has told so.
    return this.#all(kind, view, contents)[page] ?? pageReply(view, `{"${kind}":[]${contents().members}}`);
  }

  #all(kind: ListKind, view: View, contents: () => Contents): BytesReply[] {
    if (view.changing === true) return this.#build(kind, view, contents());
    const last = this.#last[kind];
    if (last !== undefined && isOf(last.view, view)) return last.pages;
    const pages = this.#keptOrBuilt(kind, view, contents);
    this.#last[kind] = { view: { scope: view.scope, era: view.era, key: view.key }, pages };
    return pages;
  }

  #keptOrBuilt(kind: ListKind, view: View, contents: () => Contents): BytesReply[] {
    const kept = this.#built[kind];
    // No server's name and no role has a line break in it.
    const key = `${view.era}\n${view.scope ?? ""}\n${view.key}`;
    const known = kept.get(key);
    if (known !== undefined) return known;
    const pages = this.#build(kind, view, contents());
    const oldest = kept.size < MAX_VIEWS ? undefined : kept.keys().next();
    if (oldest?.done === false) kept.delete(oldest.value);
    kept.set(key, pages);
    return pages;
  }

  #build(kind: ListKind, view: View, { texts, members }: Contents): BytesReply[] {
    const pages: BytesReply[] = [];
    for (let from = 0; from === 0 || from < texts.length; from += this.#size) {
      const items = texts.slice(from, from + this.#size).join(",");
      const more = from + this.#size < texts.length;
      const next = more ? `,"nextCursor":${JSON.stringify(this.#seal(kind, view, pages.length + 1))}` : "";
      pages.push(pageReply(view, `{"${kind}":[${items}]${next}${members}}`));
    }
    return pages;
  }

  #seal(kind: ListKind, view: View, page: number): string {
    return this.#cursors.seal(JSON.stringify([kind, view.scope ?? null, view.key, page]));
  }

  #open(kind: ListKind, view: View, cursor: string): number {
    const text = this.#cursors.unseal(cursor);
    const page = text === undefined ? undefined : pageOf(text, kind, view);
    if (page === undefined) throw new Fault("invalid", "Unknown cursor; list again from the start.");
    return page;
  }
}

function pageReply(view: View, json: string): BytesReply {
  return new PreparedReply(json, view.era === "modern" ? "modern" : undefined);
}

function isOf(kept: Last["view"], { scope, era, key }: View): boolean {
  return kept.key === key && kept.scope === scope && kept.era === era;
}

/** Undefined for a cursor of another list or view. */
function pageOf(text: string, kind: ListKind, view: View): number | undefined {
  let parts: unknown;
  try {
    parts = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(parts)) return undefined;
  const [ofKind, scope, key, page] = parts as unknown[];
  const fits = ofKind === kind && scope === (view.scope ?? null) && key === view.key;
  return fits && typeof page === "number" ? page : undefined;
}
