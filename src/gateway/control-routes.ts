// What the operator can ask of a running gateway: the routes behind the control socket.

import type { Duplex } from "node:stream";
import type { Principal } from "../contracts/caller.js";
import type { AsksAnswer } from "../contracts/control/asks.js";
import { type OwnToolName, ownToolName } from "../contracts/names.js";
import type { OutboxEntry, OutboxOperator, OutboxStatus, WriteState } from "../contracts/outbox.js";
import type { AcceptedPin, PinDiff, PinLine, RejectedPin } from "../contracts/pins.js";
import { SHARER_ROLE } from "../contracts/settings.js";
import { demandText } from "../control/body.js";
import {
  ControlError,
  type ControlRequest,
  type ControlRoutes,
  type ControlServer,
  jsonLines,
  serveControl,
} from "../control/server.js";
import { claimSocketPath } from "../control/socket-path.js";
import { OPERATOR_UPGRADE, RUN_UPGRADE, SHARE_UPGRADE, STDIO_UPGRADE } from "../control/upgrades.js";
import { brokerUrlOf } from "../mailbox/wire/address.js";
import type { ExpositionFormat } from "../observe/metrics/exposition.js";
import { MetricReader } from "../observe/metrics/metric-reader.js";
import { Scrapes } from "../observe/metrics/scrapes.js";
import type { ContextChanges } from "../policy/contexts.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import { isoTime, systemClock } from "../runtime/clock.js";
import { nearest } from "../runtime/nearest.js";
import { isTexts } from "../runtime/words/json-values.js";
import { diagnosticRoutes } from "./diagnostics/routes.js";
import { LazyDoor } from "./door/lazy-door.js";
import { pageRoutes } from "./door/page-routes.js";
import { tokenRoutes } from "./door/token-routes.js";
import type { Gateway } from "./gateway.js";
import { loginRoutes } from "./logins/logins.js";
import type { Asks } from "./sharing/asks.js";
import { redactedDump } from "./state/state.js";
import type { NamingEntry } from "./tool-listing.js";

/** Ends the process around a gateway, in its own time. `drainMs` is undefined where the config's is meant. */
export type StopGateway = (asked: { readonly drainMs: number | undefined }) => void;

export async function openControl(
  gateway: Gateway,
  stateDir: string,
  env: NodeJS.ProcessEnv,
  { stop, hasDoor = true }: { readonly stop?: StopGateway | undefined; readonly hasDoor?: boolean } = {},
): Promise<ControlServer> {
  const routes = routesOf(gateway);
  const { diagnostics } = gateway;
  const door = new LazyDoor(
    {
      state: gateway.state,
      config: gateway.config,
      log: gateway.log,
      status: (isWanted) => gateway.status(isWanted),
      glances: () => gateway.servers.glances(),
      refused: (address, path, why) => diagnostics.refusedToken(address, path, why),
      certificate: async (files) => {
        const { Certificate, readCertificate } = await import("./certificate.js");
        return { now: readCertificate(files), follow: (shown) => new Certificate(shown, files, gateway.log) };
      },
    },
    () => diagnostics.audited(routes, "page"),
  );
  const control = await serveControl({
    path: claimSocketPath(stateDir, env),
    routes: diagnostics.audited(
      {
        ...routes,
        ...door.routes,
        ...(await drainRoutes(gateway, stop)),
        "POST /down": ({ body }) => down(gateway, fields(body), stop),
      },
      "socket",
    ),
    upgrades: {
      // The socket is half-open once the agent has gone: its other half is ours to end.
      [STDIO_UPGRADE]: (socket: Duplex, query: URLSearchParams) =>
        void serveStdio(gateway, socket, query).finally(() => socket.end()),
      [OPERATOR_UPGRADE]: (socket: Duplex, query: URLSearchParams) =>
        void gateway.serveOperator(socket, socket, query.get("server") ?? "").finally(() => socket.end()),
      [SHARE_UPGRADE]: (socket: Duplex) => gateway.serveShare(socket),
      [RUN_UPGRADE]: (socket: Duplex) => gateway.serveRun(socket),
    },
  });
  // Pages find their way back by themselves, and nobody waits for them. A gateway of one verb has gone before they do.
  if (hasDoor) door.resume();
  const close = async () => {
    await door.close();
    await control.close();
  };
  return { path: control.path, close, [Symbol.asyncDispose]: close };
}

