// What one role sees of the lists. The pipeline makes it from the policy; the catalog only asks it.

import type { ListKind } from "../contracts/upstream.js";
import type { Era } from "../protocol/modern.js";

export interface View {
  /** The server of `/mcp/<server>`, under its own names; undefined: all servers. */
  readonly scope: string | undefined;
  /** `own` is the server's own name of a tool or prompt, the URI of a resource, the text of a template. */
  allows(server: string, own: string, kind: ListKind): boolean;
  /** A modern agent's lists carry `resultType`, how long they are good, and for whom. */
  readonly era: Era;
  /** True where everybody sees the same, so that a public list may stay public. */
  readonly common: boolean;
  /** Equal for views that allow the same, such as the role: pages are kept under it. */
  readonly key: string;
}
