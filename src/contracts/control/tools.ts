// What `GET /tools/lines` answers, line by line: every tool in short. One tool in full is `GET /tools/one?name=…`.

export interface ToolInShort {
  readonly name: string;
  readonly server: string;
  readonly ownName: string;
  /** Its beginning. */
  readonly description: string;
  /** About how many tokens its definition costs each conversation: an estimate. */
  readonly tokens: number;
  readonly quarantined?: true;
  /** With `as=PRINCIPAL`: the rule that hides it from that one. */
  readonly hiddenBy?: string;
}
