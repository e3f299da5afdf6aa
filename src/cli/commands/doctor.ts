// `toolway doctor`: starts each server by itself, tells of each as it ends, and says what to fix.

import { existsSync } from "node:fs";
import type { Config, ServerMenu } from "../../config/config.js";
import type { MisconfiguredSpec, ServerSpec } from "../../contracts/server-spec.js";
import { demoConfig } from "../../demo/config.js";
import { messageOf } from "../../runtime/expected-error.js";
import { fits, readGlob } from "../../runtime/glob.js";
import { within } from "../../runtime/wait.js";
import { errorLines } from "../../runtime/words/error-lines.js";
import { answersFor, askForInputs } from "../gateway/ask-inputs.js";
import { failedProbe } from "../gateway/failed-probe.js";
import { type GatewaySource, gatewayPort, type Probe } from "../gateway/port.js";
import { sourceFor } from "../gateway/source.js";
import { canAsk } from "../line/ask.js";
import { configArg, defineCommand, folderOption, jsonOption } from "../line/command.js";
import { Exit, UserError, usageError } from "../line/errors.js";
import { fromHere, hinted, type Io, note, print, printJson, shortPath, shown } from "../line/io.js";
import { adviceFor, mayDownload } from "../text/advice.js";
import { count, duration, fittedTable, heading, oneLine, type Style, styleOf } from "../text/print.js";

/** Beyond the server's own deadline, for stopping it again. */
const STOP_MS = 15_000;

/** Servers are heavy to start: more at once would make each of them look slow. */
const AT_ONCE = 4;

/**
 * A first `npx`, `uvx` or `docker run` downloads the server, and an image may have hundreds of megabytes. A gateway does
 * not wait so long: whoever asked the doctor first has the download behind them.
 */
const DOWNLOAD_MS = 180_000;

/** A person who sees nothing for longer wonders whether anything happens. */
const PROGRESS_MS = 5_000;

/** An error has a few lines. */
const STDERR_LINES = 8;
/** So many problems of a server's tools are shown. */
const PROBLEM_LINES = 10;

const LINE_WIDTH = 200;
/** What a server calls itself. */
const NAME_WIDTH = 40;

export interface Finding {
  /** One that is misconfigured has no target, and is not started. */
  readonly spec: ServerSpec | MisconfiguredSpec;
  readonly probe: Probe;
  readonly advice: readonly string[];
}

export const doctor = defineCommand({
  metadata: {
    name: "doctor",
    summary: "Starts each server by itself, and says what to fix.",
    description:
      "Starts each server by itself, four at a time, apart from a gateway that may run, and shows its protocol, its " +
      "tools (those that its entry lets through, of all), how long it took, and on failure what it wrote and what to fix. What npx, uvx or docker may have to " +
      "download at a first start has three minutes. A server behind an executor that dials in is tried by the gateway " +
      "that runs, which is asked. On a terminal it asks for inputs of the config that nobody has answered (VS Code's " +
      "`inputs`), and keeps the answers sealed. With --engine it starts no server: it writes to the config's `engine`, reads from " +
      "it and holds a lease for ten seconds, in a stream that is gone afterwards, and says which promises hold on it and what to " +
      "set. Exits 1 when any server failed or the engine cannot be used, 2 when the config cannot be read.",
  },
  args: { config: configArg("The config, as for serve.") },
  options: {
    server: { value: "NAME", description: "That server only.", completes: "server" },
    engine: {
      description: "The engine of the config in place of its servers: ten seconds of writes, reads and a lease.",
    },
    state: folderOption("Where the gateway that runs keeps its state."),
    ...jsonOption,
  },
  examples: [
    { line: "toolway doctor", note: "all servers of the config" },
    { line: "toolway doctor --engine", note: "the NATS that several gateways share" },
    { line: "toolway doctor ~/.cursor/mcp.json --server github", note: "one server of another client's file" },
  ],
  async handler(input, io) {
    if (input.config !== undefined) refuseServerAsConfig(input.config, io);
    const source = await sourceFor({ config: input.config, state: input.state }, io);
    const config = await loadAsking(source, input.json, io);
    if (input.engine) return examineEngineOf(config, input.json, io);
    const started = performance.now();
    const isMeant = ({ name }: { name: string }) => input.server === undefined || name === input.server;
    const specs = config.servers.filter(isMeant);
    const wrong = config.misconfigured.filter(isMeant);
    if (specs.length + wrong.length === 0) throw nothingToDo(config, input.server);
    if (!input.json) for (const warning of config.warnings) note(io, `warning: ${warning}`);
    const told = input.json ? undefined : new Told([...wrong, ...specs], io);
    // What is wrong with an entry is known before anything is started.
    const misconfigured = wrong.map(misconfiguredFinding);
    for (const found of misconfigured) told?.ended(found);
    const findings = [...(await examineAll(specs, { config, source, told }, io)), ...misconfigured];
    if (input.json) printJson(io, findings.map(toJson));
    else {
      const style = styleOf(io);
      for (const found of findings.filter(needsWords)) {
        print(io, `\n${detail(typeable(found, io), style)}`);
      }
      const off = config.disabled.map((name) => `${name} is switched off in ${where(config, io)}.`);
      if (off.length > 0) print(io, `\n${style.dim(off.join("\n"))}`);
      for (const text of await differencesOf(config, source)) print(io, `\n${style.red(text)}`);
      print(io, `\n${total(findings, performance.now() - started)}`);
    }
    return findings.every(({ probe }) => probe.ok || probe.untried === true) ? Exit.ok : Exit.failure;
  },
});

