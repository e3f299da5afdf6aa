// What `toolway share` and the gateway whose tools it shares say to each other: what is shared with whom, how the line to
// the broker does, and what a person is asked.

import type { UnlistedRoles } from "./settings.js";

export interface SharePlan {
  readonly servers: readonly { readonly name: string; readonly tools: number }[];
  /** As agents elsewhere call them. */
  readonly tools: readonly string[];
  /** How many of the tools each role of the config sees. */
  readonly roles: readonly { readonly role: string; readonly tools: number }[];
  /** What a role gets that the config does not name. */
  readonly unlistedRoles: UnlistedRoles;
  /** Tools before whose calls a person is asked. */
  readonly asked: readonly string[];
}

/** What a person is asked, and what they are told. */
export type ShareLine =
  | ({ readonly kind: "sharing" } & SharePlan)
  | { readonly kind: "state"; readonly state: string; readonly why?: string; readonly nextInMs?: number }
  | {
      readonly kind: "ask";
      readonly id: number;
      readonly worker: string;
      readonly role: string;
      readonly server: string;
      readonly tool: string;
      /** JSON, as it was sent. */
      readonly arguments: string;
    }
  /** Nobody waits for the answer any more. */
  | { readonly kind: "asked"; readonly id: number }
  | { readonly kind: "error"; readonly message: string };
