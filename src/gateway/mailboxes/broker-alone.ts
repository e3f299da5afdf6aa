// Whether a gateway is nothing but a broker.

import type { Config } from "../../config/config.js";

/** It keeps mailboxes and has no servers. Nobody can give it some later: it has no file. */
export function isBrokerAlone({ path, mailboxes, servers }: Pick<Config, "path" | "mailboxes" | "servers">): boolean {
  return path === undefined && mailboxes && servers.length === 0;
}
