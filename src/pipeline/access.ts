// Says who may see and use what: policy, guard and pins for agents, everything but what the guard denies for the
// operator. The rules themselves are policy/'s.

import type { View } from "../catalog/view.js";
import type { Caller, Principal } from "../contracts/caller.js";
import type { OwnToolName } from "../contracts/names.js";
import type { Pins } from "../contracts/pins.js";
import type { ServerHandle } from "../contracts/servers.js";
import type { ProgramGuard } from "../policy/guard.js";
import { type Decision, decide, type Policy, seesServer } from "../policy/policy.js";
import { Fault, type RefusalRule } from "../protocol/errors.js";
import type { PrincipalMenus } from "./principal-menus.js";

/** The operator at the control socket or in the program that embeds us: policy is about agents. Known by identity. */
export const OPERATOR: Principal = { id: "operator", role: "operator" };

export class Access {
  policy: Policy;
  /** Undefined where the config has no menus. */
  menus: PrincipalMenus | undefined;
  /** Why nothing can be called now, whoever asks; undefined where nothing ever stands against it. */
  halted: (() => Fault | undefined) | undefined;
  readonly #guard: ProgramGuard;
  readonly #pins: Pins;
  /** The keys of views by role: made once, each of them is compared in no time. */
  readonly #roleKeys = new Map<string, string>();

  constructor(policy: Policy, guard: ProgramGuard, pins: Pins) {
    this.policy = policy;
    this.#guard = guard;
    this.#pins = pins;
  }

  /** `tool` is undefined for anything else that the server has. */
  decide(principal: Principal, server: string, tool: OwnToolName | undefined): Decision {
    return this.#decide(principal, server, tool, this.menus);
  }

  /** The same without menus: they narrow what is begun, and touch nothing that is under way. */
  decideUnderWay(principal: Principal, server: string, tool: OwnToolName | undefined): Decision {
    return this.#decide(principal, server, tool, undefined);
  }

