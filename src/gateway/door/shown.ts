// Which of the control routes the page at the operator's door may use. Those that hand
// out a secret that is in use, or that end the gateway, are not among them; none takes a command, an address or a path.

import type { AuditAnswer } from "../../contracts/control/audit.js";
import type { OutboxEntry } from "../../contracts/outbox.js";
import type { ControlHandler, ControlRoutes } from "../../control/server.js";
import { tokenRoutesOfPage } from "./token-routes.js";

/** Viewers see these without the arguments and results that they may hold; whoever acts sees all of it. */
const AUDIT = "GET /audit";
const WRITE = "GET /outbox/writes/:id";

const SEEING = [
  "GET /status",
  "GET /calls",
  "GET /history",
  "GET /metrics",
  "GET /history/tools",
  "GET /servers/:server/events",
  "GET /access",
  "GET /agents",
  "GET /tools/lines",
  "GET /tools/one",
  "GET /roles",
  "GET /context",
  "GET /runs",
  "GET /tokens",
  "GET /pins",
  "GET /pins/diff",
  "GET /mailboxes",
  "GET /mailboxes/totals",
  "GET /mailboxes/messages",
  "GET /mailboxes/dead",
  "GET /outbox",
  "GET /outbox/lanes",
  "GET /record",
  "GET /audit/head",
  "GET /flow",
] as const;

/** For operators alone: what acts, what shows the results of agents' calls, and the config, in which commands and paths stand. */
const ACTING = [
  WRITE,
  "GET /config",
  "GET /calls/:seq/bodies",
  "POST /record",
  "POST /record/stop",
  "GET /asks",
  "POST /asks/:id",
  AUDIT,
  "GET /audit/verify",
  "POST /try",
  "POST /try/answer",
  "POST /reload",
  "POST /servers/:server/reload",
  "POST /servers/:server/stop",
  "POST /servers/:server/start",
  "POST /servers/:server/login/open",
  "POST /servers/:server/logout",
  "POST /pins/accept",
  "POST /pins/reject",
  "POST /pins/forget",
  "POST /mailboxes/retry",
  "POST /mailboxes/drop",
  "POST /outbox/writes/:id/retry",
  "POST /outbox/writes/:id/drop",
  "POST /outbox/writes/:id/resolve",
  "POST /outbox/hold",
  "POST /outbox/release",
  "POST /tokens",
  "POST /tokens/:id/rotate",
  "DELETE /tokens/:id",
] as const;

export function shownRoutes(routes: ControlRoutes): { seeing: ControlRoutes; acting: ControlRoutes } {
  const acting = picked(routes, ACTING);
  return {
    seeing: {
      ...picked(routes, SEEING),
      [AUDIT]: withoutArguments(acting[AUDIT] as ControlHandler),
      [WRITE]: withoutResult(acting[WRITE] as ControlHandler),
    },
    acting: { ...acting, ...tokenRoutesOfPage(routes) },
  };
}

/** With `"arguments": "redacted"` a line has them as they were, but for secrets; an HMAC of them tells nothing. */
function withoutArguments(audit: ControlHandler): ControlHandler {
  return async (request) => {
    const { lines, ...rest } = (await audit(request)) as AuditAnswer;
    return { ...rest, lines: lines.map(({ arguments: _, ...line }) => line) };
  };
}

function withoutResult(write: ControlHandler): ControlHandler {
  return async (request) => {
    const { result: _, error: __, ...entry } = (await write(request)) as OutboxEntry;
    return entry;
  };
}

/** Throws where there is no such route: a page whose button does nothing would be found by its user. */
function picked(routes: ControlRoutes, keys: readonly string[]): ControlRoutes {
  return Object.fromEntries(
    keys.map((key) => {
      const route = routes[key];
      if (route === undefined) throw new Error(`There is no route ${key} for the page.`);
      return [key, route];
    }),
  );
}