/** By which rule a role, in no context, does not see a tool; undefined where it does. */
function hiddenFrom(gateway: Gateway, role: string) {
  const id = role === EVERY_OTHER ? ANY_OTHER_ROLE : role;
  return (server: string, own: string): string | undefined => {
    const decision = gateway.pipeline.access.decideUnderWay({ id, role: id }, server, ownToolName(own));
    return decision.kind === "allow" ? undefined : decision.rule;
  };
}

function formatOf(format: string | null): ExpositionFormat {
  return format === "openmetrics" || format === "json" ? format : "prometheus";
}

function routesOf(gateway: Gateway): ControlRoutes {
  const reader = new MetricReader(gateway.diagnostics.records, () => gateway.metricFacts(), systemClock);
  const scrapes = new Scrapes(reader, systemClock);
  gateway.onClose(() => reader.close());
  return {
    ...mailboxRoutes(gateway),
    ...tokenRoutes(gateway.state),
    ...pageRoutes({
      tools: () => gateway.tools(),
      pins: () => ({ lines: gateway.pins.list(), trusted: gateway.pins.trusted }),
      roles: () => [...Object.keys(gateway.config.roles), EVERY_OTHER],
      hiddenFrom: (role) => hiddenFrom(gateway, role),
      hiddenBy: (id) => {
        const principal = principalOf(gateway, id);
        return (server, own) => {
          const decision = gateway.pipeline.access.decide(principal, server, ownToolName(own));
          return decision.kind === "allow" ? undefined : decision.rule;
        };
      },
      serve: (input, output, server) => gateway.serveOperator(input, output, server),
    }),
    ...loginRoutes(gateway.logins),
    ...askRoutes(() => gateway.diagnostics.asks()),
    ...outboxRoutes(() => gateway.outbox),
    ...pinRoutes(gateway.pins, () => gateway.servers.names),
    ...serverRoutes({
      get names() {
        return gateway.servers.names;
      },
      reload: (name) => gateway.reloadServer(name),
      startServer: (name) => gateway.startServer(name),
      stopServer: (name) => gateway.stopServer(name),
    }),
    "POST /servers/:server/probe": ({ params, signal }) => gateway.servers.probe(params["server"] ?? "", signal),
    ...diagnosticRoutes(gateway.diagnostics),
    "GET /status": () => gateway.status(),
    "GET /config": async () => (await import("./diagnostics/config-shown.js")).configAnswer(gateway.inUse.texts()),
    "GET /metrics": async ({ query }) => ({ text: await scrapes.text(formatOf(query.get("format"))) }),
    "GET /access": ({ query }) => ({ access: accessTo(gateway, query.get("server") ?? "", query.get("tool") ?? "") }),
    "GET /tools": async ({ query }) => {
      const [as, role] = [query.get("as"), query.get("role")];
      if (as !== null) return { tools: await gateway.toolsOf(principalOf(gateway, as)) };
      const tools = await gateway.tools();
      if (role === null) return { tools };
      if (role !== EVERY_OTHER) gateway.demandRole(role);
      const rule = hiddenFrom(gateway, role);
      return {
        tools: tools.filter((one) => one.quarantined === undefined && rule(one.server, one.ownName) === undefined),
      };
    },
    "GET /context": ({ query }) => {
      const principal = query.get("principal");
      if (principal !== null) {
        const context = gateway.contextOf(principal);
        // What is set stays to be seen after its token has gone.
        if (Object.keys(context).length === 0) idWithContext(gateway, principal);
        return { principal, context };
      }
      const all = [...gateway.pipeline.contexts.all.keys()].map((id) => ({
        principal: id,
        context: gateway.contextOf(id),
      }));
      return { contexts: all };
    },
    "POST /context": async ({ body }) => {
      const { principal, changes } = fields(body);
      if (!isObject(changes)) throw new ControlError("invalid", '"changes" is an object.');
      const id = idWithContext(gateway, demandText(principal, "principal"));
      return { principal: id, context: await gateway.setContext(id, changes as ContextChanges) };
    },
    // Who may have a tool that is not listed, and why it is not where its entry hides it.
    "GET /tools/owners": ({ query }) => {
      const tool = query.get("tool") ?? "";
      return { servers: gateway.possibleOwners(tool), hidden: gateway.hiddenReason(tool) };
    },
    "POST /reload": async () => {
      const { changes } = await gateway.reload();
      return { changes, ...gateway.status() };
    },
    "GET /runs": () => ({
      runs: gateway.runs.list().map(({ principal, record, isHeld }) => ({
        ...principal,
        client: record.client,
        startedAt: isoTime(record.startedAt),
        isHeld,
      })),
    }),
    "GET /tokens/:id": ({ params }) => {
      const { id, role } = gateway.demandPrincipal(params["id"] ?? "");
      return { id, role };
    },
    "GET /roles/:role": ({ params }) => {
      gateway.demandRole(params["role"] ?? "");
      return { role: params["role"] };
    },
    // Rules that are not applied yet, by the tools that are known.
    "POST /roles/check": ({ body }) => {
      const { roles, menus = [], servers } = fields(body);
      if (!isObject(roles)) throw new ControlError("invalid", '"roles" is an object.');
      if (!Array.isArray(menus)) throw new ControlError("invalid", '"menus" is an array.');
      const asked = { roles, menus } as Pick<Gateway["config"], "roles" | "menus">;
      if (servers !== undefined && !isNaming(servers)) {
        throw new ControlError("invalid", '"servers" is a list of objects with "name", "tools" and "only".');
      }
      return { unusedPatterns: gateway.patterns.of({ ...gateway.config, ...asked }, servers) };
    },
    "GET /state/dump": () =>
      jsonLines(redactedDump(gateway.state.dump(), (server, text) => gateway.redact(server, text))),
  };
}

