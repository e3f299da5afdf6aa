// Narrows what a principal sees by its context: rules that match take away, and none of them gives. Roles decide before
// and are not known here. Pure: the context is passed in, and whoever sets it is elsewhere.

import type { OwnToolName } from "../contracts/names.js";
import type { MenuRule } from "../contracts/settings.js";
import { isObject } from "../protocol/jsonrpc.js";
import { fits, type Glob, readGlob } from "../runtime/glob.js";
import { covers, denies, type Pattern, parsePattern, touches } from "./pattern.js";
import type { Decision } from "./policy.js";

/** What is known of a principal's situation: `phase` → `review`. */
export type Context = ReadonlyMap<string, string>;

interface Rule {
  /** How it is called in what people read: `menus[0] (phase is "review")`. */
  readonly title: string;
  /** Every one must fit; null: the key is unset. */
  readonly when: readonly (readonly [key: string, glob: Glob | null])[];
  /** Undefined where the rule only hides. */
  readonly show: readonly Pattern[] | undefined;
  readonly hide: readonly Pattern[];
  /** Why it cannot be read; where it matches, it then hides everything. */
  readonly broken: string | undefined;
}

export interface Menus {
  readonly rules: readonly Rule[];
  /** What is wrong in the rules, for the log and `status`. */
  readonly problems: readonly string[];
}

const ALLOW: Decision = { kind: "allow" };

/** How many decisions are kept for a set of rules: more than the tools of any real menu. Beyond, they are made again. */
const MAX_DECIDED = 20_000;

/** Never throws: what of a rule cannot be read counts as met where it is a condition, and hides all where it is a list. */
export function compileMenus(rules: readonly MenuRule[]): Menus {
  const compiled = rules.map((rule, index) => compileRule(rule, index));
  const problems = compiled.flatMap(({ broken }) => (broken === undefined ? [] : [broken]));
  return { rules: compiled, problems };
}

function compileRule(rule: unknown, index: number): Rule {
  const name = `menus[${index}]`;
  const { when = {}, show, hide } = isObject(rule) ? rule : { when: {}, show: [], hide: undefined };
  const conditions = conditionsOf(when);
  const shown = show === undefined ? undefined : patternsOf(show);
  const hidden = hide === undefined ? [] : patternsOf(hide);
  const broken =
    conditions === undefined
      ? `${name}: "when" cannot be read, so the rule counts always.`
      : shown === null || hidden === null || !isObject(rule)
        ? `${name}: its patterns cannot be read, so it hides everything where it counts.`
        : undefined;
  return {
    title: `${name}${whenText(conditions ?? [])}`,
    when: conditions ?? [],
    // To show nothing is to hide everything.
    show: shown === null || hidden === null ? [] : shown,
    hide: hidden ?? [],
    broken,
  };
}

function conditionsOf(when: unknown): Rule["when"] | undefined {
  if (!isObject(when)) return undefined;
  const conditions: [string, Glob | null][] = [];
  for (const [key, value] of Object.entries(when)) {
    if (typeof value !== "string" && value !== null) return undefined;
    conditions.push([key, value === null ? null : readGlob(value)]);
  }
  return conditions;
}

/** Null where one of them is no pattern, or there is no list. */
function patternsOf(texts: unknown): Pattern[] | null {
  if (!Array.isArray(texts)) return null;
  const patterns = texts.map((text: unknown) => parsePattern(text));
  return patterns.every((pattern) => pattern !== undefined) ? patterns : null;
}

function whenText(when: Rule["when"]): string {
  if (when.length === 0) return "";
  const texts = when.map(([key, glob]) => (glob === null ? `${key} is unset` : `${key} is "${glob.join("*")}"`));
  return ` (${texts.join(", ")})`;
}

const NO_CONTEXT: Context = new Map();

/** The rules that match a context: equal sets of rules have one of these, so that what they decide is decided once. */
export class MatchedMenus {
  readonly #menus: Menus;
  readonly #sets = new Map<string, MenuNarrowing>();

  constructor(menus: Menus) {
    this.#menus = menus;
  }

  /** Undefined where no rule matches: nothing is taken away. */
  of(context: Context = NO_CONTEXT): MenuNarrowing | undefined {
    const rules = this.#menus.rules.filter(({ when }) => matches(when, context));
    if (rules.length === 0) return undefined;
    const key = rules.map((rule) => this.#menus.rules.indexOf(rule)).join(",");
    let narrowing = this.#sets.get(key);
    if (narrowing === undefined) {
      // There are no more sets than contexts that were asked for since the last change of the config.
      if (this.#sets.size >= MAX_DECIDED) this.#sets.clear();
      narrowing = new MenuNarrowing(key, rules);
      this.#sets.set(key, narrowing);
    }
    return narrowing;
  }
}

function matches(when: Rule["when"], context: Context): boolean {
  return when.every(([key, glob]) => {
    const value = context.get(key);
    return glob === null ? value === undefined : value !== undefined && fits(glob, value);
  });
}

/** What some rules together leave: what is in every `show` and in no `hide`. */
export class MenuNarrowing {
  /** Equal for equal sets of rules. */
  readonly key: string;
  readonly #rules: readonly Rule[];
  readonly #decided = new Map<string, Decision>();

  constructor(key: string, rules: readonly Rule[]) {
    this.key = key;
    this.#rules = rules;
  }

  ofTool(server: string, tool: OwnToolName): Decision {
    const key = `${server.length} ${server}/${tool}`;
    let decision = this.#decided.get(key);
    if (decision === undefined) {
      decision = this.#judge(server, tool);
      if (this.#decided.size >= MAX_DECIDED) this.#decided.clear();
      this.#decided.set(key, decision);
    }
    return decision;
  }

  /**
   * Of a server's prompts, resources and all else: they go with its last tool. `tools` are those that are there without
   * menus; undefined where that is not known, and then the patterns alone tell.
   */
  ofServer(server: string, tools: readonly OwnToolName[] | undefined): Decision {
    if (tools === undefined || tools.length === 0) return this.#judgeUnknown(server);
    let hidden: Decision = ALLOW;
    for (const tool of tools) {
      hidden = this.ofTool(server, tool);
      if (hidden.kind === "allow") return ALLOW;
    }
    return hidden;
  }

  #judge(server: string, tool: OwnToolName): Decision {
    for (const { title, show, hide, broken } of this.#rules) {
      if (broken !== undefined && show?.length === 0) return deny(broken);
      const hiding = hide.find((pattern) => denies(pattern, server, tool));
      if (hiding !== undefined) return deny(`${title} hides ${JSON.stringify(hiding.text)}`);
      if (show !== undefined && !show.some((pattern) => covers(pattern, server, tool))) {
        return deny(`${title} shows other tools only`);
      }
    }
    return ALLOW;
  }

  #judgeUnknown(server: string): Decision {
    for (const { title, show, hide } of this.#rules) {
      const hiding = hide.find((pattern) => denies(pattern, server, undefined));
      if (hiding !== undefined) return deny(`${title} hides ${JSON.stringify(hiding.text)}`);
      if (show !== undefined && !show.some((pattern) => touches(pattern, server))) {
        return deny(`${title} shows other servers only`);
      }
    }
    return ALLOW;
  }
}

function deny(rule: string): Decision {
  return { kind: "deny", rule };
}