/** Other verbs take a server's name there; this one a config, since other clients' files are looked at by it. */
function refuseServerAsConfig(named: string, io: Io): void {
  if (!/^[\w-]+$/.test(named) || existsSync(fromHere(io, named))) return;
  throw usageError(
    `There is no config at ${fromHere(io, named)}.`,
    `If ${named} is a server, name it by --server ${named}.`,
  );
}

/** Gateways on the engine that go by another config than the one that runs here. */
async function differencesOf({ engine }: Config, { stateDir }: GatewaySource): Promise<readonly string[]> {
  if (engine === undefined) return [];
  const { configDifferences } = await import("../gateway/engine.js");
  return configDifferences(stateDir);
}

async function examineEngineOf({ engine, path }: Config, isJson: boolean, io: Io): Promise<0 | 1> {
  if (engine === undefined) {
    throw new UserError(`${path === undefined ? "The built-in config" : shortPath(io, path)} has no "engine".`, {
      kind: "usage",
      hint: 'It is a key beside "mcpServers": docs/scale.md.',
    });
  }
  const { examineEngine } = await import("../gateway/engine.js");
  if (!isJson && io.isErrTTY) note(io, "Writing to the engine for ten seconds…");
  const report = await examineEngine(engine, { env: io.env, signal: io.signal });
  if (isJson) printJson(io, report);
  else {
    const { engineReportText } = await import("../text/engine-report.js");
    print(io, engineReportText(shown(report, io.isTTY), styleOf(io)));
  }
  return report.ok ? Exit.ok : Exit.failure;
}

/** Asks the person for inputs of the config that nobody has answered, if there is one to ask, and keeps the answers. */
async function loadAsking(source: GatewaySource, isJson: boolean, io: Io): Promise<Config> {
  const config = await load(source, io);
  if (isJson || config.unanswered.length === 0 || !canAsk(io)) return config;
  const kept = await askForInputs(config.unanswered, source, io);
  return kept > 0 ? await load(source, io) : config;
}

async function load(source: GatewaySource, io: Io): Promise<Config> {
  const { configPath: path } = source;
  const { loadConfig, resolveConfig } = await import("../../config/load.js");
  const answers = await answersFor(source);
  if (path !== undefined) return loadConfig(path, { env: io.env, home: io.home, answers, wrongEntries: "keep" });
  return resolveConfig(demoConfig(), { env: io.env, home: io.home, dir: io.cwd });
}

function nothingToDo(config: Config, server: string | undefined): UserError {
  if (server === undefined) {
    return new UserError("The config has no servers.", {
      hint: "`toolway import --write` takes those of your clients.",
      kind: "usage",
    });
  }
  const off = config.disabled.includes(server);
  return new UserError(off ? `${server} is switched off in the config.` : `The config has no server ${server}.`, {
    hint: `It has: ${[...config.servers, ...config.misconfigured].map(({ name }) => name).join(", ") || "none"}.`,
    kind: "usage",
  });
}

export interface Examination {
  readonly config: Config;
  readonly source: GatewaySource;
  /** Where it is told as it ends. */
  readonly told?: Told | undefined;
}

