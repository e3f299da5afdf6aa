// The gateway's own broker: it keeps mailboxes in the state while the config wants some, and takes in those who come to
// them. Its parts are loaded with the first config that does.

import type { Principal } from "../../contracts/caller.js";
import { DEFAULT_ROLE, SHARER_ROLE } from "../../contracts/settings.js";
import type { MailboxesStatus } from "../../contracts/status.js";
import type { HttpEndpoint } from "../../endpoint/server.js";
import type { MailboxOperator } from "../../mailbox/broker/operator.js";
import type { Peer, PeerOptions, PeerSocket } from "../../mailbox/broker/peer-connection.js";
import type { NewWorker, Paired, Pairings } from "../../mailbox/pairing/pairings.js";
import type { BrokerLine, LineEvents } from "../../mailbox/peer/line.js";
import type { openLocalLine } from "../../mailbox/peer/local-line.js";
import type { SharedOperator } from "../../mailbox/shared/shared-operator.js";
import { ownerOf } from "../../mailbox/wire/address.js";
import { FrameError } from "../../mailbox/wire/frame-error.js";
import type { Hello } from "../../mailbox/wire/frames.js";
import type { Log } from "../../observe/log.js";
import { type BackoffLimits, backoffCeiling } from "../../runtime/backoff.js";
import { systemClock } from "../../runtime/clock.js";
import { ExpectedError } from "../../runtime/expected-error.js";
import type { HeldBytes } from "../../runtime/memory/held-bytes.js";
import type { Socket } from "../../sockets/socket.js";
import type { GatewayState } from "../state/state.js";

/** The code with which a WebSocket is closed on those who are refused. */
const POLICY_VIOLATION = 1008;
/** The code with which it is closed on those who may come back. */
const GOING_AWAY = 1001;

/** What could not be opened, as in an election of the engine, is tried again: soon at first, and then seldom enough to be no load. */
const RETRY: BackoffLimits = { baseMs: 1_000, maxMs: 60_000 };

/** Somebody who came. */
export interface MailConnection {
  /** It may come back. */
  end(why: string): void;
  /** It need not. */
  expel(why: string): void;
}

export type MailOperator = MailboxOperator | SharedOperator;

/** What is loaded: a broker of this gateway alone, or its part of those that several have together. */
export interface OpenMailboxes {
  readonly operator: MailOperator;
  readonly pairings: Pairings;
  readonly openLocalLine: typeof openLocalLine;
  begin(socket: PeerSocket, options: Omit<PeerOptions, "broker" | "log" | "held">): MailConnection;
  /** A code that was made here or at another broker. */
  redeem(code: string, name: string | undefined): Promise<Paired>;
  /** Hands over to the others what it has in hand; undefined where it is alone. */
  leave?(): Promise<void>;
  close(): Promise<void>;
}

/** What is used of the broker's parts, by whoever puts them together. */
export type BrokerModule = Omit<typeof import("../../mailbox/broker/open-broker.js"), "elapsedClock">;

interface NewCode {
  readonly code: string;
  readonly expiresInMs: number;
}

/** Who this is, by its hello. */
type Identify = (hello: Hello, connection: MailConnection) => Peer | undefined;

/** What is known of somebody who comes, and how more is found out. */
interface Came {
  readonly peer?: Peer | undefined;
  readonly principal?: Principal | undefined;
  readonly identify?: Identify;
  /** Nobody is asked for a token. */
  readonly isEverybody?: boolean;
}

/** The gateway as a worker at its own broker. */
const OWN_PEER: Peer = { id: "", role: DEFAULT_ROLE, maySendTo: undefined };

const NO_TOKENS = "nobody needs a token here";

/** As long as the broker is being loaded. */
const NOTHING_YET: MailboxesStatus = {
  inUse: 0,
  waiting: 0,
  leased: 0,
  dead: 0,
  connections: 0,
  oldest: undefined,
  mailboxes: [],
};

