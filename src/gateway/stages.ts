// Makes the stages of a gateway and ties them to each other. What a config then says to them is the job of
// config-in-use.ts; when they start, listen and end is the gateway's.

import { hostname } from "node:os";
import { Cache } from "../cache/cache.js";
import { Catalog } from "../catalog/catalog.js";
import { LIST_KINDS } from "../catalog/snapshot.js";
import type { View } from "../catalog/view.js";
import type { Config } from "../config/config.js";
import type { AgentProfile } from "../contracts/caller.js";
import { ownToolName } from "../contracts/names.js";
import type { ServerSpec } from "../contracts/server-spec.js";
import type { SessionWatch } from "../contracts/service.js";
import { DEFAULT_ROLE } from "../contracts/settings.js";
import type { ServerIntro } from "../contracts/upstream.js";
import { Credentials } from "../credentials/credentials.js";
import { CallLines } from "../observe/call-lines.js";
import type { Transport } from "../observe/call-record.js";
import { CaughtDay } from "../observe/calls/caught-day.js";
import { History } from "../observe/calls/history.js";
import { KeptCalls } from "../observe/calls/kept-calls.js";
import { sessionLog } from "../observe/debug-log.js";
import { factsFor, type Log } from "../observe/log.js";
import { CallMetrics } from "../observe/metrics/call-metrics.js";
import { CallRecords } from "../observe/metrics/call-records.js";
import { EventMetrics } from "../observe/metrics/event-metrics.js";
import { ServerLabels } from "../observe/metrics/server-labels.js";
import { CallObserver } from "../observe/observed-call.js";
import type { ServerEvents } from "../observe/server-events.js";
import { type KeptStderr, keepStderr } from "../observe/server-logs/keep.js";
import type { Telemetry } from "../observe/telemetry/telemetry.js";
import { OPERATOR } from "../pipeline/access.js";
import { Pipeline } from "../pipeline/pipeline.js";
import { TaskOwners } from "../pipeline/tasks/owners.js";
import { unreadLists } from "../pipeline/wait-for-lists.js";
import { compilePolicy, type Policy } from "../policy/policy.js";
import type { Era } from "../protocol/modern.js";
import { systemClock } from "../runtime/clock.js";
import { HeldBytes, type HeldWatcher } from "../runtime/memory/held-bytes.js";
import { Reaper } from "../runtime/processes/reaper.js";
import { hashStateDir } from "../runtime/processes/reaper-marker.js";
import { packageVersion } from "../runtime/version.js";
import { requestShortly } from "../upstream/http/short-request.js";
import { linkMaker } from "../upstream/links.js";
import { ServerPool } from "../upstream/servers.js";
import { auditFull, Diagnostics } from "./diagnostics/diagnostics.js";
import type { OpenedAudit } from "./diagnostics/open-audit.js";
import { Executors } from "./executors.js";
import { Mailboxes } from "./mailboxes/mailboxes.js";
import { GatewayOutbox } from "./outbox/outbox.js";
import { ServerPlaces } from "./placement/places.js";
import { ProgramCalls } from "./program-call.js";
import { RefusalLog } from "./refusal-log.js";
import { Sharing } from "./sharing/sharing.js";
import { BEAT_MS, type ConfigMark, ConfigMarks } from "./state/config-marks.js";
import { endingTokens } from "./state/ending-tokens.js";
import { followOthers } from "./state/others.js";
import { serverIdentity } from "./state/server-identity.js";
import { type GatewayState, redactedText, redactionOf, safeLine } from "./state/state.js";
import { StoredEras } from "./state/stored-eras.js";
import { StoredLists } from "./state/stored-lists.js";
import { StoredPins } from "./state/stored-pins.js";
import { UnusedPatterns } from "./tool-listing.js";

export interface StageParts {
  /** As it is at the start. */
  readonly config: Config;
  readonly state: GatewayState;
  readonly log: Log;
  /** What that log says of each server. */
  readonly serverEvents: ServerEvents;
  readonly audit?: OpenedAudit | undefined;
  readonly telemetry?: Telemetry | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** A lazy server is not even started to read its lists, before somebody wants them. */
  readonly lazyLists?: boolean;
  /** Is told how much the gateway holds for others. */
  readonly heldWatcher?: HeldWatcher | undefined;
}

/** The gateway, as its stages need it: what changes while it runs, and what they ask it to do. */
interface StageOwner {
  readonly startedAt: string;
  config(): Config;
  /** The agent that all of it is for, where there is only one. */
  soleAgent(): AgentProfile | undefined;
  sweep(): Promise<unknown>;
  reloadServer(name: string): Promise<void>;
}

