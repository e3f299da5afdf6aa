// Those who speak to a gateway over a pair of streams: who they are, and when they end.

import type { Principal } from "../contracts/caller.js";
import { createStdioEndpoint, type StdioEndpoint, type StdioEndpointOptions } from "../endpoint/stdio/stdio.js";
import { DEFAULT_PRINCIPAL } from "../tokens/tokens.js";

/** Who an agent over stdio is: by default, the default principal. */
export interface StdioAgent {
  /** A role of the config that it is narrowed to. */
  readonly role?: string | undefined;
  /** The id of a token, whose principal it is; there is no role besides. */
  readonly as?: string | undefined;
}

/** No token's id has a slash: what is private to somebody is not this one's. */
export function stdioPrincipal(role: string | undefined): Principal {
  return role === undefined ? DEFAULT_PRINCIPAL : { id: `stdio/${role}`, role };
}

export class StdioAgents {
  /** With whom they came in as where that is a token's. */
  readonly #open = new Map<StdioEndpoint, Principal | undefined>();

  /** Resolves when the agent is gone. `endsWithToken`: its principal is a token's, and it ends with that. */
  async serve(options: StdioEndpointOptions, endsWithToken: boolean): Promise<void> {
    const stdio = createStdioEndpoint(options);
    this.#open.set(stdio, endsWithToken ? options.principal : undefined);
    await stdio.closed;
    this.#open.delete(stdio);
  }

  closePrincipals(ended: (principal: Principal) => boolean): void {
    for (const [stdio, principal] of this.#open) {
      if (principal !== undefined && ended(principal)) void stdio.close();
    }
  }

  async close(drainMs: number): Promise<void> {
    await Promise.all([...this.#open.keys()].map((stdio) => stdio.close({ drainMs })));
  }
}
