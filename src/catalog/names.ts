// Decides which exposed name each tool or prompt has. How a name is spelled is short-names.ts's, the lists are the
// catalog's.

import { type ExposedName, exposedName, type OwnName } from "../contracts/names.js";
import type { NameMode, Override } from "../contracts/settings.js";
import { fits, type Glob } from "../runtime/glob.js";
import { Conflicts } from "./conflicts.js";
import { fold, isExact, isExposable, MAX_NAME, NameSpace, nameCandidate, prefixCandidate } from "./short-names.js";

export type Overrides = ReadonlyMap<OwnName, Override>;

export interface NameSource {
  readonly server: string;
  /** In the server's order, without duplicates. */
  readonly own: readonly OwnName[];
  readonly overrides: Overrides;
  /** Patterns of own names: what fits none of them is hidden. Undefined where nothing is hidden by them. */
  readonly only?: Shown | undefined;
}

/** The own names that are shown at all. */
export type Shown = readonly Glob[];

/** Names given before, which are kept: server → own name → exposed name, without those that the config gave. */
export type KeptNames = ReadonlyMap<string, ReadonlyMap<OwnName, ExposedName>>;

export interface Owner {
  readonly server: string;
  readonly own: OwnName;
}

export interface Assignment {
  /** server → own name → exposed name. What is hidden or refused is absent. */
  readonly exposed: ReadonlyMap<string, ReadonlyMap<OwnName, ExposedName>>;
  readonly owners: ReadonlyMap<ExposedName, Owner>;
  /** To be passed in next time. */
  readonly kept: KeptNames;
  /** What was refused or not done as the config says, and what to do about it. */
  readonly conflicts: readonly string[];
}

export interface NamingOptions {
  readonly mode: NameMode;
  readonly noun: "tool" | "prompt";
  /** Names of the gateway's own, which nobody else gets. */
  readonly reserved?: readonly string[];
  /** server → prefix, from assignPrefixes; needed in prefixed mode. */
  readonly prefixes?: ReadonlyMap<string, string>;
  readonly previous?: KeptNames | undefined;
}

/**
 * A prefix for each server, distinct without regard to case and punctuation. One given before is kept; among new
 * ones the first in the config has the plain one.
 */
export function assignPrefixes(
  servers: readonly string[],
  previous: ReadonlyMap<string, string> = new Map(),
): Map<string, string> {
  const prefixes = new Map<string, string>();
  const taken = new Set<string>();
  const give = (server: string, prefix: string): boolean => {
    if (taken.has(fold(prefix))) return false;
    taken.add(fold(prefix));
    prefixes.set(server, prefix);
    return true;
  };
  for (const server of servers) {
    const before = previous.get(server);
    // A hint that this server could not have been given is none.
    if (before !== undefined && isExposable(before) && before.length < MAX_NAME / 2) give(server, before);
  }
  for (const server of servers) {
    for (let attempt = 0; !prefixes.has(server); attempt++) give(server, prefixCandidate(server, attempt));
  }
  return prefixes;
}

/**
 * Makes the whole assignment. It depends on the sets of names and on `previous`, not on the order in which lists came.
 */
export function assignNames(sources: readonly NameSource[], options: NamingOptions): Assignment {
  return options.mode === "plain" ? plainNames(sources, options) : prefixedNames(sources, options);
}

class NameTable {
  readonly exposed = new Map<string, Map<OwnName, ExposedName>>();
  readonly owners = new Map<ExposedName, Owner>();
  readonly kept = new Map<string, Map<OwnName, ExposedName>>();
  readonly said = new Conflicts();

  get conflicts(): string[] {
    return this.said.texts;
  }

  enter(server: string, own: OwnName, name: ExposedName, automatic: boolean): void {
    this.owners.set(name, { server, own });
    entry(this.exposed, server).set(own, name);
    if (automatic) entry(this.kept, server).set(own, name);
  }

  has(server: string, own: OwnName): boolean {
    return this.exposed.get(server)?.has(own) === true;
  }
}

function entry(map: Map<string, Map<OwnName, ExposedName>>, key: string): Map<OwnName, ExposedName> {
  let inner = map.get(key);
  if (inner === undefined) {
    inner = new Map();
    map.set(key, inner);
  }
  return inner;
}

export function isHidden({ overrides, only }: Pick<NameSource, "overrides" | "only">, own: OwnName): boolean {
  if (overrides.get(own)?.hide === true) return true;
  return only !== undefined && !only.some((glob) => fits(glob, own));
}