export interface Stages {
  /** All that comes in and goes out is counted by this one. */
  readonly held: HeldBytes;
  readonly catalog: Catalog;
  readonly cache: Cache;
  readonly pipeline: Pipeline;
  readonly servers: ServerPool;
  readonly executors: Executors;
  readonly credentials: Credentials;
  readonly mailboxes: Mailboxes;
  readonly outbox: GatewayOutbox;
  readonly sharing: Sharing;
  readonly pins: StoredPins;
  readonly lists: StoredLists;
  readonly patterns: UnusedPatterns;
  /** Calls of the program and the operator. */
  readonly calls: ProgramCalls;
  /** Makes a record of every call. */
  readonly diagnostics: Diagnostics;
  readonly records: CallRecords;
  /** How often servers were up again that had been up before. */
  readonly comeBacks: () => number;
  readonly stderr: KeptStderr;
  readonly reaper: Reaper;
  /** What gateways on one engine go by; undefined where this one is alone. */
  readonly marks: ConfigMarks | undefined;
  /** Where servers are that one gateway runs for all; undefined where this one is alone. */
  readonly places: ServerPlaces | undefined;
}

export function wireStages(parts: StageParts, owner: StageOwner): Stages {
  const { config, state, log, env } = parts;
  const version = packageVersion();
  const redact = (server: string, text: string) => redactedText(owner.config().servers, server, text);
  const held = new HeldBytes(config.limits.heldBytes, parts.heldWatcher);
  const catalog = new Catalog({
    names: config.names,
    menu: config.menu,
    pageSize: config.pageSize,
    serverInfo: { name: "toolway", title: "Toolway", version },
    seal: (value) => state.sealer.seal("cursor", value),
    unseal: (text) => {
      const value = state.sealer.unseal("cursor", text);
      return typeof value === "string" ? value : undefined;
    },
  });
  const patterns = new UnusedPatterns(catalog, (text) => log.warn(text));
  const lists = new StoredLists({ map: state.known, snapshot: (server) => catalog.snapshot(server), log });
  const pins = new StoredPins({
    map: state.pins,
    identityOf: state.engine === undefined ? undefined : serverIdentity,
    wall: systemClock.wall,
    onChange: (server) => {
      pipeline.pinsChanged(server);
      outbox.poke(server);
    },
    onHeldBack: (count) => eventMetrics.caught("pin", count),
    log: (level, text, facts) => log[level](text, factsFor(log, facts)),
    redact,
  });
  const cache = new Cache(config.cache, systemClock);
  const observer = new CallObserver({
    clock: systemClock,
    tracer: parts.telemetry?.tracer,
    eraOf: (server) => eraOf(servers.get(server)?.intro),
    toolName: (server, tool) => records.metrics.toolName(server, tool),
    redact,
    transportOf: (server) => transportOf(servers.supervised(server)?.spec),
    isAnyAway: ({ caller, scope }) => {
      let view: View | undefined;
      for (const server of servers.all) {
        // Asked at each list: what its agent sees is looked at where a server is failing, and of that one alone.
        if (!server.isFailing) continue;
        const { name } = server;
        if (scope !== undefined && name !== scope) continue;
        view ??= pipeline.access.view(caller, scope);
        if (pipeline.access.sees(caller.principal, name) && catalog.showsAny(name, view)) return true;
      }
      return false;
    },
  });
  const serverLabels = new ServerLabels();
  const eventMetrics = new EventMetrics(serverLabels);
  if (state.store !== undefined) state.store.onCommit = (ms) => eventMetrics.committed(ms);
  const safeName = (server: string | undefined, name: string) =>
    server === undefined ? safeLine(owner.config().servers, name) : redact(server, name);
  const metrics = new CallMetrics(
    {
      isListed: (server, tool) => catalog.showsTool(server, ownToolName(tool)),
      isRole: (role) => role === DEFAULT_ROLE || role === OPERATOR.role || Object.hasOwn(owner.config().roles, role),
      redacted: redact,
    },
    serverLabels,
    eventMetrics,
  );
  const history = new History((server, tool) => metrics.toolLabel(server, tool));
  eventMetrics.onRestart = (server) => history.restarted(server, systemClock.wall());
  eventMetrics.onTurned = (server, circuit) => parts.serverEvents.turned(server, circuit);
  eventMetrics.onAnswers = (server) => outbox.answers(server);
  const caught = new CaughtDay(systemClock.wall());
  eventMetrics.onCaught = (kind, count) => caught.add(kind, count, systemClock.wall());
  const audit = parts.audit?.begin(safeName);
  if (audit?.wantsArguments === true) observer.argumentsOf = (message) => audit.argumentsOf(message);
  const records = new CallRecords({
    lines: new CallLines(log, safeName),
    metrics,
    kept: new KeptCalls(safeName),
    history,
    audit,
    eventMetrics,
    dropped: () => ({ log: log.lines?.dropped ?? 0, spans: parts.telemetry?.stats()?.dropped ?? 0 }),
  });
  observer.setRecorder(records.recorder);
  const taskOwners = new TaskOwners({
    map: state.tasks,
    wall: systemClock.wall,
    failed: (error) => log.warn(`what is kept of tasks could not be written: ${(error as Error).message}`),
  });
  const pipeline = new Pipeline({
    cache,
    pins,
    now: systemClock.now,
    catalog,
    policy: policyOf(config, log),
    version,
    taskIds: state.taskIds,
    taskOwners,
    observer,
    onSession: sessionsSeen(eventMetrics, sessionLog(log)),
    onKnown: (server) => {
      lists.saveSoon(server);
      outbox.poke(server);
      patterns.tellSoon(() => owner.config());
    },
    log: (level, text, error) => log[level](text, error === undefined ? undefined : { error }),
    redact,
  });
  const reaper = new Reaper({
    stateHash: hashStateDir(state.dir ?? `memory ${process.pid} ${owner.startedAt}`),
    env,
    onProblem: (text) => log.warn(text),
  });
  const stderr = keepStderr(state.dir, log, systemClock.wall);
  const around = {
    get servers() {
      return servers;
    },
    reloadServer: (name: string) => owner.reloadServer(name),
  };
  const executors = new Executors(log, around, { engine: state.engine });
  const { openRequester } = executors;
  const credentials = new Credentials({
    env,
    reaper,
    grants: state.grants,
    send: (target) => (request) => requestShortly(target, request, openRequester),
    log: (name, text) => log.warn(`server "${name}": ${redact(name, text)}`, factsFor(log, { server: name })),
    onFetched: (name, isGood) => eventMetrics.refreshed(name, isGood),
    onChange: (name) => {
      const server = servers.supervised(name);
      log.info(`server "${name}": its credential is another now`, factsFor(log, { server: name }));
      // What was kept is what another could see.
      cache.invalidate(name);
      if (server?.isFailing === true) void owner.reloadServer(name).catch(() => {});
      else server?.readListsAgain();
    },
  });
  const { take: onStderr } = stderr;
  const swept = () => owner.sweep();
  const refusals = new RefusalLog(log);
  const mailboxes = new Mailboxes(state, log, held, (refusal) => refusals.refused(refusal));
  const places = state.engine === undefined ? undefined : new ServerPlaces(state.engine);
  const servers = new ServerPool({
    context: {
      now: systemClock.now,
      random: Math.random,
      lifecycle: eventMetrics,
      held,
      makeLink: linkMaker({
        reaper,
        env,
        swept,
        openRequester,
        held,
        onStderr,
        credentialOf: (server, target) => credentials.of(server, target),
        placeOf: places && ((spec) => places.of(spec)),
        worker: {
          addressPart: () => state.inbox,
          openOwn: (address, events, signal) => mailboxes.openLine(address, events, signal),
        },
      }),
    },
    openRequester,
    events: pipeline.fromServers,
    clientInfo: { name: "toolway", version },
    eras: new StoredEras(state.eras, systemClock.wall, (error) =>
      log.warn(`the era of a server could not be kept for the next start: ${(error as Error).message}`),
    ),
    isKnown: (server) => parts.lazyLists === true || state.known.get(server) !== undefined,
    agents: pipeline.sessions,
    soleAgent: () => owner.soleAgent(),
    log: (level, text, facts) => log[level](text, factsFor(log, facts)),
  });
  pipeline.attach(servers);
  if (places !== undefined) {
    const failed = (error: unknown) => log.error("a server could not be passed to another gateway", { error });
    // Loaded by those alone who run a server for others.
    const serving = () => import("./placement/serve.js");
    places.accept(async (stream) => {
      const { servePlaced } = await serving();
      await servePlaced(stream, { places, servers, pipeline, held, failed });
    }, failed);
    // One that could not be had where it was is tried where it is now, however long it was to be left alone.
    places.onMove((isOf) => {
      for (const { name, spec, isFailing } of servers.all) {
        if (spec.placement === "one" && isFailing && isOf(name)) void owner.reloadServer(name).catch(() => {});
      }
    });
  }
  if (audit !== undefined) {
    pipeline.access.halted = () => (audit.isRefusing ? auditFull(audit.problem) : undefined);
  }
  const outbox = new GatewayOutbox({
    state,
    log,
    pipeline,
    catalog,
    servers: () => servers,
    observed: (call, server, tool) => observer.delivered(call, server, tool),
    isBroker: isBrokerAlone(config),
    ended: (write) => {
      eventMetrics.outboxWriteEnded(write.facts.server, write.state, write.isQueueLogged);
      if (write.isTold) audit?.keptWrite(write.facts, write.state);
    },
  });
  for (const [principal, context] of state.contexts.entries()) pipeline.contexts.restore(principal, context);
  // One that has no servers, roles and menus goes by no config that others could differ from.
  const marks = isBrokerAlone(config) ? undefined : marksOf(state, version);
  followOthers(state, {
    pins,
    tasks: taskOwners,
    contexts: pipeline.contexts,
    changeContext: (principal, changes) => pipeline.changeContext(principal, changes),
    back: () => {
      marks?.beat();
      for (const name of servers.names) lists.saveSoon(name);
      pins.retry();
    },
    lists: (server, snapshot) => {
      if (catalog.counts(server).tools > 0 || !catalog.restore(server, snapshot)) return;
      const tools = catalog.listedTools(server);
      if (tools !== undefined) pins.check(server, tools);
      for (const kind of LIST_KINDS) pipeline.sessions.listChanged(kind, [server]);
    },
  });
  const sharing = new Sharing(
    {
      service: pipeline,
      sealer: state.sealer,
      held,
      log,
      config: () => owner.config(),
      servers: () => servers.names,
      lists: () => ({
        unread: unreadLists(servers, servers.names),
        areAnyRead: [...servers.all].some(({ listed }) => listed),
      }),
    },
    state.store,
  );
  return {
    held,
    comeBacks: () => eventMetrics.comeBacks,
    catalog,
    cache,
    pipeline,
    servers,
    executors,
    credentials,
    mailboxes,
    outbox,
    sharing,
    pins,
    lists,
    patterns,
    calls: new ProgramCalls(pipeline),
    diagnostics: new Diagnostics({
      records,
      observer,
      stateDir: state.dir,
      auditDir: parts.audit?.dir,
      log,
      caught,
      serverEvents: parts.serverEvents,
      agents: () => pipeline.sessions.all(),
      redactFor: (server) => redactionOf(owner.config().servers, server),
      servers: () => servers.names,
      toolsOf: (server) => catalog.ownTools(server),
      asks: () => sharing.asks,
      endingTokens: () => endingTokens(state.tokens.list(), systemClock.wall()),
    }),
    records,
    stderr,
    reaper,
    marks,
    places,
  };
}

