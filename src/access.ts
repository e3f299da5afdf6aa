// Who may see and use what, for the pipeline: policy for agents, everything for the operator. The rules themselves are
// policy/.

import type { Caller, Principal } from "./caller.js";
import type { View } from "./catalog/view.js";
import { type Decision, decide, type Policy, seesServer } from "./policy/policy.js";
import { Fault } from "./protocol/errors.js";

/** The operator at the control socket or in the program that embeds us: policy is about agents. Known by identity. */
export const OPERATOR: Principal = { id: "operator", role: "operator" };

const ALLOW: Decision = { kind: "allow" };

export class Access {
  policy: Policy;

  constructor(policy: Policy) {
    this.policy = policy;
  }

  /** `tool`: the server's own name of it; undefined for anything else that the server has. */
  decide(principal: Principal, server: string, tool: string | undefined): Decision {
    return principal === OPERATOR ? ALLOW : decide(this.policy, principal, server, tool);
  }

  /** Throws a Fault `denied`. */
  demand(principal: Principal, server: string, tool: string | undefined): void {
    const decision = this.decide(principal, server, tool);
    if (decision.kind === "allow") return;
    const what = tool === undefined ? `server "${server}"` : `tool "${tool}" of server "${server}"`;
    throw new Fault("denied", `You may not use ${what}: ${decision.rule}.`);
  }

  sees(principal: Principal, server: string): boolean {
    return principal === OPERATOR || seesServer(this.policy, principal, server);
  }

  view({ principal, era }: Caller, scope: string | undefined): View {
    return {
      scope,
      era,
      common: this.policy.roles.size === 0,
      key: principal === OPERATOR ? "" : `role ${principal.role}`,
      allows: (server, own, kind) =>
        this.decide(principal, server, kind === "tools" ? own : undefined).kind === "allow",
    };
  }
}
