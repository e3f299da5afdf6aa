// The connection to the engine: dials it with the settings of the config, says whether it is there, and bounds what is
// asked of it at one time. What is asked, and how often again, is the business of whoever asks.

import { checkServerIdentity } from "node:tls";
import { type ConnectionOptions, connect, errors, type NatsConnection, type Status } from "@nats-io/transport-node";
import type { EngineStatus } from "../../contracts/engine/engine.js";
import type { EngineAccess } from "../../contracts/settings.js";
import { type Clock, systemClock } from "../../runtime/clock.js";
import { messageOf } from "../../runtime/expected-error.js";
import { pause } from "../../runtime/wait.js";
import { waitText } from "../../runtime/words/amounts.js";
import { authenticatorOf } from "./auth.js";
import { EngineError } from "./engine-error.js";
import { EngineLink } from "./link.js";
import { isAtLeast, readVersion, versionProblem } from "./versions.js";

/** A server on a busy machine shakes hands within a second; one that is frozen never does, and the next one is tried. */
const DIAL_MS = 5_000;

/** Of a start: a cluster that starts at the same time has a leader within 15 s, as measured. */
const FIRST_CONNECT_MS = 30_000;

/** Two that stay without an answer are a dead node: it is noticed within 6 s, before leases run out. */
const PING_MS = 2_000;
const PINGS_WITHOUT_ANSWER = 2;

/** Publishing is at its fastest with 64 under way. Several stores of one process share it, and elections hold all of them up. */
const MAX_ASKED = 1_024;

/** What the client holds for them in memory: without the engine it would hold all that comes, and throw it away later. */
const MAX_ASKED_BYTES = 64 * 1024 * 1024;

export interface EngineOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly clock?: Clock;
  /** Ends the waiting for the first connection. */
  readonly signal?: AbortSignal;
  /** How long to wait for the first connection. */
  readonly firstConnectMs?: number;
  /** How often a silent node is asked for a sign of life. */
  readonly pingMs?: number;
  /** What the nodes show as our name. */
  readonly name?: string;
}

export interface Engine extends AsyncDisposable {
  readonly settings: EngineAccess;
  /** For subscriptions and for reads of small things. What writes goes through `ask`. */
  readonly connection: NatsConnection;
  readonly status: EngineStatus;
  /** The oldest version of the nodes that were met so far. */
  readonly version: string;
  /** Is told each change of the status, until the function that it returns is called. */
  watch(listener: (status: EngineStatus) => void): () => void;
  /**
   * Sends something of about so many bytes. Throws an EngineError at once where the engine is away or too much is under
   * way: nothing was sent then. Any other error is the client's.
   */
  ask<T>(bytes: number, send: (connection: NatsConnection) => Promise<T>): Promise<T>;
  /** What became of a write: why the engine had no room for it, undefined where it was taken. */
  wrote(full: string | undefined): void;
  /** It told something of what is kept in it. */
  heard(): void;
  /** To be called every second where something is heard as long as it works: whether it has gone silent. */
  look(): void;
  close(): Promise<void>;
}

/** Connected when it resolves. Throws an EngineError where it is refused, or nobody answers for too long. */
export async function openEngine(settings: EngineAccess, options: EngineOptions): Promise<Engine> {
  const clock = options.clock ?? systemClock;
  const link = new EngineLink(clock.now(), Math.random);
  const told: { problem: string | undefined } = { problem: undefined };
  const client = clientOptions(settings, options, link, (problem) => {
    told.problem = problem;
  });
  const connection = await firstConnection(settings, client, link, clock, options);
  const opened = new OpenEngine(settings, connection, link, clock, told);
  const problem = opened.checkNode();
  if (problem === undefined) return opened;
  await opened.close();
  throw problem;
}

/** Where the engine is, for sentences. No secret is ever in it. */
export function engineAddress({ nodes, tls }: Pick<EngineAccess, "nodes" | "tls">): string {
  const scheme = tls === undefined ? "nats" : "tls";
  return nodes.map(({ host, port }) => `${scheme}://${hostPort(host, port)}`).join(", ");
}