function marksOf({ engine }: GatewayState, version: string): ConfigMarks | undefined {
  if (engine === undefined) return undefined;
  const map = engine.shared.shared<ConfigMark>("configs");
  const marks = new ConfigMarks({ map, self: engine.self, version, host: hostname(), now: systemClock.now });
  const timer = setInterval(() => marks.beat(), BEAT_MS).unref();
  engine.onClose(async () => {
    clearInterval(timer);
    await marks.close();
  });
  return marks;
}

/** Sessions are what legacy agents have: a modern one that called lately is none. */
function sessionsSeen(eventMetrics: EventMetrics, told: ReturnType<typeof sessionLog>): SessionWatch {
  return (what, session, scope, fault) => {
    told?.(what, session, scope);
    if (session.era !== "legacy") return;
    const { sessionKey, version } = session;
    if (what === "closed") eventMetrics.sessionClosed(sessionKey, version, systemClock.now(), fault);
    else eventMetrics.sessionOpened(sessionKey, systemClock.now(), what === "resumed");
  };
}

/** The rules of a config's roles. What is wrong with them is logged. */
/** It keeps mailboxes and has no servers. Nobody can give it some later: it has no file. */
export function isBrokerAlone({ path, mailboxes, servers }: Config): boolean {
  return path === undefined && mailboxes && servers.length === 0;
}

export function policyOf({ roles, unlistedRoles }: Config, log: Log): Policy {
  const policy = compilePolicy({ roles, unlistedRoles });
  for (const problem of policy.problems) log.warn(problem);
  return policy;
}

function transportOf(spec: ServerSpec | undefined): Transport | undefined {
  return spec === undefined ? undefined : spec.target.kind === "stdio" ? "pipe" : "tcp";
}

/** Undefined where the server never came up. */
function eraOf(intro: ServerIntro | undefined): Era | undefined {
  return intro === undefined ? undefined : (intro.era ?? "legacy");
}
