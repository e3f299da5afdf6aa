// What the CLI needs of the gateway, as interfaces, and the two functions that give them. What implements them is
// heavy, so it is loaded when a verb asks for it; tests put a fake in its place.

import type { Duplex } from "node:stream";
import type { Config, ExecutorConfig, ListenAddress } from "../../config/config.js";
import type { ConfigInput } from "../../config/load.js";
import type { ServerSpec } from "../../contracts/server-spec.js";
import type { EngineSettings, NameMode } from "../../contracts/settings.js";
import type { GatewayStatus, ShareLine } from "../../contracts/status.js";
import type { RunningGateway } from "../../control/registry.js";
import type { ProbeResult } from "../../upstream/probe.js";
import { makeStartRoom } from "./room/start-room.js";

/** How a verb talks to a gateway, be it another process's, by the control socket, or one of its own. */
export interface GatewayClient {
  get(path: string, signal?: AbortSignal): Promise<unknown>;
  post(path: string, body: unknown, signal?: AbortSignal): Promise<unknown>;
  delete(path: string, signal?: AbortSignal): Promise<unknown>;
  /** A session of the operator's own, in MCP's lines; of this server it hears also what is said outside a call. */
  session(server: string, signal?: AbortSignal): Promise<Duplex>;
  /** The lines of an answer that may be long, as they come. */
  lines(path: string, signal?: AbortSignal): AsyncIterable<string>;
}

