// `toolway doctor`: starts each server by itself, and says what to fix.

import { accessSync, constants } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import type { Config } from "../../config/config.js";
import type { MisconfiguredSpec, ServerSpec } from "../../contracts/server-spec.js";
import { demoConfig } from "../../demo/config.js";
import { within } from "../../runtime/wait.js";
import { type GatewaySource, gatewayPort, type Probe } from "../gateway/port.js";
import { configPathFor, sourceFor } from "../gateway/source.js";
import { defineCommand, jsonOption } from "../line/command.js";
import { Exit, UserError } from "../line/errors.js";
import { type Io, note, print, printJson, shortPath, shown } from "../line/io.js";
import { adviceFor } from "../text/advice.js";
import { count, duration, heading, oneLine, type Style, styleOf, table } from "../text/print.js";

/** Beyond the server's own deadline, for stopping it again. */
const STOP_MS = 15_000;

/** Servers are heavy to start: more at once would make each of them look slow. */
const AT_ONCE = 6;

/** The reason stands in the last lines. */
const STDERR_LINES = 8;
/** So many problems of a server's tools are shown. */
const PROBLEM_LINES = 10;

const LINE_WIDTH = 200;

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
      "Starts each server by itself, apart from a gateway that may run, and shows its protocol, its tools, how long it " +
      "took, and on failure what it wrote and what to fix. A server behind an executor that dials in is tried by the " +
      "gateway that runs, which is asked. Exits 1 when any server failed.",
  },
  args: { config: { description: "The config, as for serve.", isConfig: true, completes: "file" } },
  options: {
    server: { value: "NAME", description: "That server only.", completes: "server" },
    state: { value: "DIR", description: "Where the gateway that runs keeps its state.", completes: "folder" },
    ...jsonOption,
  },
  examples: [
    { line: "toolway doctor", note: "all servers of the config" },
    { line: "toolway doctor ~/.cursor/mcp.json --server github", note: "one server of another client's file" },
  ],
  async handler(input, io) {
    const config = await load(configPathFor(input.config, io), io);
    const isMeant = ({ name }: { name: string }) => input.server === undefined || name === input.server;
    const specs = config.servers.filter(isMeant);
    const wrong = config.misconfigured.filter(isMeant);
    if (specs.length + wrong.length === 0) throw nothingToDo(config, input.server);
    const style = styleOf(io);
    if (!input.json && io.isErrTTY) note(io, `Starting ${count(specs.length, "server")} …`);
    const source = await sourceFor({ config: input.config, state: input.state }, io);
    const examined = specs.length === 0 ? [] : await examineAll(specs, config, source, io);
    const findings = [...examined, ...wrong.map((spec) => misconfiguredFinding(spec, io))];
    if (input.json) printJson(io, findings.map(toJson));
    else {
      for (const warning of config.warnings) note(io, `warning: ${warning}`);
      print(
        io,
        report(
          findings.map((found) => ({ ...found, probe: shown(found.probe, io.isTTY) })),
          style,
        ),
      );
      for (const name of config.disabled) print(io, style.dim(`${name} is switched off in ${where(config, io)}.`));
    }
    return findings.every(({ probe }) => probe.ok || probe.untried === true) ? Exit.ok : Exit.failure;
  },
});

async function load(path: string | undefined, io: Io): Promise<Config> {
  const { loadConfig, resolveConfig } = await import("../../config/load.js");
  if (path !== undefined) return loadConfig(path, { env: io.env, home: io.home, wrongEntries: "keep" });
  return resolveConfig(demoConfig(), { env: io.env, home: io.home, dir: io.cwd });
}

function nothingToDo(config: Config, server: string | undefined): UserError {
  if (server === undefined) {
    return new UserError("The config has no servers.", {
      hint: "`toolway import --write` takes those of your clients.",
    });
  }
  const off = config.disabled.includes(server);
  return new UserError(off ? `${server} is switched off in the config.` : `The config has no server ${server}.`, {
    hint: `It has: ${[...config.servers, ...config.misconfigured].map(({ name }) => name).join(", ") || "none"}.`,
    kind: "usage",
  });
}

export async function examineAll(
  specs: readonly ServerSpec[],
  { executors }: Config,
  source: GatewaySource,
  io: Io,
): Promise<Finding[]> {
  const port = await gatewayPort();
  const findings: Finding[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let i = next++; i < specs.length; i = next++) {
      const spec = specs[i];
      if (spec === undefined) return;
      io.signal.throwIfAborted();
      const signal = within(spec.connectTimeoutMs + STOP_MS, io.signal);
      const probing = port.probe(spec, { signal, executors, source });
      const probe = await probing.catch((error: unknown) => failedProbe(error, io));
      findings[i] = { spec, probe, advice: adviceFor(spec, probe, (program) => isOnPath(program, io)) };
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, specs.length) }, worker));
  return findings;
}

/** Its entry cannot be used: each mistake says its own fix. */
function misconfiguredFinding(spec: MisconfiguredSpec, io: Io): Finding {
  const probe = failedProbe(new Error(spec.forOperator), io);
  return { spec, probe: { ...probe, error: { code: "misconfigured", message: spec.forOperator } }, advice: [] };
}

function failedProbe(error: unknown, io: Io): Probe {
  io.signal.throwIfAborted();
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && "code" in error ? String(error.code) : "unavailable";
  return {
    ok: false,
    era: undefined,
    version: undefined,
    serverInfo: undefined,
    tools: [],
    problems: [],
    readyMs: undefined,
    error: { code, message },
    stderr: [],
    noise: { count: 0, sample: undefined },
  };
}

function report(findings: readonly Finding[], style: Style): string {
  const head = heading(style, ["", "SERVER", "KIND", "ERA", "PROTOCOL", "TOOLS", "READY IN", "CALLS ITSELF"]);
  const rows = findings.map(({ spec, probe }) => [
    probe.ok
      ? style.green("ok")
      : probe.untried === true
        ? style.yellow("not tried")
        : style.red("target" in spec ? "FAILED" : "MISCONFIGURED"),
    style.bold(spec.name),
    kindOf(spec),
    probe.era ?? "-",
    probe.version ?? "-",
    probe.ok ? String(probe.tools.length) : "-",
    probe.readyMs === undefined ? "-" : duration(probe.readyMs),
    oneLine([probe.serverInfo?.name, probe.serverInfo?.version].filter((part) => part !== undefined).join(" "), 40),
  ]);
  const details = findings
    .filter(({ probe, advice }) => !probe.ok || advice.length > 0 || probe.problems.length > 0)
    .map((found) => detail(found, style));
  return [table([head, ...rows]), ...details].join("\n\n");
}

export function detail({ spec, probe, advice }: Finding, style: Style): string {
  const lines = [style.bold(spec.name)];
  for (const line of probe.ok ? [] : (probe.error?.message ?? "It failed.").split("\n")) {
    lines.push(`  ${style.red(oneLine(line, LINE_WIDTH * 2))}`);
  }
  if (!probe.ok) {
    for (const line of probe.stderr.slice(-STDERR_LINES))
      lines.push(style.dim(`  stderr: ${oneLine(line, LINE_WIDTH)}`));
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
  return target.kind === "stdio" || target.via === undefined ? target.kind : `${target.kind} via ${target.via}`;
}

function where(config: Config, io: Io): string {
  return config.path === undefined ? "the config" : shortPath(io, config.path);
}

function isOnPath(program: string, io: Io): boolean {
  const folders = isAbsolute(program) ? [""] : (io.env["PATH"] ?? "").split(delimiter);
  return folders.some((folder) => {
    try {
      accessSync(folder === "" ? program : join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
