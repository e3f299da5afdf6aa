// `toolway join`: the tools of a machine that shares them through a broker, on stdio or at an address. It is a gateway whose
// config is one server, made from the command line.

import { createHash } from "node:crypto";
import { join as joinPath, resolve } from "node:path";
import type { ConfigInput } from "../../config/load.js";
import type { ServerSpec } from "../../contracts/server-spec.js";
import { stateRootFor } from "../../runtime/state-dir.js";
import { type GatewayPort, type GatewaySource, gatewayPort, type StartedGateway } from "../gateway/port.js";
import { defineCommand } from "../line/command.js";
import { Exit, UserError, usageError } from "../line/errors.js";
import { type Io, note, pasted, print, shellPath, shown } from "../line/io.js";
import { brokerOption, noteUnencrypted } from "../mailbox/broker-option.js";
import { tokenText } from "../text/banner.js";
import { styleOf, table } from "../text/print.js";
import { listenOption, startedOr, untilStopped } from "./serve.js";

/** Names of servers are parts of URLs; an id of a mailbox may be anything. */
const SERVER_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export const join = defineCommand({
  metadata: {
    name: "join",
    lasts: true,
    summary: "Uses the tools that another machine shares through a broker.",
    description:
      "Uses the tools that another machine shares through a broker, as if they were here: on stdin and stdout, for a " +
      "client that starts its servers, or at an address with --listen. It starts without the broker and without that " +
      "machine, with the tools that are known from before or none, and says so. The token is the broker's, one that may " +
      'send to the mailbox, and is taken from TOOLWAY_TOKEN. In a config the same is a server with "mailbox".',
  },
  args: {},
  options: {
    broker: { value: "URL", description: "Where the broker is: wss://…, or ws://… on this machine." },
    from: { value: "ID", description: "The mailbox of the machine whose tools are used.", completes: "paired" },
    pair: {
      value: "WORD",
      description: "The word that `toolway share --pair` printed there: the broker, the mailbox and a token in one.",
    },
    listen: { value: "HOST:PORT", description: "Serves MCP over HTTP here, instead of stdin and stdout." },
    require: { description: "Ends with an error where broker or machine cannot be reached at the start." },
    state: { value: "DIR", description: "Where lists and tokens are kept, as for serve.", completes: "folder" },
    json: { description: "With --listen: prints where it listens as one line of JSON, for scripts." },
  },
  examples: [
    {
      line: "toolway join --pair 127.0.0.1:7440/ABCD-EFGH-JKMN --listen 127.0.0.1:7430",
      note: "once; then --from studio will do",
    },
    {
      line: "toolway join --broker wss://broker.example.com --from studio",
      note: "on stdio, with the token in TOOLWAY_TOKEN",
    },
    {
      line: "toolway join --broker ws://127.0.0.1:7440 --from studio --listen 127.0.0.1:7430",
      note: "at an address, for several clients",
    },
    {
      line: "claude mcp add studio -- toolway join --broker wss://broker.example.com --from studio",
      note: "Claude Code starts it by itself",
    },
  ],
  async handler(input, io) {
    const { joinPlace } = await import("../mailbox/join-pair.js");
    const place = await joinPlace(input, io);
    const { broker, from } = required(place.broker, place.from);
    const listen = listenOption(input.listen);
    const config = configFor(broker, from, place.token);
    const source = sourceOf(config, broker, from, input.state, io);
    noteUnencrypted(broker, io);
    const port = await gatewayPort();
    const { resolveConfig } = await import("../../config/load.js");
    const [spec] = resolveConfig(config, { env: {}, home: io.home }).servers;
    const isTokenless = (place.token ?? "") === "";
    const missing = spec === undefined ? Promise.resolve(undefined) : whyMissing(port, spec, isTokenless, io);
    if (input.require) {
      const why = await missing;
      if (why !== undefined) throw new UserError(why, { hint: "Without --require it would wait for them." });
    } else {
      void missing.then((why) => {
        if (why !== undefined && !io.signal.aborted) {
          note(io, `${why} Until then the tools of ${from} are those known from before, or none.`);
        }
      });
    }
    if (listen === undefined) {
      await port.stdio(source, {
        input: io.stdin,
        output: io.stdout,
        signal: io.signal,
        role: undefined,
        logCalls: false,
      });
      return Exit.ok;
    }
    const starting = port.start({
      ...source,
      listen,
      noAuth: false,
      names: undefined,
      tls: undefined,
      logCalls: "unless-off",
    });
    const started = await startedOr(starting, io);
    if (started === undefined) return Exit.ok;
    const { url, stateDir } = started;
    if (input.json) print(io, JSON.stringify({ endpoint: url, pid: process.pid, stateDir }));
    else print(io, bannerOf(started, broker, from, io));
    return untilStopped(started, undefined, io);
  },
});