function prefixedNames(
  sources: readonly NameSource[],
  { noun, reserved, prefixes, previous }: NamingOptions,
): Assignment {
  const table = new NameTable();
  const space = new NameSpace();
  for (const name of reserved ?? []) space.take(name);

  // 1. What the config names, whether or not its server's list is known: no automatic name is ever in its way.
  for (const source of sources) {
    const own = new Set(source.own);
    for (const [tool, { name }] of source.overrides) {
      if (name === undefined || isHidden(source, tool)) continue;
      const usable = isExposable(name);
      if (usable && space.take(name)) {
        if (own.has(tool)) table.enter(source.server, tool, exposedName(name), false);
      } else if (own.has(tool)) {
        const why = usable
          ? "another name, equal but for case and punctuation, comes first"
          : `only letters, digits and _ are possible, at most ${MAX_NAME}`;
        table.said.add(
          `The config renames ${noun} ${quote(tool)} of server ${quote(source.server)} to ${quote(name)}: not done, ` +
            `${why}. Choose another name.`,
        );
      }
    }
  }

  // 2. What was given before stays.
  for (const source of sources) {
    const before = previous?.get(source.server);
    const head = `${prefixes?.get(source.server)}__`;
    if (before === undefined) continue;
    for (const tool of source.own) {
      const name = before.get(tool);
      if (name === undefined || isHidden(source, tool) || table.has(source.server, tool)) continue;
      if (name.startsWith(head) && isExposable(name) && space.take(name)) {
        table.enter(source.server, tool, name, true);
      }
    }
  }

  // 3. New ones: those that need no change first, then by name, so that the server's order decides nothing.
  for (const source of sources) {
    const { server } = source;
    const fresh = source.own.filter((tool) => !isHidden(source, tool) && !table.has(server, tool));
    fresh.sort((a, b) => Number(isExact(b)) - Number(isExact(a)) || (a < b ? -1 : 1));
    const prefix = prefixes?.get(server) ?? prefixCandidate(server, 0);
    for (const tool of fresh) {
      for (let attempt = 0; ; attempt++) {
        const name = nameCandidate(prefix, server, tool, attempt);
        if (!space.take(name)) continue;
        table.enter(server, tool, name, true);
        break;
      }
    }
  }
  return table;
}

function plainNames(sources: readonly NameSource[], { noun, reserved }: NamingOptions): Assignment {
  const table = new NameTable();
  const own = new Set(reserved);
  const folded = new Map<string, ExposedName>();
  for (const source of sources) {
    const { server } = source;
    // Within a server, what the config names comes before what the server names.
    const renamed = (tool: OwnName): string | undefined => source.overrides.get(tool)?.name;
    const order = [
      ...source.own.filter((tool) => renamed(tool) !== undefined),
      ...source.own.filter((tool) => renamed(tool) === undefined),
    ];
    for (const tool of order) {
      if (isHidden(source, tool)) continue;
      const name = exposedName(renamed(tool) ?? tool);
      const owner = table.owners.get(name);
      if (owner === undefined && !own.has(name) && name !== "") {
        const twin = folded.get(fold(name));
        if (twin !== undefined && fold(name) !== "") {
          table.said.add(
            `The ${noun}s ${quote(twin)} and ${quote(name)} differ in case or punctuation only: ` +
              `some clients drop one of them. Rename one under "${noun}s" in the config, or use prefixed names.`,
          );
        }
        folded.set(fold(name), name);
        table.enter(server, tool, name, false);
        continue;
      }
      const what = `The ${noun} ${quote(tool)} of server ${quote(server)}${(name as string) === tool ? "" : ` (renamed ${quote(name)})`}`;
      const fix = `Rename one of them under "${noun}s" in the config, or use prefixed names.`;
      if (owner !== undefined && owner.server !== server) {
        const first = `server ${quote(owner.server)}, earlier in the config`;
        table.said.claim({
          cause: JSON.stringify([server, owner.server]),
          name: quote(name),
          alone: `${what} is left out: ${first}, has a ${noun} of that name. ${fix}`,
          together: (names, n) =>
            `${n} ${noun}s of server ${quote(server)} are left out: ${first}, has ${noun}s of those names: ${names}. ` +
            `Rename them under "${noun}s" in the config, or use prefixed names.`,
        });
        continue;
      }
      const why =
        owner === undefined ? "the gateway uses that name itself" : `its ${noun} ${quote(owner.own)} has that name`;
      table.said.add(`${what} is left out: ${why}. ${fix}`);
    }
  }
  return table;
}

function quote(text: string): string {
  // Names come from servers: long ones are cut so that a line of `status` stays one.
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 79)}…` : text);
}