  #decide(
    principal: Principal,
    server: string,
    tool: OwnToolName | undefined,
    menus: PrincipalMenus | undefined,
  ): Decision {
    if (principal !== OPERATOR) {
      const byRole = decide(this.policy, principal, server, tool);
      if (byRole.kind === "deny") return byRole;
      const byMenu = menus?.decide(principal, server, tool);
      if (byMenu?.kind === "deny") return byMenu;
    }
    return this.#guard.decide(principal, server, tool);
  }

  /** Throws a Fault `denied`, or what nothing can be called for now. */
  demand(principal: Principal, server: string, tool: OwnToolName | undefined): void {
    const fault = this.halted?.();
    if (fault !== undefined) throw fault;
    const decision = this.decide(principal, server, tool);
    if (decision.kind !== "deny") return;
    countRefusal(principal, decision.rule);
    throw denied(server, tool, decision.rule, this.#denier(principal, server, tool, this.menus));
  }

  /** Of a call that was let through before. Throws a Fault `denied`. */
  demandUnderWay(principal: Principal, server: string, tool: OwnToolName | undefined): void {
    const decision = this.decideUnderWay(principal, server, tool);
    if (decision.kind === "allow") return;
    throw denied(server, tool, decision.rule, this.#denier(principal, server, tool, undefined));
  }

  /** Which kind of rule it was: nobody asks for that but where something is refused. */
  #denier(
    principal: Principal,
    server: string,
    tool: OwnToolName | undefined,
    menus: PrincipalMenus | undefined,
  ): RefusalRule {
    if (principal === OPERATOR) return "guard";
    if (decide(this.policy, principal, server, tool).kind === "deny") return "role";
    return menus?.decide(principal, server, tool).kind === "deny" ? "menu" : "guard";
  }

  /** Asks the guard alone. Throws a Fault `denied`. */
  demandByGuard(principal: Principal, server: string, tool: OwnToolName | undefined): void {
    const decision = this.#guard.decide(principal, server, tool);
    if (decision.kind === "deny") throw denied(server, tool, decision.rule, "guard");
  }

  /** Throws a Fault `denied` for a server of which the principal may know nothing. */
  demandVisible(principal: Principal, server: string): void {
    this.demandByGuard(principal, server, undefined);
    if (this.sees(principal, server)) return;
    throw new Fault("denied", `Role "${principal.role}" may not use anything of server "${server}".`, { rule: "role" });
  }

  /** Throws a Fault `denied` for a tool whose definition changed since it was accepted. */
  demandPinned(server: string, tool: OwnToolName): void {
    const fault = this.quarantined(server, tool);
    if (fault !== undefined) throw fault;
  }

  quarantined(server: string, tool: OwnToolName): Fault | undefined {
    const reason = this.#pins.quarantine(server, tool);
    if (reason === undefined) return undefined;
    return new Fault("denied", `Tool "${tool}" of server "${server}" is quarantined: ${reason}.`, { rule: "pin" });
  }

  sees(principal: Principal, server: string): boolean {
    if (principal !== OPERATOR) {
      if (!seesServer(this.policy, principal, server)) return false;
      if (this.menus?.decide(principal, server, undefined).kind === "deny") return false;
    }
    return this.#guard.decide(principal, server, undefined).kind === "allow";
  }

  /** Those of the servers that the principal may know of. Each list that is asked for comes by here. */
  seen(principal: Principal, servers: readonly ServerHandle[]): readonly ServerHandle[] {
    if (this.#isOpenTo(principal) && this.policy.unlisted === "allow") return servers;
    return servers.filter(({ name }) => this.sees(principal, name));
  }

  /** Nothing is said of who may use what, so that no server and no tool need be asked about by itself. */
  #isOpenTo({ needsRole }: Principal): boolean {
    return this.policy.roles.size === 0 && this.menus === undefined && !this.#guard.isSet && needsRole !== true;
  }

  view({ principal, era }: Caller, scope: string | undefined): View {
    return {
      scope,
      era,
      common: this.#isOpenTo(principal),
      key: this.#viewKey(principal),
      changing: this.#guard.isSet,
      allows: (server, tool) => {
        if (tool !== undefined && this.#pins.isQuarantined(server, tool)) return false;
        return this.decide(principal, server, tool).kind === "allow";
      },
    };
  }

  /** A guard may tell principals of one role apart. */
  #viewKey(principal: Principal): string {
    if (principal === OPERATOR) return "";
    if (this.#guard.isSet) return `principal ${principal.role} ${principal.id}`;
    // By the rules that fit, and not by principal: many share a page.
    const menu = this.menus?.of(principal)?.key;
    const role = principal.needsRole === true ? `run's role ${principal.role}` : this.#roleKey(principal.role);
    return menu === undefined ? role : `menus ${menu} of ${role}`;
  }

  #roleKey(role: string): string {
    let key = this.#roleKeys.get(role);
    if (key === undefined) {
      key = `role ${role}`;
      if (this.#roleKeys.size >= MAX_ROLE_KEYS) this.#roleKeys.clear();
      this.#roleKeys.set(role, key);
    }
    return key;
  }
}

/** A config has some; roles of which it says nothing come with tokens. Beyond these, keys are made again. */
const MAX_ROLE_KEYS = 256;

/** Rules of a config that one run meets; what a guard makes up beyond them is counted as one. */
const MAX_RULES = 64;

/** For the closing line of a run: what was refused, and by which rule. */
export function countRefusal({ tally }: Principal, rule: string): void {
  if (tally === undefined) return;
  const { refused } = tally;
  const key = refused.has(rule) || refused.size < MAX_RULES ? rule : "other rules";
  refused.set(key, (refused.get(key) ?? 0) + 1);
}

function denied(server: string, tool: OwnToolName | undefined, rule: string, by: RefusalRule): Fault {
  const what = tool === undefined ? `server "${server}"` : `tool "${tool}" of server "${server}"`;
  return new Fault("denied", `You may not use ${what}: ${rule}.`, { rule: by });
}
