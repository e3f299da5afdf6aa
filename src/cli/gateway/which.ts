// Decides which of the gateways that run a verb is about. One that the line does not name is never guessed where
// several could be meant: its tokens, and what a verb does to it, are its owner's.

import type { RunningGateway } from "../../control/registry.js";
import { brokerUrlOf } from "../../mailbox/wire/address.js";
import { UserError } from "../line/errors.js";
import { type Io, shellPath } from "../line/io.js";
import { type GatewayClient, type GatewaySource, runningGateway } from "./port.js";
import { type NamedGateway, sourceFor } from "./source.js";

/** What is known when it is decided. */
interface Known {
  /** Undefined where no config is named or found, so that the built-in demo would be meant. */
  readonly config: string | undefined;
  /** `--state` was given. */
  readonly stateNamed: boolean;
  readonly stateDir: string;
  /** A gateway answers in that state directory. */
  readonly isUp: boolean;
  /** All that are on the list. */
  readonly running: readonly RunningGateway[];
  /** The verb makes sense at a broker: where one runs and nothing else does, it is meant. */
  readonly orBroker?: boolean;
}

type Decision =
  /** The one of the state directory, be it up or not. */
  | { readonly kind: "own" }
  /** Another one: it runs for the same config with another state directory, or is the only broker. */
  | { readonly kind: "other"; readonly gateway: RunningGateway }
  /** Several could be meant. */
  | { readonly kind: "unclear"; readonly candidates: readonly RunningGateway[] };

export function decide({ config, stateNamed, stateDir, isUp, running, orBroker }: Known): Decision {
  if (stateNamed) return { kind: "own" };
  const others = running.filter((gateway) => gateway.stateDir !== stateDir);
  // Nothing in this folder says that the demo is meant: it is, where nothing else could be.
  if (config === undefined) {
    const [only] = running;
    if (orBroker === true && only?.builtIn === "broker" && running.length === 1)
      return { kind: "other", gateway: only };
    return others.length === 0 ? { kind: "own" } : { kind: "unclear", candidates: running };
  }
  if (isUp) return { kind: "own" };
  const same = others.filter((gateway) => gateway.config === config);
  const [first] = same;
  if (first === undefined) return { kind: "own" };
  return same.length === 1 ? { kind: "other", gateway: first } : { kind: "unclear", candidates: same };
}

/** The gateway that a verb is about. Throws where it is unclear, with those that run and how to name each. */
export async function gatewayFor(
  input: NamedGateway,
  io: Io,
  { orBroker = false }: { readonly orBroker?: boolean } = {},
): Promise<GatewaySource> {
  const source = await sourceFor(input, io);
  if (source.stateNamed) return source;
  const port = await runningGateway();
  const isUp = (await port.find(source)) !== undefined;
  // The usual case costs one look at one socket.
  if (isUp && source.configPath !== undefined) return source;
  const running = await port.list(source);
  const { realPath } = await import("./running.js");
  const config = source.configPath === undefined ? undefined : realPath(source.configPath);
  const decision = decide({ ...source, config, isUp, running, orBroker });
  if (decision.kind === "other") return { ...source, stateDir: decision.gateway.stateDir };
  if (decision.kind === "unclear") {
    const what = config === undefined ? "No config is named here or found" : "This config is served more than once";
    throw new UserError(`${what}, and it is unclear which gateway is meant.`, {
      kind: "usage",
      hint: `Name one:\n${howToName(decision.candidates, running, io)}`,
    });
  }
  if (isUp || running.length === 0) return source;
  return { ...source, others: `Gateways that run:\n${howToName(running, running, io)}` };
}

/** A line for each: the option that means it, and what it is. */
function howToName(gateways: readonly RunningGateway[], running: readonly RunningGateway[], io: Io): string {
  return gateways
    .map((gateway) => {
      const demo = gateway.config === undefined ? `${builtInWords(gateway)}, ` : "";
      const where = addressOf(gateway) ?? "over stdio";
      return `    ${optionFor(gateway, running, io)}  (${demo}process ${gateway.pid}, ${where})`;
    })
    .join("\n");
}

/** The option by which a verb means it. */
export function optionFor({ config, stateDir }: RunningGateway, running: readonly RunningGateway[], io: Io): string {
  const isOnly = running.filter((other) => other.config === config).length === 1;
  return config !== undefined && isOnly ? `--config ${shellPath(io, config)}` : `--state ${shellPath(io, stateDir)}`;
}

export function builtInWords({ builtIn }: RunningGateway): string {
  return builtIn === undefined ? "the built-in demo" : `a ${builtIn}`;
}

/** Where one is reached, as its peers write it; undefined where that is a client's stdin and stdout. */
export function addressOf({ endpoint, builtIn }: RunningGateway): string | undefined {
  return endpoint !== undefined && builtIn === "broker" ? brokerUrlOf(endpoint) : endpoint;
}

/** What is said where none runs, unless several do, which are named then. */
interface Demand {
  readonly message: string;
  readonly hint: string;
  readonly orBroker?: boolean;
}

export const USUAL: Demand = {
  message: "No gateway runs for this config.",
  hint: "`toolway serve` starts one, with all its servers. Another config's: add --config FILE.",
};

/** The gateway itself, for verbs that make no sense without one. */
export async function demandGateway(
  input: Parameters<typeof gatewayFor>[0],
  io: Io,
  { message, hint, orBroker = false }: Demand = USUAL,
): Promise<GatewayClient> {
  const source = await gatewayFor(input, io, { orBroker });
  const client = await (await runningGateway()).find(source);
  if (client !== undefined) return client;
  throw new UserError(message, { hint: source.others ?? hint });
}