function isNaming(servers: unknown): servers is readonly NamingEntry[] {
  const isOne = (one: unknown) =>
    isObject(one) &&
    typeof one["name"] === "string" &&
    isObject(one["tools"]) &&
    (one["only"] === undefined || isTexts(one["only"]));
  return Array.isArray(servers) && servers.every(isOne);
}

/** Answers how long it may take; that it is over is seen by the state directory, which nobody holds then. */
function down(gateway: Gateway, { drainMs }: JsonObject, stop: StopGateway | undefined): JsonObject {
  if (stop === undefined) throw new ControlError("denied", "The program that embeds this gateway ends it itself.");
  stop({ drainMs: drainMsOf(drainMs) });
  return { pid: process.pid, drainMs: drainMs ?? gateway.config.drainMs };
}

type Drainable = Pick<Gateway, "config" | "leave" | "log" | "diagnostics" | "state" | "status">;

/** Where several gateways are on one engine: which they are, and one taken out of use. */
export async function drainRoutes(gateway: Drainable, stop: StopGateway | undefined): Promise<ControlRoutes> {
  const { engine } = gateway.state;
  const alone = (): never => {
    throw new ControlError("denied", "This gateway is alone, without an engine: `toolway down` stops it.");
  };
  if (engine === undefined) return { "GET /gateways": alone, "POST /drain": alone };
  // The gateway closes by itself then, and says why; the process around it has nothing left to do.
  if (stop !== undefined) gateway.state.onMarked(() => stop({ drainMs: 0 }));
  // Loaded by those alone who share one.
  const { balancersTold, Drain, DrainError } = await import("./engine/drain.js");
  const seen = () => gateway.status().engine?.gateways ?? [];
  const wordsOf = (name: string) => {
    const place = seen().find((one) => one.gateway === name)?.place;
    return [place?.host, place?.address].filter((word) => word !== undefined);
  };
  const drain = new Drain(
    engine,
    {
      begin(drainMs) {
        if (stop === undefined) throw new DrainError("denied", "The program that embeds this gateway ends it itself.");
        const told = balancersTold(engine);
        void gateway
          .leave()
          .catch((error: unknown) => gateway.log.error("not everything was handed over", { error }))
          .then(() => told)
          .finally(() => stop({ drainMs }));
      },
      asked: (by, outcome) => {
        const target = { gateway: engine.self, from: by };
        gateway.diagnostics.records.audit?.operator("gateway", "POST /drain", target, outcome);
      },
    },
    wordsOf,
  );
  return {
    "GET /gateways": () => ({ gateways: seen() }),
    "POST /drain": async ({ body }) => {
      const { gateway: name, drainMs } = fields(body);
      if (typeof name !== "string" || name === "") throw new ControlError("invalid", '"gateway" is a name.');
      try {
        return { gateway: await drain.drain(name, drainMsOf(drainMs)), drainMs: drainMs ?? gateway.config.drainMs };
      } catch (error) {
        if (error instanceof DrainError) throw new ControlError(error.code, error.message);
        throw new ControlError("failed", `The gateway could not be asked: ${(error as Error).message}`);
      }
    },
  };
}