export interface GatewaySource {
  /** Undefined for what is built in. */
  readonly configPath: string | undefined;
  /** What is built in and meant where there is no config: the demo, if nothing is said. */
  readonly builtIn?: "broker" | "join";
  /** The config that the command line stands for, where it does. */
  readonly config?: ConfigInput;
  readonly stateDir: string;
  /** `--state` named it, so that other verbs must be told of it too. */
  readonly stateNamed: boolean;
  /** Where no gateway runs for this config and others do: which, and how to name them. */
  readonly others?: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

export interface StartOptions extends GatewaySource {
  readonly listen: ListenAddress | undefined;
  readonly noAuth: boolean;
  readonly names: NameMode | undefined;
  /** Paths of PEM files. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  /** Whether each call is logged; "unless-off": where the config does not say no. */
  readonly logCalls: false | "unless-off";
  /** The engine of another config, where the one that is served has none of its own. */
  readonly engine?: EngineSettings | undefined;
  /** It is for runs alone: on loopback, without TLS. */
  readonly forRuns?: boolean;
}

export interface StartedGateway {
  /** `http://127.0.0.1:7420/mcp`. */
  readonly url: string;
  readonly stateDir: string;
  readonly config: Config;
  readonly token: {
    /** True where it was made at this start; it is shown once. */
    readonly isNew: boolean;
    /** True where it comes from TOOLWAY_TOKEN; it is never shown then. */
    readonly fromEnv: boolean;
    readonly value: string | undefined;
  };
  status(): GatewayStatus;
  /** Reads the config again, as an edit of it does. What is wrong with it is logged; never rejects. */
  reload(): Promise<void>;
  /** Resolves when it has had no run for so long. */
  withoutRuns(ms: number): Promise<void>;
  /** Resolves when an operator asked it to stop, by `toolway down`. */
  readonly stopAsked: Promise<StopAsked>;
  /** Lets calls in flight end, at most `drainMs` (default: the config's), then stops everything. `why` is logged. */
  close(options: { readonly drainMs: number | undefined; readonly why: string }): Promise<void>;
}

export interface StopAsked {
  /** Undefined where the gateway's own is meant. */
  readonly drainMs: number | undefined;
}

/** A gateway for one verb: its servers run, and it listens nowhere. */
export interface LocalGateway extends GatewayClient {
  close(): Promise<void>;
}

/** What `doctor` learns of one server. */
export interface Probe extends ProbeResult {
  /** Nobody could try it now, which is no fault of the server. */
  readonly untried?: true;
}

export interface ProbeOptions {
  readonly signal: AbortSignal;
  /** The executors of the config. */
  readonly executors?: readonly ExecutorConfig[];
  /** Where the gateway is that may run for this config. */
  readonly source?: GatewaySource;
  /** Gets what tells the last lines that a child has written so far. */
  readonly watch?: ((stderr: () => readonly string[]) => void) | undefined;
}

export interface GatewayPort {
  /** The gateway that runs for this config and state directory, if one does. */
  find(source: Pick<GatewaySource, "stateDir">): Promise<GatewayClient | undefined>;
  /** The gateways of this user that run. */
  list(source: Pick<GatewaySource, "env" | "home">): Promise<readonly RunningGateway[]>;
  /** Whether a process still has this state directory. */
  isHeld(source: Pick<GatewaySource, "stateDir">): Promise<boolean>;
  /** `serve`. Throws a Fault or a ConfigError; nothing is left running then. */
  start(options: StartOptions): Promise<StartedGateway>;
  /**
   * For a verb: the gateway that runs, else one of its own (`own`, to be closed). `servers: false` leaves the servers
   * alone, for verbs about tokens and state; "called" starts the ones that are called. `tellsConfig`: the verb tells what is
   * wrong with the config, and its own gateway need not.
   */
  connect(
    source: GatewaySource,
    options: { readonly servers: boolean | "called"; readonly tellsConfig?: boolean; readonly signal: AbortSignal },
  ): Promise<{ readonly client: GatewayClient; readonly own: LocalGateway | undefined }>;
  /** `stdio`: speaks MCP on the streams until the input ends; joins a running gateway, else is one. */
  stdio(source: GatewaySource, streams: StdioStreams): Promise<void>;
  /**
   * `share`: shares the tools of the gateway that runs, else is one, until the signal fires or the broker refuses.
   * Resolves with why it ended.
   */
  share(source: GatewaySource, options: ShareOptions): Promise<ShareEnd>;
  /** Starts one server by itself, asks what it has, and stops it again. */
  probe(spec: ServerSpec, options: ProbeOptions): Promise<Probe>;
  /** The default token of the state directory, read without a gateway. */
  defaultToken(source: GatewaySource): Promise<string | undefined>;
  /** What people have answered to inputs of the config, by their ids. */
  answers(source: Pick<GatewaySource, "stateDir">): Promise<ReadonlyMap<string, string>>;
  /** Keeps a person's answer to an input of the config, sealed, in the state directory. Throws where it cannot. */
  keepAnswer(source: Pick<GatewaySource, "stateDir">, id: string, answer: string): Promise<void>;
}

export interface StdioStreams {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly signal: AbortSignal;
  /** What the agent is narrowed to; undefined for all that the default token may do. */
  readonly role: string | undefined;
  /** The id of the token whose principal the agent is; undefined for the default's. */
  readonly as?: string | undefined;
  /** Each call is logged, also where the config does not say so. A gateway that is joined logs as it was told. */
  readonly logCalls: boolean;
}

export interface ShareOptions {
  readonly broker: string;
  readonly as: string;
  readonly token: string | undefined;
  /** Somebody is there to be asked. */
  readonly canAsk: boolean;
  readonly signal: AbortSignal;
  /** Is told what happens. `answer` is for a question: "yes", "no" or "always". */
  onLine(line: ShareLine, answer: (id: number, answer: string) => void): void;
  /** The gateway is this process: its log tells of the line to the broker already. Called before anything else is told. */
  onOwn?(): void;
}

/** "stopped": by the signal. Else what went wrong, in a sentence. */
export type ShareEnd = "stopped" | { readonly why: string };

let replaced: GatewayPort | undefined;

/**
 * Puts a fake in the place of the gateway; undefined takes it away.
 * @internal for tests
 */
export function replaceGatewayPort(port: GatewayPort | undefined): void {
  replaced = port;
}

/** Enough to ask a gateway that runs, without loading one. */
export async function runningGateway(): Promise<Pick<GatewayPort, "find" | "list" | "isHeld" | "defaultToken">> {
  return replaced ?? (await import("./running.js"));
}

export async function gatewayPort(): Promise<GatewayPort> {
  if (replaced !== undefined) return replaced;
  makeStartRoom();
  return (await import("./adapter.js")).adapter;
}
