// What the control socket tells of pins: as `toolway pins` shows them. Hashes are SHA-256 of RFC 8785, in base64url.

export interface PinLine {
  readonly server: string;
  readonly tool: string;
  /** `gone`: the server no longer lists it. `refused`: it cannot be pinned. Changed and refused tools are hidden. */
  readonly state: "pinned" | "changed" | "gone" | "refused";
  readonly firstSeen?: string;
  readonly acceptedAt?: string;
  readonly hash?: string;
  readonly newHash?: string;
  readonly reason?: string;
}

export interface PinSide {
  readonly hash: string;
  readonly at: string;
  /** RFC 8785's text of the definition; none where it was too large to keep. */
  readonly definition?: string;
}

export interface PinDiff {
  readonly server: string;
  readonly tool: string;
  readonly old: PinSide;
  readonly new: PinSide;
}

export interface AcceptedPin {
  readonly tool: string;
  readonly hash: string;
  readonly oldHash: string;
}