function drainMsOf(drainMs: unknown): number | undefined {
  if (drainMs === undefined || (typeof drainMs === "number" && drainMs >= 0)) return drainMs;
  throw new ControlError("invalid", '"drainMs" is a number of milliseconds.');
}

/** An agent whose token has ended meanwhile finds the socket closed. */
async function serveStdio(gateway: Gateway, socket: Duplex, query: URLSearchParams): Promise<void> {
  const [role, as] = [query.get("role") ?? undefined, query.get("as") ?? undefined];
  if (as !== undefined && gateway.state.tokens.principal(as, systemClock.wall()) === undefined) return;
  await gateway.serveStdio(socket, socket, { role, as });
}

/** Whoever comes by a mailbox has a token of the broker, and none of ours. */
const MAILBOX_PRINCIPAL = /^mailbox\/./;

/** An id that can have a context. Throws where nobody can have it. */
function idWithContext(gateway: Gateway, id: string): string {
  return MAILBOX_PRINCIPAL.test(id) ? id : principalOf(gateway, id).id;
}

/** Who has this id: the principal of a token, or one over stdio. Throws where nobody has, with the nearest. */
function principalOf(gateway: Gateway, id: string): Principal {
  const known = gateway.state.tokens.list();
  const found = known.find((token) => token.id === id);
  if (found !== undefined) return { id, role: found.role };
  const run = gateway.runs.list().find(({ principal }) => principal.id === id);
  if (run !== undefined) return run.principal;
  // One over stdio, which needs no token: `stdio/<role>`.
  if (id.startsWith("stdio/")) return { id, role: id.slice("stdio/".length) };
  if (MAILBOX_PRINCIPAL.test(id)) {
    throw new ControlError("invalid", `The role of ${JSON.stringify(id)} comes from its broker, with each message.`);
  }
  const near = nearest(
    id,
    known.map((token) => token.id),
  );
  const hint = near === undefined ? "" : ` Did you mean ${near}?`;
  const why = `There is no principal ${JSON.stringify(id)}: no token has this id.${hint}`;
  throw new ControlError("not-found", `${why} \`toolway token list\` shows them.`);
}