function required(broker: string | undefined, from: string | undefined): { broker: string; from: string } {
  if (broker === undefined || from === undefined) {
    const missing = [...(broker === undefined ? ["--broker URL"] : []), ...(from === undefined ? ["--from ID"] : [])];
    throw usageError(
      `${missing.join(" and ")} ${missing.length === 1 ? "is" : "are"} missing: a machine is found by its mailbox at a broker.`,
      "For instance `toolway join --broker ws://127.0.0.1:7440 --from studio`; or `toolway join --pair WORD`, with the word " +
        "that `toolway share --pair` printed there.",
    );
  }
  return { broker: brokerOption("--broker", broker), from };
}

/** One server, whose tools have their own names. */
function configFor(broker: string, from: string, token: string | undefined): ConfigInput {
  const entry = { mailbox: from, broker, ...(token === undefined || token === "" ? {} : { token }) };
  return { names: "plain", mcpServers: { [SERVER_NAME.test(from) ? from : "shared"]: entry } };
}

/** Each machine has a state of its own: what is known of its tools is there at the next start. */
function sourceOf(
  config: ConfigInput,
  broker: string,
  from: string,
  state: string | undefined,
  { env, home, cwd }: Io,
): GatewaySource {
  const name = createHash("sha256").update(`${broker}\0${from}`).digest("hex").slice(0, 16);
  return {
    configPath: undefined,
    builtIn: "join",
    config,
    stateDir: state === undefined ? joinPath(stateRootFor(env, home), "join", name) : resolve(cwd, state),
    stateNamed: state !== undefined,
    // The token is the broker's: no door of ours takes it.
    env: { ...env, TOOLWAY_TOKEN: undefined },
    home,
  };
}

/** Why broker or machine cannot be had now; undefined where they can. */
async function whyMissing(
  port: GatewayPort,
  spec: ServerSpec,
  isTokenless: boolean,
  { signal }: Io,
): Promise<string | undefined> {
  const { target } = spec;
  // It is looked whether it is there, not waited for.
  const once = target.kind === "mailbox" ? { ...spec, target: { ...target, awayWaitMs: 0 } } : spec;
  const { error } = await port.probe(once, { signal });
  if (error === undefined) return undefined;
  // There is no entry of a config to look into: the token is that of the line. A broker may also ask for none.
  const remedy = error.code === "unauthorized" ? remedyFor(isTokenless) : error.remedy;
  return [error.message, remedy].filter((one) => one !== undefined).join(" ");
}

function remedyFor(isTokenless: boolean): string {
  return isTokenless
    ? "TOOLWAY_TOKEN is not set: put a token of the broker into it, one that may send to this mailbox."
    : "Is TOOLWAY_TOKEN a token of the broker? `toolway token list` at the broker says whether it may send to this mailbox.";
}

function bannerOf({ url, token, stateDir }: StartedGateway, broker: string, from: string, io: Io): string {
  const style = styleOf(io);
  const facts = [
    ["endpoint", style.bold(url)],
    ["from", `${shown(from, io.isTTY)} at ${broker}`],
    ["state", shellPath(io, stateDir)],
  ];
  const verb = (words: string) => pasted(io, `${words} --state ${shellPath(io, stateDir)}`);
  facts.push(["token", tokenText(token, verb, io.isTTY)]);
  return `${table(facts, "  ")}\n`;
}