/** Is told of those who are sent away. */
type MailboxesRefused = (refusal: { readonly status: number; readonly path: string; readonly why: string }) => void;

type MailboxesEndpoint = Pick<HttpEndpoint, "admitMailboxes" | "isForEverybody">;

export class Mailboxes {
  readonly #state: GatewayState;
  readonly #log: Log;
  readonly #refused: MailboxesRefused;
  readonly #held: HeldBytes;
  readonly #connections = new Map<MailConnection, Principal | undefined>();
  #endpoint: MailboxesEndpoint | undefined;
  #parts: Promise<OpenMailboxes | undefined> | undefined;
  /** The same, once they are there. */
  #loaded: OpenMailboxes | undefined;
  #isWanted: boolean = false;
  /** Why they could not be opened, and when that is tried again. */
  #failed: { readonly why: string; readonly attempt: number; readonly nextTryMs: number } | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isLeaving = false;
  /** The gateway's own lines among the connections: they find their way by themselves. */
  readonly #own = new WeakSet<MailConnection>();

  constructor(state: GatewayState, log: Log, held: HeldBytes, refused: MailboxesRefused) {
    this.#state = state;
    this.#held = held;
    this.#log = log;
    this.#refused = refused;
  }

  apply(isWanted: boolean): void {
    this.#isWanted = isWanted;
    if (isWanted) this.#parts ??= this.#load();
    else this.#endConnections("this gateway keeps no mailboxes any more");
    this.#admit();
  }

  acceptOn(endpoint: MailboxesEndpoint): void {
    this.#endpoint = endpoint;
    this.#admit();
  }

