// Who is connected to a broker, and what is said between them at once: live frames, and who takes from which mailbox.
// Nothing of it is stored, and what cannot be passed on now is dropped.

import type { MailboxPresence } from "../wire/broker-frames.js";
import type { LiveFrame } from "../wire/frames.js";
import { MAX_WATCHED } from "../wire/limits.js";
import { MAX_MAILBOXES } from "./limits.js";
import type { HandedTo } from "./mailbox.js";
import type { Consumer } from "./queue-terms.js";
import { REQUEST } from "./record.js";

/** Whoever sends: who it is was proved by its token. */
export interface MailSender {
  readonly address: string;
  /** The id of its token. */
  readonly owner: string;
  readonly role: string;
  /** The mailboxes that it may send to; undefined is any. What its own mailbox was sent it may answer besides. */
  readonly maySendTo: ReadonlySet<string> | undefined;
}

/** A connection after its hello. */
export interface LivePeer {
  readonly sender: MailSender;
  /** What it knows beyond the bare frames; undefined is nothing: it gets none of these. */
  readonly version: number | undefined;
  /** As what it takes messages, once it has subscribed. */
  readonly consumer: Consumer | undefined;
  /** Sends a live frame, or drops it. */
  pass(frame: string): void;
  tellPresence(presence: MailboxPresence): void;
}

interface Known {
  connected: boolean;
  version: number | undefined;
  journal: string | undefined;
  sinceMs: number;
}

export class LivePeers {
  readonly #wall: () => number;
  readonly #peers = new Map<string, Set<LivePeer>>();
  readonly #watchers = new Map<string, Set<LivePeer>>();
  readonly #watched = new Map<LivePeer, Set<string>>();
  /** Since when somebody takes from a mailbox, or nobody does; the oldest change is first. */
  readonly #known = new Map<string, Known>();

  constructor(wall: () => number) {
    this.#wall = wall;
  }

  arrive(peer: LivePeer): void {
    const { address } = peer.sender;
    const peers = this.#peers.get(address);
    if (peers === undefined) this.#peers.set(address, new Set([peer]));
    else peers.add(peer);
  }

  leave(peer: LivePeer): void {
    const { address } = peer.sender;
    const peers = this.#peers.get(address);
    if (peers?.delete(peer) !== true) return;
    if (peers.size === 0) this.#peers.delete(address);
    for (const mailbox of this.#watched.get(peer) ?? []) {
      const watchers = this.#watchers.get(mailbox);
      watchers?.delete(peer);
      if (watchers?.size === 0) this.#watchers.delete(mailbox);
    }
    this.#watched.delete(peer);
    this.changed(address);
  }

  /**
   * To whoever is connected at that address: of several the one that has the message which it is about, or had it.
   * The sender may say something there, or is somebody to whom the receiver may: so a sharer reaches its workers.
   */
  pass({ address, role, maySendTo }: MailSender, { to, correlationId, body }: LiveFrame, has?: HandedTo): void {
    const peers = this.#peers.get(to);
    if (peers === undefined) return;
    const maySend = maySendTo?.has(to) !== false;
    let frame: string | undefined;
    for (const peer of peers) {
      if (peer.version === undefined || (!maySend && peer.sender.maySendTo?.has(address) === false)) continue;
      if (has !== undefined && !isIts(peer.consumer, has)) continue;
      frame ??= liveText(address, role, correlationId, body);
      peer.pass(frame);
    }
  }

  // ── Presence ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Tells at once, and whenever it changes. False: it watches too many. */
  watch(peer: LivePeer, mailbox: string): boolean {
    let watched = this.#watched.get(peer);
    if (watched === undefined) {
      watched = new Set();
      this.#watched.set(peer, watched);
    }
    if (!watched.has(mailbox) && watched.size >= MAX_WATCHED) return false;
    watched.add(mailbox);
    const watchers = this.#watchers.get(mailbox);
    if (watchers === undefined) this.#watchers.set(mailbox, new Set([peer]));
    else watchers.add(peer);
    peer.tellPresence(this.presenceOf(mailbox));
    return true;
  }

  /** Tells a peer again what it watches: it could not be told while its connection was full. */
  retell(peer: LivePeer): void {
    for (const mailbox of this.#watched.get(peer) ?? []) peer.tellPresence(this.presenceOf(mailbox));
  }

  presenceOf(mailbox: string): MailboxPresence {
    const { connected = false, version, journal, sinceMs } = this.#known.get(mailbox) ?? {};
    const since = sinceMs === undefined ? undefined : new Date(sinceMs).toISOString();
    return { mailbox, connected, since, version, journal };
  }

  /** Somebody came to a mailbox, subscribed, or left. */
  changed(address: string): void {
    let connected = false;
    let version: number | undefined;
    const journals = new Set<string | undefined>();
    for (const peer of this.#peers.get(address) ?? []) {
      if (!takesRequests(peer.consumer)) continue;
      connected = true;
      journals.add(peer.consumer?.journal);
      if (peer.version !== undefined) version = Math.max(version ?? 0, peer.version);
    }
    const [first] = journals;
    const journal = journals.size === 1 ? first : undefined;
    const known = this.#known.get(address);
    if (known === undefined && !connected) return;
    if (known !== undefined && known.connected === connected && known.version === version && known.journal === journal)
      return;
    const sinceMs = known?.connected === connected ? known.sinceMs : this.#wall();
    this.#known.delete(address);
    this.#known.set(address, { connected, version, journal, sinceMs });
    this.#forgetOldest();
    for (const watcher of this.#watchers.get(address) ?? []) watcher.tellPresence(this.presenceOf(address));
  }

  #forgetOldest(): void {
    if (this.#known.size <= MAX_MAILBOXES) return;
    for (const [address, { connected }] of this.#known) {
      if (connected) continue;
      this.#known.delete(address);
      return;
    }
  }
}

/** The consumer that has it; else one that comes back with its journal. */
function isIts(consumer: Consumer | undefined, has: HandedTo): boolean {
  if (consumer === undefined) return false;
  return has.journal === undefined ? consumer === has.consumer : consumer.journal === has.journal;
}

/** Somebody who takes answers alone, as a worker does, is not there for those who ask. */
function takesRequests(consumer: Consumer | undefined): boolean {
  if (consumer === undefined) return false;
  if (consumer.kinds === undefined) return true;
  for (const kind of consumer.kinds) if (kind.endsWith(REQUEST)) return true;
  return false;
}

function liveText(from: string, role: string, correlationId: string | undefined, body: string): string {
  const correlation = correlationId === undefined ? "" : `"correlation_id":${JSON.stringify(correlationId)},`;
  const sender = `{"session_id":${JSON.stringify(from)},"role":${JSON.stringify(role)}}`;
  return `{"kind":"live","from":${sender},${correlation}"body":${body}}`;
}
