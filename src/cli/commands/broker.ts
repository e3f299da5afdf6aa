// `toolway broker`: mailboxes by themselves, without servers. It is a gateway whose config is built in.

import { join } from "node:path";
import { DEFAULT_BROKER_LISTEN, parseListen } from "../../config/config.js";
import type { EngineSettings } from "../../contracts/settings.js";
import { brokerUrlOf } from "../../mailbox/wire/address.js";
import { isLoopback } from "../../runtime/addresses.js";
import { stateRootFor } from "../../runtime/state-dir.js";
import { gatewayPort } from "../gateway/port.js";
import { defineCommand, fileOption } from "../line/command.js";
import { Exit, UserError, usageError } from "../line/errors.js";
import { fromHere, type Io, note, pasted, print, shellPath } from "../line/io.js";
import { drainMsOf } from "../line/times.js";
import { styleOf, table } from "../text/print.js";
import { listenOption, servingOptions, startedOr, tlsOption, untilStopped } from "./serve.js";

export const broker = defineCommand({
  metadata: {
    name: "broker",
    lasts: true,
    summary: "Keeps mailboxes: machines share their tools through them.",
    description:
      "Keeps mailboxes, and nothing else: a machine shares its tools in one, and agents anywhere use them. What is " +
      'taken in is on disk. A gateway keeps mailboxes too, with "mailboxes": {} in its config. Who may come is decided ' +
      "by tokens, made with `toolway token create --state DIR`. With --engine several brokers and gateways keep the same " +
      "mailboxes, and peers may come to any of them (docs/scale.md). The frames are in docs/mailbox-protocol.md.",
  },
  args: {},
  options: {
    ...servingOptions({
      listen: `Where peers connect. Default: ${DEFAULT_BROKER_LISTEN}.`,
      state: "Where tokens and messages are kept.",
      noAuth: "Asks for no token: whoever comes is who it says.",
      scheme: "wss://",
      drain: "How long what is under way has to end at a stop.",
    }),
    engine: fileOption(
      "A config, of which only its `engine` is used: mailboxes and tokens are kept there, together with all on it.",
    ),
  },
  examples: [
    { line: "toolway broker", note: "at ws://127.0.0.1:7440" },
    { line: "toolway broker --listen 0.0.0.0:7440 --tls-cert cert.pem --tls-key key.pem", note: "for other machines" },
    {
      line: "toolway broker --engine toolway.json",
      note: "one of several, on the engine that the gateways' config names",
    },
    { line: "toolway broker --listen 127.0.0.1:0 --no-auth --json", note: "any free port, for a try" },
  ],
  async handler(input, io) {
    const listen = listenOption(input.listen) ?? parseListen(DEFAULT_BROKER_LISTEN);
    if (input.noAuth && listen !== undefined && !isLoopback(listen.host)) {
      throw usageError(
        `--no-auth is refused on ${listen.host}: anybody who reaches it could be any mailbox.`,
        "Listen on 127.0.0.1, or leave --no-auth out.",
      );
    }
    const drainMs = drainMsOf(input.drain);
    const { env, home } = io;
    const stateDir = input.state === undefined ? join(stateRootFor(env, home), "broker") : fromHere(io, input.state);
    const engine = input.engine === undefined ? undefined : await engineIn(fromHere(io, input.engine), io);
    const port = await gatewayPort();
    const starting = port.start({
      configPath: undefined,
      builtIn: "broker",
      stateDir,
      stateNamed: true,
      env,
      home,
      listen,
      noAuth: input.noAuth,
      names: undefined,
      tls: tlsOption(input.tlsCert, input.tlsKey, io),
      logCalls: false,
      engine,
    });
    const started = await startedOr(starting, io);
    if (started === undefined) return Exit.ok;
    const url = brokerUrlOf(started.url);
    const nodes = engine?.nodes.map(({ host, port: at }) => `${host}:${at}`);
    if (input.json) print(io, JSON.stringify({ broker: url, pid: process.pid, stateDir, engine: nodes }));
    else print(io, bannerOf(url, stateDir, nodes, input.noAuth, io));
    if (listen !== undefined && !isLoopback(listen.host) && url.startsWith("ws:")) note(io, unencrypted(listen.host));
    return untilStopped(started, drainMs, io);
  },
});

function unencrypted(host: string): string {
  const what = `It listens on ${host} without TLS: tokens and messages cross the network unencrypted.`;
  return `${what} Add --tls-cert and --tls-key, or use it only in a network that you trust.`;
}

/** Throws what is wrong with the config, or that it has none. */
async function engineIn(path: string, io: Io): Promise<EngineSettings> {
  const { loadConfig } = await import("../../config/load.js");
  const { engine } = loadConfig(path, { env: { ...io.env }, home: io.home, wrongEntries: "keep" });
  if (engine !== undefined) return engine;
  throw new UserError(`${shellPath(io, path)} has no "engine".`, {
    kind: "usage",
    hint: "Name the config of the gateways that are on it; docs/scale.md says how it is written.",
  });
}

function bannerOf(
  url: string,
  stateDir: string,
  nodes: readonly string[] | undefined,
  noAuth: boolean,
  io: Io,
): string {
  const style = styleOf(io);
  const state = shellPath(io, stateDir);
  const facts = [
    ["broker", style.bold(url)],
    ["state", state],
    ...(nodes === undefined ? [] : [["engine", `${nodes.join(", ")}: mailboxes and tokens are those of all on it`]]),
    ["tokens", noAuth ? "none asked for: any program of this machine may be any mailbox" : "asked for"],
  ];
  const lines = [table(facts, "  ")];
  if (!noAuth) {
    lines.push(
      "",
      "For a machine that shares its tools, and for an agent that uses them:",
      `  ${pasted(io, `token create --id studio --role sharer --state ${state}`)}`,
      `  ${pasted(io, `token create --id worker-1 --role researcher --may-send-to studio --state ${state}`)}`,
    );
  }
  return `${lines.join("\n")}\n`;
}