export async function examineAll(specs: readonly ServerSpec[], examination: Examination, io: Io): Promise<Finding[]> {
  const findings: Finding[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let i = next++; i < specs.length; i = next++) {
      const spec = specs[i] as ServerSpec;
      io.signal.throwIfAborted();
      const found = await examine(spec, examination, io);
      findings[i] = found;
      examination.told?.ended(found);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, specs.length) }, worker));
  return findings;
}

/** Its entry cannot be used: each mistake says its own fix. */
function misconfiguredFinding(spec: MisconfiguredSpec): Finding {
  return { spec, probe: failedProbe({ code: "misconfigured", message: spec.forOperator }), advice: [] };
}

async function examine(spec: ServerSpec, { config, source, told }: Examination, io: Io): Promise<Finding> {
  const port = await gatewayPort();
  const connectTimeoutMs = Math.max(spec.connectTimeoutMs, mayDownload(spec) ? DOWNLOAD_MS : 0);
  const signal = within(connectTimeoutMs + STOP_MS, io.signal);
  let stderr: () => readonly string[] = () => [];
  const watch = (lines: typeof stderr): void => {
    stderr = lines;
  };
  const started = performance.now();
  const progress = setInterval(() => {
    if (told !== undefined || io.isErrTTY) noteWaiting(spec, performance.now() - started, stderr(), io);
  }, PROGRESS_MS);
  try {
    const { executors } = config;
    const probe = await port.probe({ ...spec, connectTimeoutMs }, { signal, executors, source, watch });
    // A server that was stopped with us has not failed.
    io.signal.throwIfAborted();
    return { spec, probe, advice: adviceFor(spec, probe) };
  } catch (error) {
    io.signal.throwIfAborted();
    const probe = failedProbe({ message: messageOf(error) });
    return { spec, probe, advice: adviceFor(spec, probe) };
  } finally {
    clearInterval(progress);
  }
}

const HEAD = ["", "SERVER", "KIND", "ERA", "PROTOCOL", "TOOLS", "READY IN", "CALLS ITSELF"];

/** Tells of the servers while they are examined: a line of the table as each ends. */
class Told {
  readonly #io: Io;
  readonly #style: Style;
  /** Rows that come one by one line up only with what is known before. */
  readonly #widest: readonly string[];

