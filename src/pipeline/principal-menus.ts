// What menus leave to each principal: finds the rules that fit its context, and what they say of a tool or a server.
// The rules themselves are policy/menus.ts, the contexts policy/contexts.ts.

import type { Principal } from "../contracts/caller.js";
import type { OwnToolName } from "../contracts/names.js";
import type { Contexts } from "../policy/contexts.js";
import { MatchedMenus, type MenuNarrowing, type Menus } from "../policy/menus.js";
import type { Decision } from "../policy/policy.js";

/** What a server's part of the menu depends on, besides the rules. */
export interface KnownMenu {
  /** The tools that the config shows of a server; undefined where its list has never been read. */
  shownTools(server: string): readonly OwnToolName[] | undefined;
  /** Changes with any list of tools. */
  version(kind: "tools"): number;
}

/** As many as have a context, and those of short runs; beyond, what fits is found again. */
const MAX_KEPT = 10_000;

const ALLOW: Decision = { kind: "allow" };

export class PrincipalMenus {
  readonly #matched: MatchedMenus;
  readonly #contexts: Contexts;
  readonly #known: KnownMenu;
  readonly #allowsByRole: (principal: Principal, server: string, tool: OwnToolName) => boolean;
  readonly #byPrincipal = new Map<string, MenuNarrowing | undefined>();
  /** Of whole servers, by rules, role and name; good for one version of the lists. */
  readonly #servers = new Map<string, Decision>();
  #version = -1;

  constructor(
    menus: Menus,
    contexts: Contexts,
    known: KnownMenu,
    allowsByRole: (principal: Principal, server: string, tool: OwnToolName) => boolean,
  ) {
    this.#matched = new MatchedMenus(menus);
    this.#contexts = contexts;
    this.#known = known;
    this.#allowsByRole = allowsByRole;
  }

  /** Undefined where no rule fits the principal's context. */
  of({ id }: Principal): MenuNarrowing | undefined {
    if (this.#byPrincipal.has(id)) return this.#byPrincipal.get(id);
    const narrowing = this.#matched.of(this.#contexts.of(id));
    if (this.#byPrincipal.size >= MAX_KEPT) this.#byPrincipal.clear();
    this.#byPrincipal.set(id, narrowing);
    return narrowing;
  }

  /** Of what the role allows. `tool` is undefined for anything else that the server has. */
  decide(principal: Principal, server: string, tool: OwnToolName | undefined): Decision {
    const narrowing = this.of(principal);
    if (narrowing === undefined) return ALLOW;
    return tool === undefined ? this.#ofServer(narrowing, principal, server) : narrowing.ofTool(server, tool);
  }

  /** Its context has changed. */
  contextChanged(principal: string): void {
    this.#byPrincipal.delete(principal);
  }

  /** Roles have changed, and with them what is left of servers. */
  rolesChanged(): void {
    this.#servers.clear();
  }

  #ofServer(narrowing: MenuNarrowing, principal: Principal, server: string): Decision {
    const version = this.#known.version("tools");
    if (version !== this.#version || this.#servers.size >= MAX_KEPT) {
      this.#servers.clear();
      this.#version = version;
    }
    const key = JSON.stringify([narrowing.key, principal.role, principal.needsRole, server]);
    let decision = this.#servers.get(key);
    if (decision === undefined) {
      const tools = this.#known.shownTools(server)?.filter((tool) => this.#allowsByRole(principal, server, tool));
      decision = narrowing.ofServer(server, tools);
      this.#servers.set(key, decision);
    }
    return decision;
  }
}