/** Which roles may call a tool: those of the config, and all others. */
function accessTo(gateway: Gateway, server: string, tool: string): { role: string; allowed: boolean; rule?: string }[] {
  const { access } = gateway.pipeline;
  return [...Object.keys(gateway.config.roles), ANY_OTHER_ROLE].map((role) => {
    const decision = access.decideUnderWay({ id: role, role }, server, ownToolName(tool));
    return decision.kind === "allow"
      ? { role, allowed: true }
      : { role, allowed: false, rule: role === ANY_OTHER_ROLE ? 'unlistedRoles is "deny"' : decision.rule };
  });
}

/** No role of a token is called so: ids and roles have no parentheses. */
const ANY_OTHER_ROLE = "(any other role)";
/** The same where only a short word has room. */
const EVERY_OTHER = "*";

/** `GET /asks`, and `POST /asks/:id` with `{answer}`. */
function askRoutes(asks: () => Asks | undefined): ControlRoutes {
  return {
    "GET /asks": (): AsksAnswer => ({ asks: asks()?.list() ?? [] }),
    "POST /asks/:id": ({ params, body }) => {
      const { answer } = fields(body);
      if (answer !== "yes" && answer !== "no" && answer !== "always") {
        throw new ControlError("invalid", '"answer" is yes, no or always.');
      }
      const open = asks();
      if (open === undefined) throw new ControlError("not-found", "Nobody waits for an answer.");
      open.answer(Number(params["id"]), answer);
      return {};
    },
  };
}

/** What the routes about pins need. */
interface PinsControl {
  readonly trusted: readonly string[];
  list(): PinLine[];
  diff(server: string, tool?: OwnToolName): PinDiff[];
  accept(server: string, tool?: OwnToolName, hash?: string): Promise<AcceptedPin[]>;
  reject(server: string, tool?: OwnToolName, hash?: string): Promise<RejectedPin[]>;
  forget(server: string, tool?: OwnToolName): Promise<OwnToolName[]>;
}

/**
 * `GET /pins`, `GET /pins/diff?server=…&tool=…`, `POST /pins/accept` and `POST /pins/reject` with `{server, tool?, hash?}`,
 * `POST /pins/forget` with `{server, tool?}`.
 */
export function pinRoutes(pins: PinsControl, servers: () => readonly string[] = () => []): ControlRoutes {
  return {
    "GET /pins": () => ({ pins: pins.list(), trusted: pins.trusted, servers: servers() }),
    "POST /pins/forget": async ({ body }) => {
      const { server, tool } = fields(body);
      return { forgotten: await pins.forget(demandText(server, "server"), toolOrNone(textOrNone(tool, "tool"))) };
    },
    "GET /pins/diff": ({ query }) => {
      const server = query.get("server");
      if (server === null) throw new ControlError("invalid", '"server" is missing.');
      return { diffs: pins.diff(server, toolOrNone(query.get("tool") ?? undefined)) };
    },
    "POST /pins/accept": async ({ body }) => ({ accepted: await pins.accept(...lookedAt(body)) }),
    "POST /pins/reject": async ({ body }) => ({ rejected: await pins.reject(...lookedAt(body)) }),
  };
}

/** What somebody decided about: a server, of it a tool, and of that what they saw. */
function lookedAt(body: unknown): [server: string, tool: OwnToolName | undefined, hash: string | undefined] {
  const { server, tool, hash } = (isObject(body) ? body : {}) as Record<string, unknown>;
  return [demandText(server, "server"), toolOrNone(textOrNone(tool, "tool")), textOrNone(hash, "hash")];
}

/** So many entries of a list are answered at a time. */
const MAX_PAGE = 1_000;

