// Pins as calls and lists ask for them, and as the control socket and `toolway pins` show them. Hashes are SHA-256 of
// RFC 8785's text, in base64url.

import type { OwnToolName } from "./names.js";
import type { Listed } from "./upstream.js";

export interface PinLine {
  readonly server: string;
  readonly tool: OwnToolName;
  /**
   * `rejected`: it changed, and a person wants it hidden as it is. `gone`: the server no longer lists it. `refused`: it
   * cannot be pinned. Changed, rejected and refused tools are hidden. `left`: its server is no longer in the config.
   */
  readonly state: "pinned" | "changed" | "rejected" | "gone" | "refused" | "left";
  readonly firstSeen?: string;
  readonly acceptedAt?: string;
  readonly hash?: string;
  readonly newHash?: string;
  readonly reason?: string;
}

export interface PinSide {
  readonly hash: string;
  readonly at: string;
  /** RFC 8785's text of the definition; absent where it was too large to keep. */
  readonly definition?: string;
}

export interface PinDiff {
  readonly server: string;
  readonly tool: OwnToolName;
  readonly old: PinSide;
  readonly new: PinSide;
  /** Where a person wants it hidden as it is now. */
  readonly rejectedAt?: string;
}

/** A change that stays hidden. */
export interface RejectedPin {
  readonly tool: OwnToolName;
  readonly hash: string;
}

export interface AcceptedPin {
  readonly tool: OwnToolName;
  readonly hash: string;
  readonly oldHash: string;
}

/** Says which tools are quarantined. It is asked with every call and every list. */
export interface Pins {
  /**
   * To be called with every list of tools that is read or restored, before agents see it. `differs`: others are hidden.
   */
  check(server: string, tools: readonly Listed[]): { readonly differs: boolean };
  /** Why this tool is quarantined; undefined where it is not. */
  quarantine(server: string, tool: OwnToolName): string | undefined;
  isQuarantined(server: string, tool: OwnToolName): boolean;
}
