// What one role sees of the lists. The pipeline makes it from the policy; the catalog only asks it.

import type { OwnToolName } from "../contracts/names.js";
import type { Era } from "../protocol/modern.js";

export interface View {
  /** The server of `/mcp/<server>`, under its own names; undefined: all servers. */
  readonly scope: string | undefined;
  /** `tool` is undefined for everything of a server that is no tool. */
  allows(server: string, tool: OwnToolName | undefined): boolean;
  /** A modern agent's lists carry `resultType`, how long they are good, and for whom. */
  readonly era: Era;
  /** True where everybody sees the same, so that a public list may stay public. */
  readonly common: boolean;
  /** Equal for views that allow the same, such as the role: pages are kept under it. */
  readonly key: string;
  /** It may allow something else the next time, since a guard is asked: no page is kept. */
  readonly changing?: boolean;
}