/** `/mailboxes` and below. Names are in the query or the body: one may be `..`, and a path is not to be built of it. */
function mailboxRoutes(gateway: Gateway): ControlRoutes {
  const { mailboxes, state } = gateway;
  const operator = async () => {
    const found = await mailboxes.operator();
    if (found !== undefined) return found;
    throw new ControlError("denied", 'This gateway keeps no mailboxes: its config has no "mailboxes", or they failed.');
  };
  const mailboxIn = (query: URLSearchParams) => demandText(query.get("mailbox") ?? undefined, "mailbox");
  return {
    "GET /mailboxes": async ({ query }) => (await operator()).list(rangeIn(query)),
    "GET /mailboxes/totals": async () => {
      await operator();
      return { ...(await mailboxes.totals()), mailboxes: undefined };
    },
    "GET /mailboxes/summary": async ({ query }) => (await operator()).summary(mailboxIn(query)),
    "GET /mailboxes/names": async () => {
      const sharers = state.tokens.list().filter(({ role }) => role === SHARER_ROLE);
      return { names: [...new Set([...(await (await operator()).names()), ...sharers.map(({ id }) => id)])] };
    },
    "GET /mailboxes/messages": async ({ query }) => (await operator()).messages(mailboxIn(query), rangeIn(query)),
    "GET /mailboxes/dead": async ({ query }) => (await operator()).deadLetters(mailboxIn(query), rangeIn(query)),
    "POST /mailboxes/retry": async ({ body }) => {
      const { mailbox, id, from } = fields(body);
      return (await operator()).retry(demandText(mailbox, "mailbox"), demandText(id, "id"), textOrNone(from, "from"));
    },
    "POST /mailboxes/pair": async ({ body }) => {
      const { mailbox, role } = fields(body);
      const name = demandText(mailbox, "mailbox");
      if (!state.tokens.list().some((one) => one.id === name && one.role === SHARER_ROLE)) {
        throw new ControlError("not-found", `There is no mailbox "${name}" of a token of the role ${SHARER_ROLE}.`);
      }
      const made = await mailboxes.newCode(name, textOrNone(role, "role"));
      if (typeof made === "string") throw new ControlError("denied", `No code was made: ${made}.`);
      const { endpoint } = gateway.status();
      return { ...made, broker: endpoint === undefined ? undefined : brokerUrlOf(endpoint) };
    },
    "POST /mailboxes/drop": async ({ body }) => {
      const { mailbox, id, from, deadOnly } = fields(body);
      const selection = { id: textOrNone(id, "id"), from: textOrNone(from, "from"), deadOnly: deadOnly === true };
      return (await operator()).drop(demandText(mailbox, "mailbox"), selection);
    },
  };
}

const WRITE_STATES: readonly WriteState[] = ["queued", "sending", "done", "failed", "unknown", "expired", "cancelled"];

/** What the routes about kept writes need. */
export function outboxRoutes(find: () => OutboxOperator | undefined): ControlRoutes {
  const operator = () => {
    const found = find();
    if (found !== undefined) return found;
    throw new ControlError("denied", 'No calls are kept here: no tool of the config has an "outbox".');
  };
  const laneOf = (body: unknown): [server: string, lane: string | undefined] => {
    const { server, lane } = fields(body);
    return [demandText(server, "server"), textOrNone(lane, "lane")];
  };
  return {
    "GET /outbox": async ({ query }) => {
      const [server, principal, state] = ["server", "principal", "state"].map((key) => query.get(key) ?? undefined);
      const known = WRITE_STATES.find((one) => one === state);
      if (state !== undefined && known === undefined) {
        throw new ControlError("invalid", `"state" is one of ${WRITE_STATES.join(", ")}.`);
      }
      const filter = {
        ...(server === undefined ? {} : { server }),
        ...(principal === undefined ? {} : { principal }),
        ...(known === undefined ? {} : { state: known }),
      };
      const writes = await operator().list({ ...filter, limit: rangeIn(query).limit });
      return { writes: writes.map(withoutOutcome) };
    },
    "GET /outbox/lanes": () => operator().firstLanes(MAX_PAGE),
    "GET /outbox/totals": () => outboxStatus(operator()),
    "GET /outbox/writes/:id": async ({ params }) => {
      const found = await operator().show(params["id"] ?? "");
      if (found !== undefined) return found;
      throw new ControlError(
        "not-found",
        `There is no receipt ${JSON.stringify(params["id"])}. \`toolway outbox list\` shows them.`,
      );
    },
    "POST /outbox/writes/:id/retry": ({ params }) =>
      operator()
        .retry(params["id"] ?? "")
        .then(withoutOutcome),
    "POST /outbox/writes/:id/drop": ({ params }) =>
      operator()
        .drop(params["id"] ?? "")
        .then(withoutOutcome),
    "POST /outbox/writes/:id/resolve": ({ params, body }) => {
      const as = (["done", "failed", "again"] as const).find((one) => one === fields(body)["as"]);
      if (as === undefined) throw new ControlError("invalid", '"as" is "done", "failed" or "again".');
      return operator()
        .resolve(params["id"] ?? "", as)
        .then(withoutOutcome);
    },
    "POST /outbox/hold": async ({ body }) => ({ lanes: await operator().hold(...laneOf(body)) }),
    "POST /outbox/release": async ({ body }) => ({ lanes: await operator().release(...laneOf(body)) }),
  };
}

