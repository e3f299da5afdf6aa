// The mailboxes of several brokers on one engine: each partition of them has a broker of its own, at the one that owns it, and
// any of them takes in any peer. Lines to partitions that others own are streams between brokers.

import type { Duplex } from "node:stream";
import type { PartitionKeeper, Partitions } from "../../contracts/engine/partitions.js";
import { PeerError, type Peers } from "../../contracts/engine/peers.js";
import type { Store } from "../../contracts/store.js";
import { toldWithin } from "../../runtime/wait.js";
import { NO_EVENTS } from "../../sockets/socket.js";
import type { Broker } from "../broker/broker.js";
import { MailboxOperator } from "../broker/operator.js";
import type { Peer, PeerConnection, PeerSocket } from "../broker/peer-connection.js";
import { FrameStream } from "./frame-stream.js";
import { MOVED, PartitionLine, type PartitionLineEvents, type PeerIntroduction } from "./partition-line.js";
import type { SharedPeerConnection } from "./shared-peer-connection.js";

/** Streams of this kind carry frames of a peer to the owner of a partition. */
const LINES = "mail.lines";
const WAITING = "mail.waiting";
/** Whoever knows the bare frames alone may wait for what came about by another connection of its: looked for this often. */
const SWEEP_MS = 5_000;
const ASK_MS = 3_000;
/** Of one question: the rest is asked for the next time. */
const MAX_SWEPT = 10_000;

/**
 * Of the 4,096 lines from one broker to the others, what those who come with one token may have: whoever opens connections without end
 * takes a quarter, and the rest is for others. A peer has one for each partition that it speaks with, 64 at most.
 */
const MAX_LINES_OF_TOKEN = 1_024;

/** The first that is said on a stream. */
interface LineHead {
  readonly partition: number;
  readonly id: string;
  readonly role: string;
  /** Null: it may send to any. */
  readonly maySendTo: readonly string[] | null;
}

interface OpenPartition {
  readonly broker: Broker;
  readonly operator: MailboxOperator;
  readonly connections: Set<PeerConnection>;
}

export interface SharedBrokerOptions {
  readonly self: string;
  readonly partitions: Partitions;
  readonly peers: Peers;
  readonly now: () => number;
  /** The broker of one partition. */
  readonly open: (store: Store, mayAct: () => boolean) => Broker;
  /** A connection of it, of somebody who was let in here or at another broker. */
  readonly serve: (broker: Broker, socket: PeerSocket, peer: Peer, onEnd: () => void) => PeerConnection;
}

export class SharedBroker implements PartitionKeeper {
  readonly now: () => number;
  readonly #options: SharedBrokerOptions;
  readonly #open = new Map<number, OpenPartition>();
  readonly #lines = new Map<number, Set<PartitionLine>>();
  /** Those that know the bare frames alone. */
  readonly #bare = new Set<SharedPeerConnection>();
  /** Lines to other brokers, by the id of the token. No more than there are lines. */
  readonly #linesOf = new Map<string, number>();
  readonly #ends: (() => void)[];
  readonly #sweep: NodeJS.Timeout;