function hostPort(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

function clientOptions(
  settings: EngineAccess,
  { env, name, pingMs = PING_MS }: EngineOptions,
  link: EngineLink,
  onProblem: (problem: string) => void,
): ConnectionOptions {
  const { nodes, auth, tls } = settings;
  return {
    servers: nodes.map(({ host, port }) => hostPort(host, port)),
    name: name ?? "toolway",
    timeout: DIAL_MS,
    // By default the client gives up after ten dials a node, and its watches then end without a word.
    maxReconnectAttempts: -1,
    reconnectDelayHandler: () => link.waitMs,
    pingInterval: pingMs,
    maxPingOut: PINGS_WITHOUT_ANSWER,
    // Two refusals in a row would otherwise close it for good, in the middle of a change of secrets.
    ignoreAuthErrorAbort: true,
    // A trace for each request costs more than the request.
    noAsyncTraces: true,
    ...(auth === undefined ? {} : { authenticator: authenticatorOf(auth, env, onProblem) }),
    // To the client an address is a host and a port: only this makes TLS a must. Its files are read at each dial.
    ...(tls === undefined ? {} : { tls: tlsOptions(settings, tls) }),
  };
}

function tlsOptions({ nodes }: EngineAccess, { ca, cert, key }: NonNullable<EngineAccess["tls"]>) {
  return {
    ...(ca === undefined ? {} : { caFile: ca }),
    ...(cert === undefined ? {} : { certFile: cert }),
    ...(key === undefined ? {} : { keyFile: key }),
    // Where a node is dialled by its IP address the client has Node look for "localhost" in its certificate. It has to
    // be one of the nodes that the config names; those that the cluster names are held to the same.
    checkServerIdentity: (_: string, certificate: Parameters<typeof checkServerIdentity>[1]) => {
      const found = nodes.map(({ host }) => checkServerIdentity(host, certificate));
      return found.includes(undefined) ? undefined : found[0];
    },
  };
}

async function firstConnection(
  settings: EngineAccess,
  client: ConnectionOptions,
  link: EngineLink,
  clock: Clock,
  { signal, firstConnectMs = FIRST_CONNECT_MS }: EngineOptions,
): Promise<NatsConnection> {
  const deadline = clock.now() + firstConnectMs;
  const stop = signal ?? new AbortController().signal;
  for (;;) {
    stop.throwIfAborted();
    link.dialling(1, clock.now());
    try {
      // `waitOnFirstConnect` of the client's would wait for ever, also for a password that is wrong.
      return await connect(client);
    } catch (error) {
      const refusal = refusalOf(error, settings);
      if (refusal !== undefined) throw refusal;
      if (clock.now() + link.waitMs >= deadline) {
        const waited = `${Math.round(firstConnectMs / 1000)} s`;
        throw new EngineError(
          "away",
          `The engine at ${engineAddress(settings)} did not answer for ${waited} (${messageOf(error)}). ` +
            'Start it, or mend the addresses under "nats" in "engine".',
          { cause: error },
        );
      }
      await pause(link.waitMs, stop);
    }
  }
}

/** Undefined for what may pass by itself: nobody listens yet, a name is not known yet, a node goes down. */
function refusalOf(error: unknown, settings: EngineAccess): EngineError | undefined {
  const where = engineAddress(settings);
  if (error instanceof EngineError) return error;
  if (isAuthError(error)) {
    const remedy =
      settings.auth === undefined
        ? 'It asks for a secret: name one under "auth" in "engine".'
        : 'Compare what "auth" in "engine" names with what the engine was given.';
    return new EngineError("refused", `The engine at ${where} does not let us in. ${remedy}`, { cause: error });
  }
  const codes = causesOf(error).map((one) => (one as { code?: unknown }).code);
  // Its words for a node that offers none, and for one that asks for it and then has none.
  if (/does not support 'tls'|'tls' is not available/.test(messageOf(error))) {
    return new EngineError(
      "refused",
      `The engine at ${where} speaks no TLS. Give it a certificate; or write nats:// for one that needs none.`,
      { cause: error },
    );
  }
  const tlsCode = codes.find((code) => typeof code === "string" && /CERT|SSL|TLS|SIGNATURE|ISSUER/.test(code));
  if (tlsCode === undefined) return undefined;
  return new EngineError(
    "refused",
    `The engine at ${where} could not prove by its certificate who it is (${messageOf(error)}). ` +
      'Name the authority that signed it under "tls.ca" in "engine", and the node as its certificate does.',
    { cause: error },
  );
}

function isAuthError(error: unknown): boolean {
  return error instanceof errors.AuthorizationError || error instanceof errors.UserAuthenticationExpiredError;
}

function causesOf(error: unknown): unknown[] {
  const found: unknown[] = [];
  // A chain of causes has two or three links; the bound is against one that is a circle.
  for (let one = error; one instanceof Error && found.length < 8; one = one.cause) found.push(one);
  return found;
}

class OpenEngine implements Engine {
  readonly settings: EngineAccess;
  readonly connection: NatsConnection;
  readonly #link: EngineLink;
  readonly #clock: Clock;
  /** What was last wrong with our own secret. */
  readonly #told: { problem: string | undefined };
  readonly #listeners = new Set<(status: EngineStatus) => void>();
  #version: string;
  #asked = 0;
  #askedBytes = 0;
  #isClosing = false;

  constructor(
    settings: EngineAccess,
    connection: NatsConnection,
    link: EngineLink,
    clock: Clock,
    told: { problem: string | undefined },
  ) {
    this.settings = settings;
    this.connection = connection;
    this.#link = link;
    this.#clock = clock;
    this.#told = told;
    this.#version = connection.info?.version ?? "";
    void this.#follow();
    void connection.closed().then((error) => this.#onClosed(error));
  }

  get status(): EngineStatus {
    return this.#link.status;
  }

  get version(): string {
    return this.#version;
  }

  watch(listener: (status: EngineStatus) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async ask<T>(bytes: number, send: (connection: NatsConnection) => Promise<T>): Promise<T> {
    if (this.status.state !== "connected") throw this.#absence();
    if (this.#asked >= MAX_ASKED || this.#askedBytes + bytes > MAX_ASKED_BYTES) {
      throw new EngineError(
        "busy",
        `The engine is slower than what is asked of it: ${this.#asked} requests are under way. Nothing was sent; try again.`,
      );
    }
    this.#asked++;
    this.#askedBytes += bytes;
    try {
      return await send(this.connection);
    } finally {
      this.#asked--;
      this.#askedBytes -= bytes;
    }
  }

  wrote(full: string | undefined): void {
    this.#change(() => this.#link.wrote(full, this.#clock.now()));
  }

  heard(): void {
    this.#change(() => this.#link.heard(this.#clock.now()));
  }

  look(): void {
    this.#change(() => this.#link.look(this.#clock.now()));
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.connection.close();
    this.#change(() => this.#link.closed(undefined, this.#clock.now()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Takes the node that we are connected to into account; returns why it cannot be used. */
  checkNode(): EngineError | undefined {
    const node = this.connection.getServer();
    const version = this.connection.info?.version ?? "";
    const problem = versionProblem(version);
    if (problem !== undefined) {
      const error = new EngineError("old", `The engine's node ${node} cannot be used. ${problem}`);
      this.#change(() => this.#link.refused(error.message, this.#clock.now()));
      return error;
    }
    const [met, known] = [readVersion(version), readVersion(this.#version)];
    if (met !== undefined && (known === undefined || !isAtLeast(met, known))) this.#version = version;
    this.#told.problem = undefined;
    this.#change(() => this.#link.connected(node, version, this.#clock.now()));
    return undefined;
  }

  async #follow(): Promise<void> {
    try {
      for await (const status of this.connection.status()) this.#onStatus(status);
    } catch {
      // The end of the connection is told by `closed()`.
    }
  }

  #onStatus(status: Status): void {
    const now = this.#clock.now();
    switch (status.type) {
      case "disconnect":
        this.#change(() => this.#link.lost(`The connection to ${status.server} was lost.`, now));
        break;
      case "reconnecting":
        this.#change(() => this.#link.dialling(this.settings.nodes.length, now));
        break;
      case "reconnect":
        // Another node may be new enough.
        if (this.checkNode() !== undefined) void this.#leaveNode();
        break;
      case "error":
        if (isAuthError(status.error)) this.#change(() => this.#link.refused(this.#refusal(), now));
        break;
      case "ldm":
        // The node is about to go down: to leave now costs less than to be cut off.
        void this.#leaveNode();
        break;
      default:
        break;
    }
  }

  /** The client waits as long as the link says before it dials the same node again. */
  async #leaveNode(): Promise<void> {
    try {
      await this.connection.reconnect();
    } catch {
      // It is closed, or on its way elsewhere already.
    }
  }

  #refusal(): string {
    const { problem } = this.#told;
    const cause = problem ?? 'Compare what "auth" in "engine" names with what the engine was given.';
    return `The engine at ${engineAddress(this.settings)} no longer lets us in. ${cause}`;
  }

  #onClosed(error: unknown): void {
    if (this.#isClosing) return;
    const problem = `The connection to the engine ended for good (${messageOf(error)}): start the gateway again.`;
    this.#change(() => this.#link.closed(problem, this.#clock.now()));
  }

  #absence(): EngineError {
    const { state, problem, nextTryMs } = this.status;
    if (state === "closed") return new EngineError("closed", problem ?? "The connection to the engine is closed.");
    const retryInMs = Math.max(0, Math.ceil((nextTryMs ?? 0) - this.#clock.now()));
    const what = problem ?? `The engine at ${engineAddress(this.settings)} is away.`;
    const code = state === "refused" ? "refused" : "away";
    return new EngineError(code, `${what} Nothing was sent; the next try is in ${waitText(retryInMs)}.`, { retryInMs });
  }

  #change(change: () => void): void {
    const before = this.status;
    change();
    const after = this.status;
    if (after === before) return;
    for (const listener of this.#listeners) listener(after);
  }
}
