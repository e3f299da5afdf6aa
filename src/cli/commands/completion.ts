// `toolway completion`, which prints the script that makes a shell complete our commands, and `toolway __complete`,
// which that script asks for names of tools and servers.

import type { PinLine } from "../../contracts/pins.js";
import { EXECUTOR_ROLE, SHARER_ROLE } from "../../contracts/settings.js";
import type { EngineGatewaySeen, GatewayStatus } from "../../contracts/status.js";
import { abortable, within } from "../../runtime/wait.js";
import { type GatewayClient, runningGateway } from "../gateway/port.js";
import { configPathFor } from "../gateway/source.js";
import { gatewayFor } from "../gateway/which.js";
import { type Command, defineCommand } from "../line/command.js";
import { Exit, usageError } from "../line/errors.js";
import { type Io, print } from "../line/io.js";
import { parametersOf } from "../line/parameters.js";

const SHELLS = ["bash", "zsh", "fish"] as const;

interface Completed {
  readonly commands: readonly Command[];
  readonly groups: Readonly<Record<string, string>>;
}

/** It is one of the commands that it completes: it gets them when it runs. */
export function completionOf(all: () => Completed): Command {
  return defineCommand({
    metadata: {
      name: "completion",
      summary: "Prints the completion script of a shell.",
      description: "Prints the completion script of bash, zsh or fish. Names of tools come from the running gateway.",
    },
    args: { shell: { required: true, description: "bash, zsh or fish.", completes: SHELLS } },
    options: {},
    examples: [
      { line: "source <(toolway completion bash)", note: "in ~/.bashrc" },
      { line: "source <(toolway completion zsh)", note: "in ~/.zshrc, after compinit" },
      { line: "toolway completion fish > ~/.config/fish/completions/toolway.fish", note: "once" },
    ],
    async handler(input, io) {
      const shell = SHELLS.find((known) => known === input.shell);
      if (shell === undefined)
        throw usageError(`There is no completion for ${input.shell}.`, `It is one of ${SHELLS.join(", ")}.`);
      const { completionScript } = await import("../line/completion.js");
      const { commands, groups } = all();
      io.stdout.write(completionScript(shell, commands, groups));
      return Exit.ok;
    },
  });
}

/** Longer than this after a key press feels broken. */
const DEADLINE_MS = 300;

export const complete = defineCommand({
  metadata: { name: "__complete", summary: "Names for the completion scripts.", hidden: true },
  args: {
    kind: {
      required: true,
      description: "tool, server, pinned, mailbox, gateway, receipt, token, role, paired, entry or importable",
    },
  },
  options: {},
  examples: [],
  async handler(input, io) {
    const rest = (input as { rest?: unknown }).rest;
    const words = Array.isArray(rest) ? rest.map(String) : [];
    const signal = within(DEADLINE_MS, io.signal);
    try {
      for (const name of await abortable(names(input.kind, words, io, signal), signal)) print(io, name);
    } catch {
      // No gateway, or too slow: then there is nothing to offer.
    }
    return Exit.ok;
  },
});

/** The roles of the config; a token may also have one that opens another door. */
async function rolesOf(words: readonly string[], configPath: string | undefined, { env, home }: Io): Promise<string[]> {
  const others = words[0] === "token" ? [EXECUTOR_ROLE, SHARER_ROLE] : [];
  if (configPath === undefined) return others;
  const { loadConfig } = await import("../../config/load.js");
  const { roles } = loadConfig(configPath, { env, home, wrongEntries: "keep" });
  return [...Object.keys(roles).filter((name) => PLAIN_WORD.test(name)), ...others];
}

/** What a shell takes as one word, whatever it stands beside. */
const PLAIN_WORD = /^[\w.@#:+-]+$/;
/** A name with a blank or a control character is no word to complete. */
const NO_WORD = /[\s\p{C}]/u;
/** Kinds that a broker by itself knows, as the verbs that take them ask it. */
const DEFAULT_PRINCIPAL = "default";
const OF_BROKERS: readonly string[] = ["mailbox", "token"];

async function names(kind: string, words: readonly string[], io: Io, signal: AbortSignal): Promise<string[]> {
  const after = (flag: string): string | undefined => {
    const at = words.lastIndexOf(flag);
    return at < 0 ? undefined : words[at + 1];
  };
  if (kind === "entry" || kind === "importable") {
    const { entryNames, importableNames } = await import("../edit/index.js");
    const found = kind === "entry" ? entryNames(configPathFor(after("--config"), io)) : importableNames(io);
    return found.filter((name) => !NO_WORD.test(name));
  }
  if (kind === "role") return rolesOf(words, configPathFor(after("--config"), io), io);
  if (kind === "paired") {
    const { pairedMailboxes } = await import("../mailbox/join-pair.js");
    return (await pairedMailboxes(io)).filter((name) => PLAIN_WORD.test(name));
  }
  const port = await runningGateway();
  const client: GatewayClient | undefined = await port.find(
    // A broker has tokens, too, and its mailboxes are completed where it runs alone.
    await gatewayFor({ config: after("--config"), state: after("--state") }, io, {
      orBroker: OF_BROKERS.includes(kind),
    }),
  );
  if (client === undefined) return [];
  if (kind === "server")
    return ((await client.get("/status", signal)) as GatewayStatus).servers.map(({ name }) => name);
  if (kind === "mailbox") {
    const { names } = (await client.get("/mailboxes/names", signal)) as { names: readonly string[] };
    return names.filter((name) => PLAIN_WORD.test(name));
  }
  if (kind === "token") {
    const { tokens } = (await client.get("/tokens", signal)) as { tokens: readonly { id: string }[] };
    // The default token is neither revoked nor rotated.
    const isLasting = words[0] === "token";
    return tokens.map(({ id }) => id).filter((id) => PLAIN_WORD.test(id) && !(isLasting && id === DEFAULT_PRINCIPAL));
  }
  if (kind === "gateway") {
    const { gateways } = (await client.get("/gateways", signal)) as { gateways: readonly EngineGatewaySeen[] };
    // By its machine or its address a person knows one; its name is drawn. What two have names neither.
    const places = gateways.flatMap(({ place }) => [place?.host, place?.address].filter((word) => word !== undefined));
    const own = places.filter((word) => PLAIN_WORD.test(word) && places.indexOf(word) === places.lastIndexOf(word));
    return ["this", ...gateways.map(({ gateway }) => gateway), ...own];
  }
  if (kind === "receipt") {
    const { writes } = (await client.get("/outbox", signal)) as { writes: readonly { id: string }[] };
    // A record of a store that was damaged may have any name.
    return writes.map(({ id }) => id).filter((id) => /^[\w-]+$/.test(id));
  }
  const { findTool, listTools } = await import("../text/tool-list.js");
  if (kind === "argument") {
    const tools = await listTools(client, signal);
    const tool = words.map((word) => findTool(word, tools)).find((found) => found !== undefined);
    return parametersOf(tool?.inputSchema).flatMap(({ name }) => (/^[\w.-]+$/.test(name) ? [`${name}=`] : []));
  }
  if (kind !== "pinned") return (await listTools(client, signal)).map(({ name }) => name);
  const { pins } = (await client.get("/pins", signal)) as { pins: readonly PinLine[] };
  // The server stands before the tool on the line. A name with a control character is no word to complete.
  return pins.filter(({ server, tool }) => words.includes(server) && !/\p{C}/u.test(tool)).map(({ tool }) => tool);
}