  constructor(options: SharedBrokerOptions) {
    this.#options = options;
    this.now = options.now;
    const { peers, partitions } = options;
    this.#ends = [
      peers.accept(LINES, (stream) => this.#accept(new FrameStream(stream))),
      peers.answer(WAITING, async (_, body) => {
        const addresses = JSON.parse(Buffer.from(body).toString()) as string[];
        return Buffer.from(JSON.stringify(addresses.map((address) => this.#placesOf(address))));
      }),
      partitions.onChange((partition) => {
        for (const line of [...(this.#lines.get(partition) ?? [])]) line.checkOwner();
      }),
    ];
    this.#sweep = setInterval(() => this.#lookForAll(), SWEEP_MS).unref();
    partitions.run(this);
  }

  // ── Partitions ───────────────────────────────────────────────────────────────────────────────────────────────────

  async taken(partition: number, store: Store): Promise<void> {
    const broker = this.#options.open(store, () => this.#options.partitions.mayAct(partition));
    this.#open.set(partition, { broker, operator: new MailboxOperator(broker.inside), connections: new Set() });
  }

  async lost(partition: number): Promise<void> {
    const one = this.#open.get(partition);
    this.#open.delete(partition);
    if (one === undefined) return;
    for (const connection of [...one.connections])
      connection.end("another broker has the mailbox in hand now: come back");
    one.broker.close();
  }

  /** What an operator may ask of the partitions that are here. */
  *operators(): Iterable<MailboxOperator> {
    for (const [partition, { operator }] of this.#open) {
      if (this.#options.partitions.mayAct(partition)) yield operator;
    }
  }

  /** The other brokers. */
  others(): string[] {
    const { self, partitions } = this.#options;
    return partitions.gateways().flatMap(({ gateway }) => (gateway === self ? [] : [gateway]));
  }

  /** Hands the partitions over; peers of this broker are passed to the others from then on. */
  leave(): Promise<void> {
    return this.#options.partitions.release();
  }

  async close(): Promise<void> {
    clearInterval(this.#sweep);
    await this.leave();
    for (const end of this.#ends) end();
    for (const partition of [...this.#open.keys()]) await this.lost(partition);
  }

  // ── Lines ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** The partition of whoever has a token of that id. */
  partitionOf(owner: string): number {
    return this.#options.partitions.of(owner);
  }

  line(partition: number, intro: PeerIntroduction, events: PartitionLineEvents): PartitionLine {
    const lines = this.#lines.get(partition) ?? new Set();
    this.#lines.set(partition, lines);
    const line: PartitionLine = new PartitionLine(this, partition, intro, events, () => lines.delete(line));
    lines.add(line);
    return line;
  }

  /** Undefined where another has it in hand, or nobody. */
  serve(partition: number, socket: PeerSocket, peer: Peer): PeerConnection | undefined {
    const one = this.#options.partitions.mayAct(partition) ? this.#open.get(partition) : undefined;
    if (one === undefined) return undefined;
    const connection = this.#options.serve(one.broker, socket, peer, () => one.connections.delete(connection));
    one.connections.add(connection);
    return connection;
  }

  /** Another that has it in hand; undefined where nobody has, or we do. */
  ownerOf(partition: number): string | undefined {
    const { self, partitions } = this.#options;
    const owner = partitions.ownerOf(partition);
    return owner === self ? undefined : owner;
  }

  /** Rejects with a PeerError. */
  async connect(owner: string, partition: number, { id, role, maySendTo }: Peer): Promise<FrameStream> {
    const stream = new FrameStream(await this.#connect(owner, id));
    const head: LineHead = { partition, id, role, maySendTo: maySendTo === undefined ? null : [...maySendTo] };
    stream.send(JSON.stringify(head));
    return stream;
  }

  async #connect(owner: string, id: string): Promise<Duplex> {
    if ((this.#linesOf.get(id) ?? 0) >= MAX_LINES_OF_TOKEN) {
      const why = `${MAX_LINES_OF_TOKEN} lines of this token go from this broker to others: come back later, or use fewer connections`;
      throw new PeerError("busy", why);
    }
    this.#countLine(id, 1);
    try {
      const stream = await this.#options.peers.connect(owner, LINES);
      stream.once("close", () => this.#countLine(id, -1));
      return stream;
    } catch (error) {
      this.#countLine(id, -1);
      throw error;
    }
  }

  #countLine(id: string, change: 1 | -1): void {
    const count = (this.#linesOf.get(id) ?? 0) + change;
    if (count === 0) this.#linesOf.delete(id);
    else this.#linesOf.set(id, count);
  }

  /** Resolves when another may have it, or after so long. */
  moved(partition: number, ms: number): Promise<void> {
    const { partitions } = this.#options;
    return toldWithin((told) => partitions.onChange((one) => one === partition && told()), ms);
  }

  /** A line that a peer of another broker has to a partition of ours. */
  #accept(frames: FrameStream): void {
    frames.attach({
      ...NO_EVENTS,
      onMessage: (bytes) => {
        const { partition, id, role, maySendTo } = JSON.parse(bytes.toString()) as LineHead;
        frames.attach(NO_EVENTS);
        const peer: Peer = { id, role, maySendTo: maySendTo === null ? undefined : new Set(maySendTo) };
        if (this.serve(partition, frames, peer) === undefined) frames.close(MOVED, "another broker has it in hand");
      },
    });
  }

  // ── Bare peers ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** It takes messages from now on, and may not say where else there are some. */
  subscribed(connection: SharedPeerConnection): void {
    // All others name the mailboxes that they wait for, at each connection anew.
    if (!connection.isBare) return;
    this.#bare.add(connection);
    void this.#look([connection]);
  }

  left(connection: SharedPeerConnection): void {
    this.#bare.delete(connection);
  }

  #lookForAll(): void {
    const connections = [...this.#bare].slice(0, MAX_SWEPT);
    // Those that are left over come first the next time.
    for (const connection of connections) {
      this.#bare.delete(connection);
      this.#bare.add(connection);
    }
    void this.#look(connections);
  }

  /** Where there is something for them, besides at home. */
  async #look(asked: readonly SharedPeerConnection[]): Promise<void> {
    if (asked.length === 0) return;
    const addresses = asked.map(({ address }) => address);
    const tell = (found: readonly (readonly number[])[]) => {
      for (const [n, places] of found.entries()) for (const place of places) asked[n]?.openAt(place);
    };
    tell(addresses.map((address) => this.#placesOf(address)));
    const body = Buffer.from(JSON.stringify(addresses));
    for (const other of this.others()) {
      const answered = this.#options.peers.ask(other, WAITING, body, { timeoutMs: ASK_MS });
      // What is not answered now is asked for again.
      void answered.then((answer) => tell(JSON.parse(Buffer.from(answer).toString()) as number[][])).catch(() => {});
    }
  }

  #placesOf(address: string): number[] {
    const places: number[] = [];
    for (const [partition, { broker }] of this.#open) if (broker.hasMail(address)) places.push(partition);
    return places;
  }
}