  constructor(specs: readonly Finding["spec"][], io: Io) {
    this.#io = io;
    this.#style = styleOf(io);
    const longest = (texts: readonly string[]) =>
      texts.reduce((one, other) => (other.length > one.length ? other : one));
    const [names, kinds] = [specs.map(({ name }) => name), specs.map(kindOf)];
    const verdict = specs.every((spec) => "target" in spec) ? "not tried" : "MISCONFIGURED";
    const tools = specs.some(isNarrowed) ? "99 of 99" : "TOOLS";
    this.#widest = [
      verdict,
      longest(["SERVER", ...names]),
      longest(["KIND", ...kinds]),
      "legacy",
      "2025-11-25",
      tools,
      "READY IN",
      "x".repeat(NAME_WIDTH),
    ];
    this.#row(heading(this.#style, HEAD));
  }

  ended({ spec, probe }: Finding): void {
    const style = this.#style;
    const info = shown(probe.serverInfo, this.#io.isTTY);
    this.#row([
      this.#verdict(spec, probe),
      style.bold(spec.name),
      kindOf(spec),
      probe.era ?? "-",
      oneLine(shown(probe.version ?? "-", this.#io.isTTY), 10),
      probe.ok ? toolsText(spec, probe.tools) : "-",
      probe.readyMs === undefined ? "-" : duration(probe.readyMs),
      oneLine([info?.name, info?.version].filter((part) => part !== undefined).join(" "), NAME_WIDTH),
    ]);
  }

  #verdict(spec: Finding["spec"], probe: Probe): string {
    if (probe.ok) return this.#style.green("ok");
    if (probe.untried === true) return this.#style.yellow("not tried");
    return this.#style.red("target" in spec ? "FAILED" : "MISCONFIGURED");
  }

  #row(cells: readonly string[]): void {
    const [, , row] = fittedTable([HEAD, this.#widest, cells], this.#io, { whole: ["", "SERVER"] }).split("\n");
    print(this.#io, row ?? "");
  }
}

/** What its entry says of which tools are shown; one that was made for a check alone says nothing. */
type Menu = Partial<Pick<ServerMenu, "only" | "tools">>;

function isNarrowed(spec: Finding["spec"]): boolean {
  const { only, tools = {} } = spec as Menu;
  return only !== undefined || Object.values(tools).some(({ hide }) => hide === true);
}

/** `12`, or `3 of 12` where the entry hides some: a menu without a tool is often the entry's doing. */
function toolsText(spec: Finding["spec"], tools: readonly string[]): string {
  if (!isNarrowed(spec)) return String(tools.length);
  const { only, tools: overrides = {} } = spec as Menu;
  const globs = only?.map(readGlob);
  const isShown = (tool: string): boolean =>
    overrides[tool]?.hide !== true && (globs === undefined || globs.some((glob) => fits(glob, tool)));
  return `${tools.filter(isShown).length} of ${tools.length}`;
}

/** It takes long; the last line that it wrote may say for what. */
function noteWaiting(spec: ServerSpec, ms: number, stderr: readonly string[], io: Io): void {
  const why = mayDownload(spec) ? ", perhaps with a download" : "";
  const last = stderr.at(-1);
  const wrote = last === undefined ? "." : `: ${oneLine(last, LINE_WIDTH)}`;
  note(io, `${spec.name} has been starting for ${duration(ms)}${why}${wrote}`);
}

function total(findings: readonly Finding[], ms: number): string {
  const number = (of: (found: Finding) => boolean) => findings.filter(of).length;
  const parts = [
    `${number(({ probe }) => probe.ok)} ok`,
    `${number(({ probe }) => !probe.ok && probe.untried !== true)} failed`,
  ];
  const untried = number(({ probe }) => probe.untried === true);
  if (untried > 0) parts.push(`${untried} not tried`);
  return `${count(findings.length, "server")} in ${duration(ms)}: ${parts.join(", ")}.`;
}

function needsWords({ probe, advice }: Finding): boolean {
  return !probe.ok || advice.length > 0 || probe.problems.length > 0;
}

/** As it may be shown here, its commands as they can be typed. What a server said names none of ours. */
function typeable({ spec, probe, advice }: Finding, io: Io): Finding {
  const { error } = probe;
  const told = error !== undefined && !("target" in spec) ? { ...error, message: hinted(io, error.message) } : error;
  return { spec, advice: advice.map((text) => hinted(io, text)), probe: shown({ ...probe, error: told }, io.isTTY) };
}

/** Its texts are shown as they are: the caller has made them fit for a terminal. */
export function detail({ spec, probe, advice }: Finding, style: Style): string {
  const lines = [style.bold(spec.name)];
  if (!probe.ok) {
    const message = probe.error?.message ?? "It failed.";
    for (const line of message.split("\n")) lines.push(`  ${style.red(oneLine(line, LINE_WIDTH * 2))}`);
    for (const line of errorLines(probe.stderr).slice(0, STDERR_LINES)) {
      const text = oneLine(line, LINE_WIDTH);
      // What the message has said already is not said twice.
      if (!message.includes(text)) lines.push(style.dim(`  stderr: ${text}`));
    }
  }
  if (probe.noise.sample !== undefined) lines.push(style.dim(`  stdout: ${oneLine(probe.noise.sample, LINE_WIDTH)}`));
  for (const text of advice) lines.push(`  ${style.yellow("fix:")} ${text}`);
  for (const text of probe.problems.slice(0, PROBLEM_LINES)) lines.push(`  ${oneLine(text, LINE_WIDTH * 2)}`);
  const more = probe.problems.length - PROBLEM_LINES;
  if (more > 0) lines.push(`  … and ${more} more; --json has them all.`);
  return lines.join("\n");
}

function toJson({ spec, probe, advice }: Finding): Record<string, unknown> {
  return { name: spec.name, kind: "target" in spec ? spec.target.kind : undefined, ...probe, advice };
}

function kindOf(spec: Finding["spec"]): string {
  if (!("target" in spec)) return "-";
  const { target } = spec;
  return "via" in target && target.via !== undefined ? `${target.kind} via ${target.via}` : target.kind;
}

function where(config: Config, io: Io): string {
  return config.path === undefined ? "the config" : shortPath(io, config.path);
}
