// What `GET /tools/lines` answers, line by line: every tool in short. One tool in full is `GET /tools/one?name=…`, with its pin.

export interface ToolInShort {
  readonly name: string;
  readonly server: string;
  readonly ownName: string;
  /** Its beginning. */
  readonly description: string;
  /** About how many tokens its definition costs each conversation: an estimate. */
  readonly tokens: number;
  /** `always`: its server is trusted, whatever it changes. Absent where nothing of it is kept. */
  readonly pin?: "always" | "pinned" | "changed" | "rejected" | "gone" | "refused" | "left";
  /** The roles of the config that may call it, and `*` for every other one. Absent where all may. */
  readonly roles?: readonly string[];
  readonly quarantined?: true;
  /** With `as=PRINCIPAL` or `role=ROLE`: the rule that hides it from that one. */
  readonly hiddenBy?: string;
}

/** How one tool stands with its pin. Absent where nothing of it is kept. */
export interface ToolPin {
  readonly state: NonNullable<ToolInShort["pin"]>;
  /** When it was accepted, or first seen where nobody had to. */
  readonly since?: string;
  readonly hash?: string;
}

/** `GET /roles`: what each role of the config sees. `*` stands for every other one. */
export interface RolesAnswer {
  readonly roles: readonly {
    readonly role: string;
    /** How many tools it may call, of how many, and about how many tokens they cost each conversation. */
    readonly tools: number;
    readonly of: number;
    readonly tokens: number;
  }[];
}
