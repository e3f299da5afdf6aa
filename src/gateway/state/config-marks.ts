// What each gateway on an engine goes by, as hashes, so that a gateway whose config is another is seen: it would let in, show
// or send what the others do not. A mark is written at the start, when the config changes, and now and then as a sign of life.

import { createHash } from "node:crypto";
import { basename } from "node:path";
import type { GatewayPlace } from "../../contracts/status.js";
import type { SharedMap } from "../../contracts/store.js";
import { isObject } from "../../runtime/words/json-object.js";

/**
 * One small write for each gateway. A gateway that is idle is told of nothing else, and takes an engine that told it nothing for 25 s
 * for one without a leader: one sign of life that is late, or lost, is no reason.
 */
export const BEAT_MS = 10_000;
/** Six signs of life that did not come, or three of an earlier version: it is gone, or nothing it does is known. */
const LOST_MS = 6 * BEAT_MS;
/** A mark of the dead is removed by whoever is left, long after everybody took it for that. */
const REMOVED_MS = 10 * LOST_MS;
/** So many differences are shown, and so many things named in each. */
const MAX_SHOWN = 16;
const MAX_NAMED = 5;
/** As much of a hash as a person compares. */
const SHORT_HASH = 8;

/** What of a config is compared. */
export interface ComparedConfig {
  /** Not compared: the same config may lie anywhere. Its name is told. */
  readonly path?: string | undefined;
  readonly servers: readonly { readonly name: string }[];
  readonly roles: unknown;
  readonly unlistedRoles: unknown;
  readonly menus: unknown;
}

export interface ConfigMark {
  readonly v: 1;
  readonly toolway: string;
  /** Counts its signs of life. */
  readonly beat: number;
  /** Hashes of its servers, by their names. */
  readonly servers: Readonly<Record<string, string>>;
  readonly roles: string;
  readonly menus: string;
  /** Absent in the marks of earlier versions. */
  readonly place?: GatewayPlace;
}

interface SeenMark {
  readonly version: string;
  readonly config: string;
  readonly place: GatewayPlace | undefined;
}

interface ConfigMarksOptions {
  readonly map: SharedMap<ConfigMark>;
  /** This gateway. */
  readonly self: string;
  readonly version: string;
  /** The machine. */
  readonly host: string;
  readonly now: () => number;
}

export class ConfigMarks {
  readonly #options: ConfigMarksOptions;
  /** When another gateway was last heard of, by our own clock: no more than there are marks. */
  readonly #heard = new Map<string, number>();
  /** What people compare of a config, by gateway. */
  readonly #short = new Map<string, { readonly key: string; readonly hash: string }>();
  readonly #unwatch: () => void;
  #own: ConfigMark | undefined;
  #address: string | undefined;

  constructor(options: ConfigMarksOptions) {
    this.#options = options;
    for (const [gateway] of options.map.entries()) this.#heard.set(gateway, options.now());
    this.#unwatch = options.map.watch((gateway, mark) => {
      if (mark === undefined) this.#heard.delete(gateway);
      else this.#heard.set(gateway, options.now());
    });
  }

  /** What we go by from now on. */
  publish({ path, servers, roles, unlistedRoles, menus }: ComparedConfig): void {
    const file = path === undefined ? undefined : basename(path);
    this.#own = {
      v: 1,
      place: { host: this.#options.host, file, address: this.#address },
      toolway: this.#options.version,
      beat: 0,
      servers: Object.fromEntries(servers.map((server) => [server.name, hashOf(server)])),
      roles: hashOf([roles, unlistedRoles]),
      menus: hashOf(menus),
    };
    this.beat();
  }

  /** Where agents reach us from now on. */
  listensAt(url: string): void {
    this.#address = new URL(url).host;
    if (this.#own?.place === undefined) return;
    this.#own = { ...this.#own, place: { ...this.#own.place, address: this.#address } };
    this.beat();
  }

  /** A sign of life. What the engine does not take now comes with the next. */
  beat(): void {
    const { map, self, now } = this.#options;
    if (this.#own === undefined) return;
    this.#own = { ...this.#own, beat: this.#own.beat + 1 };
    map.put(self, this.#own).catch(() => {});
    for (const [gateway, heardMs] of this.#heard) {
      if (gateway !== self && now() - heardMs > REMOVED_MS) map.delete(gateway).catch(() => {});
    }
  }

  /** How other gateways that live differ from this one, a sentence for each. */
  differences(): string[] {
    const { map, self, now } = this.#options;
    const own = this.#own;
    if (own === undefined) return [];
    const found: string[] = [];
    for (const [gateway, heardMs] of this.#heard) {
      if (gateway === self || now() - heardMs > LOST_MS || found.length >= MAX_SHOWN) continue;
      const mark = map.get(gateway);
      const parts = mark === undefined ? [] : differingParts(own, mark);
      if (mark === undefined || parts.length === 0) continue;
      const version = mark.toolway === own.toolway ? "" : ` (Toolway ${mark.toolway})`;
      found.push(
        `Gateway ${gateway}${version} goes by another config: ${parts.join(", ")}. Give all of them the same.`,
      );
    }
    return found;
  }

  /** What a gateway that lives goes by; undefined of one that has not said so. */
  seen(gateway: string): SeenMark | undefined {
    const { map, self } = this.#options;
    const mark = gateway === self ? this.#own : map.get(gateway);
    if (mark === undefined) return undefined;
    return { version: mark.toolway, config: this.#shortHash(gateway, mark), place: mark.place };
  }

  /** A status is asked for twice a second by open pages, and 500 servers have a hash each: made once for each config. */
  #shortHash(gateway: string, { servers, roles, menus }: ConfigMark): string {
    const key = `${roles} ${menus} ${Object.values(servers).join(" ")}`;
    const kept = this.#short.get(gateway);
    if (kept?.key === key) return kept.hash;
    const hash = hashOf({ servers, roles, menus }).slice(0, SHORT_HASH);
    // No more are kept than there are gateways: those that are gone are forgotten with the first new one.
    for (const known of this.#short.keys()) if (!this.#heard.has(known)) this.#short.delete(known);
    this.#short.set(gateway, { key, hash });
    return hash;
  }

  async close(): Promise<void> {
    this.#unwatch();
    await this.#options.map.delete(this.#options.self).catch(() => {});
  }
}

function differingParts(own: ConfigMark, other: ConfigMark): string[] {
  const names = [...new Set([...Object.keys(own.servers), ...Object.keys(other.servers)])];
  const servers = names.filter((name) => own.servers[name] !== other.servers[name]).sort((a, b) => (a < b ? -1 : 1));
  const shown = servers.slice(0, MAX_NAMED).map((name) => JSON.stringify(name));
  const more = servers.length - shown.length;
  const parts: string[] = [];
  if (servers.length > 0) {
    parts.push(`server${servers.length === 1 ? "" : "s"} ${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`);
  }
  if (own.roles !== other.roles) parts.push("roles");
  if (own.menus !== other.menus) parts.push("menus");
  return parts;
}

/** Members in the order of their names: two files may have them otherwise. */
function hashOf(value: unknown): string {
  const text = JSON.stringify(value, (_, member: unknown) =>
    isObject(member) ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))) : member,
  );
  return createHash("sha256")
    .update(text ?? "")
    .digest("base64url");
}