  /** Nobody is asked for a token, so that whoever is named may come. */
  get #isOpen(): boolean {
    return this.#endpoint?.isForEverybody === true;
  }

  mayCome({ role, maySendTo }: Principal): boolean {
    return role === SHARER_ROLE || maySendTo !== undefined;
  }

  /** `claim` says whose the connection is, where its token comes with its hello; it returns why it cannot stay. */
  adopt(socket: Socket, principal: Principal | undefined, claim: (owner: Principal) => string | undefined): void {
    const isEverybody = this.#isOpen;
    void Promise.resolve(this.#parts).then((parts) => {
      if (!this.#isWanted) socket.destroy("there are no mailboxes here");
      else if (parts === undefined) socket.close(GOING_AWAY, this.#none);
      else if (this.#isLeaving) socket.close(GOING_AWAY, "the gateway stops: come back, to another one");
      else if (isEverybody) this.#serve(parts, socket, { identify: openPeer, isEverybody });
      else if (principal !== undefined) this.#serve(parts, socket, { peer: peerOf(principal), principal });
      else {
        const identify: Identify = (hello, connection) => this.#identify(hello, connection, claim);
        this.#serve(parts, socket, { identify });
      }
    });
  }

  /**
   * A line for the gateway's own use of its mailboxes. Its id is empty, which no token's is: nobody else has its inbox.
   */
  async openLine(address: string, events: LineEvents, signal: AbortSignal): Promise<BrokerLine> {
    const parts = await this.#parts;
    if (parts === undefined || !this.#isWanted) throw new Error(this.#none);
    const accept = (end: PeerSocket) => this.#serve(parts, end, { peer: OWN_PEER });
    return parts.openLocalLine(accept, { address, kinds: ["mcp_reply"], signal }, events);
  }

  /** Why there is none. */
  get #none(): string {
    const why = this.#isWanted ? this.#failed?.why : undefined;
    return why === undefined
      ? "this gateway keeps no mailboxes"
      : `mailboxes cannot be kept now, and it is tried again: ${why}`;
  }

  /** The operator's side; undefined where no mailboxes are kept. */
  async operator(): Promise<MailOperator | undefined> {
    return this.#isWanted ? (await this.#parts)?.operator : undefined;
  }

  /** Undefined where no mailboxes are kept. */
  status(): MailboxesStatus | undefined {
    if (!this.#isWanted) return undefined;
    const known = this.#loaded?.operator.status(this.#connections.size) ?? NOTHING_YET;
    let sharers = 0;
    for (const principal of this.#connections.values()) if (principal?.role === SHARER_ROLE) sharers++;
    if (this.#failed === undefined) return { ...known, sharers };
    const { why, nextTryMs } = this.#failed;
    return { ...known, sharers, problem: why, nextTryInMs: Math.max(0, Math.round(nextTryMs - systemClock.now())) };
  }

  /** The same of all that keep mailboxes together with this gateway. */
  async totals(): Promise<MailboxesStatus | undefined> {
    const operator = await this.operator();
    return operator !== undefined && "totals" in operator ? operator.totals() : this.status();
  }

  /** A token for whoever brings a code; undefined where nobody needs one. */
  readonly pair = async (code: string, name: string | undefined): Promise<Paired | undefined> => {
    const parts = this.#isWanted && !this.#isOpen ? await this.#parts : undefined;
    return parts?.redeem(code, name);
  };

  async #createWorker({ id, role, maySendTo }: NewWorker): Promise<string> {
    // A sharer may let somebody use its tools. It has no say in what else this gateway offers.
    const worker = { id, role, maySendTo, onlyMailboxes: true } as const;
    const token = await this.#state.tokens.create(worker, systemClock.wall());
    this.#log.info("a pairing code was used: a token was made", { id, role, mailbox: maySendTo[0] });
    return token;
  }

  /** The same for the operator. */
  async newCode(mailbox: string, role: string | undefined): Promise<NewCode | string> {
    const parts = this.#isWanted && !this.#isOpen ? await this.#parts : undefined;
    return parts === undefined ? NO_TOKENS : this.#newCode(parts.pairings, mailbox, role);
  }

  /** A code for a mailbox, or why there is none. */
  #newCode(pairings: Pairings, mailbox: string, role: string | undefined): NewCode | string {
    try {
      return pairings.open(mailbox, role);
    } catch (error) {
      if (error instanceof ExpectedError) return error.message;
      throw error;
    }
  }

  /** Ends the connections of those whose tokens have ended. */
  dropPrincipals(ended: (principal: Principal) => boolean): void {
    for (const [connection, principal] of this.#connections) {
      if (principal !== undefined && ended(principal)) connection.expel("the token has ended");
    }
  }

  /** Of several: what is in hand here is handed over, and then peers are to come back elsewhere. */
  async leave(): Promise<void> {
    const parts = await this.#parts;
    if (parts?.leave === undefined) return;
    this.#isLeaving = true;
    await parts.leave();
    for (const connection of this.#connections.keys()) {
      if (!this.#own.has(connection)) connection.end("the gateway stops: come back, to another one");
    }
  }

  async close(): Promise<void> {
    this.#isWanted = false;
    clearTimeout(this.#retry);
    this.#endConnections("the gateway stops");
    await (await this.#parts)?.close();
  }

  #serve(
    { pairings, begin }: OpenMailboxes,
    socket: PeerSocket,
    { peer, principal, identify, isEverybody = false }: Came,
  ): void {
    const connection: MailConnection = begin(socket, {
      peer,
      identify: (_token, hello) => identify?.(hello, connection),
      onEnd: () => this.#connections.delete(connection),
      onRefused: (why) => this.#refused({ status: POLICY_VIOLATION, path: "/mailboxes", why }),
      ...(isEverybody ? {} : { pair: (mailbox, role) => this.#newCode(pairings, mailbox, role) }),
    });
    this.#connections.set(connection, principal);
    if (peer === OWN_PEER) this.#own.add(connection);
  }

  /** Throws a FrameError where the token has too many connections. */
  #identify(
    { token }: Hello,
    connection: MailConnection,
    claim: (owner: Principal) => string | undefined,
  ): Peer | undefined {
    const principal = token === undefined ? undefined : this.#state.tokens.authenticate(token, systemClock.wall());
    if (principal === undefined || !this.mayCome(principal)) return undefined;
    const tooMany = claim(principal);
    if (tooMany !== undefined) throw new FrameError(tooMany);
    this.#connections.set(connection, principal);
    return peerOf(principal);
  }

  /** Never rejects. */
  async #load(): Promise<OpenMailboxes | undefined> {
    const { engine, tokens } = this.#state;
    const knows = (id: string) => this.#isOpen || id === OWN_PEER.id || tokens.has(id);
    const createToken = (worker: NewWorker) => this.#createWorker(worker);
    try {
      const { openBroker, elapsedClock, MailboxOperator, openLocalLine, PeerConnection } = await import(
        "../../mailbox/broker/open-broker.js"
      );
      const broker = { openBroker, MailboxOperator, openLocalLine, PeerConnection };
      const { Pairings } = await import("../../mailbox/pairing/pairings.js");
      const pairings = new Pairings({ clock: elapsedClock(), createToken });
      if (engine === undefined) this.#loaded = this.#openOwn(broker, pairings, knows);
      else {
        const { openSharedMailboxes } = await import("./shared-mailboxes.js");
        this.#warnOfLeft();
        const [log, held] = [this.#log, this.#held];
        const pair = (mailbox: string, role: string | undefined) =>
          this.#isOpen ? NO_TOKENS : this.#newCode(pairings, mailbox, role);
        const own = () => this.status();
        this.#loaded = await openSharedMailboxes({ engine, broker, pairings, knows, log, held, pair, own });
      }
      this.#failed = undefined;
      return this.#loaded;
    } catch (error) {
      this.#parts = undefined;
      this.#tryLater((error as Error).message);
      return undefined;
    }
  }

  #tryLater(why: string): void {
    const attempt = this.#failed === undefined ? 0 : this.#failed.attempt + 1;
    const waitMs = backoffCeiling(attempt, RETRY);
    if (this.#failed?.why !== why) this.#log.error("mailboxes cannot be kept; it is tried again", { why });
    this.#failed = { why, attempt, nextTryMs: systemClock.now() + waitMs };
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => {
      if (this.#isWanted) this.#parts ??= this.#load();
    }, waitMs).unref();
  }

  #warnOfLeft(): void {
    if (this.#state.isMovedAway || this.#state.store?.log("mail").entries(undefined, 1).next().done !== false) return;
    this.#log.warn(
      "messages are kept on this machine's disk from before it had an engine, and are not handed out: stop it and move them with `toolway state move --to engine`",
    );
  }

  #openOwn(
    { openBroker, MailboxOperator, openLocalLine, PeerConnection }: BrokerModule,
    pairings: Pairings,
    knows: (id: string) => boolean,
  ): OpenMailboxes {
    const { store } = this.#state;
    if (store === undefined) throw new Error("without a state directory there is no place for them");
    const [log, held] = [this.#log, this.#held];
    const broker = openBroker({ store, log, knows });
    return {
      operator: new MailboxOperator(broker.inside),
      pairings,
      openLocalLine,
      begin: (socket, options) => new PeerConnection(socket, { ...options, broker, log, held }),
      redeem: (code, name) => pairings.redeem(code, name),
      close: async () => broker.close(),
    };
  }

  #admit(): void {
    this.#endpoint?.admitMailboxes(this.#isWanted ? this : undefined);
  }

  #endConnections(why: string): void {
    for (const connection of this.#connections.keys()) connection.end(why);
  }
}

function peerOf({ id, role, maySendTo = [] }: Principal): Peer {
  return { id, role, maySendTo: maySendTo === "any" ? undefined : new Set(maySendTo) };
}

/** Where nobody is asked for a token, whoever comes is who it says. What it may do is not for itself to say. */
function openPeer({ address }: Hello): Peer {
  return { id: ownerOf(address), role: DEFAULT_ROLE, maySendTo: undefined };
}