/** Lists say what there is; the results themselves, and how it came to them, are shown one at a time. */
function withoutOutcome({
  result: _result,
  error: _error,
  life: _life,
  ...entry
}: OutboxEntry): Omit<OutboxEntry, "result" | "error" | "life"> {
  return entry;
}

/** So many lanes on hold are named: whoever has more of them has one cause. */
const MAX_HELD_SHOWN = 10;

export function outboxStatus(operator: OutboxOperator): OutboxStatus {
  const { waiting, oldestMs, unknown, unknownMs, heldCount, held } = operator.totals(MAX_HELD_SHOWN);
  const shown = held.map(({ server, lane, depth, heldFor, oldestMs: bornMs }) => {
    return { server, lane, depth, why: heldFor ?? "", oldestAt: isoTime(bornMs) };
  });
  return { waiting, oldestAt: isoTime(oldestMs), unknown, unknownAt: isoTime(unknownMs), held: shown, heldCount };
}

function rangeIn(query: URLSearchParams): { offset: number; limit: number } {
  const numberIn = (key: string, usual: number): number => {
    const given = query.get(key);
    if (given === null) return usual;
    if (!/^\d{1,9}$/.test(given)) throw new ControlError("invalid", `"${key}" is a whole number.`);
    return Number(given);
  };
  return { offset: numberIn("offset", 0), limit: Math.min(numberIn("limit", MAX_PAGE), MAX_PAGE) };
}

/** What the routes about one server need. */
interface ServersControl {
  readonly names: readonly string[];
  /** Each resolves when it is under way; `status` says what came of it. */
  reload(name: string): void | Promise<void>;
  stopServer(name: string): void | Promise<void>;
  startServer(name: string): void | Promise<void>;
}

/** `POST /servers/:server/reload`, `…/stop`, `…/start`. */
export function serverRoutes(servers: ServersControl): ControlRoutes {
  const route = (act: (name: string) => void | Promise<void>) => async (request: ControlRequest) => {
    const server = request.params["server"] ?? "";
    if (!servers.names.includes(server)) throw new ControlError("not-found", `There is no server "${server}".`);
    await act(server);
    return { server };
  };
  return {
    "POST /servers/:server/reload": route((name) => servers.reload(name)),
    "POST /servers/:server/stop": route((name) => servers.stopServer(name)),
    "POST /servers/:server/start": route((name) => servers.startServer(name)),
  };
}

function toolOrNone(name: string | undefined): OwnToolName | undefined {
  return name === undefined ? undefined : ownToolName(name);
}

function textOrNone(value: unknown, key: string): string | undefined {
  return value === undefined ? undefined : demandText(value, key);
}

function fields(body: unknown): JsonObject {
  if (!isObject(body)) throw new ControlError("invalid", "The body is a JSON object.");
  return body;
}
