// A link to a machine that shares its servers through a mailbox. Requests are messages, durable and delivered once: a line to
// the broker that is lost ends no call, since its answer waits in our own mailbox. What lasts only as long as both are
// connected (listening, progress, pieces of large replies) goes by live frames. The line itself is mailbox/join's.

import { createHash, randomBytes } from "node:crypto";
import type { MailboxTarget } from "../../contracts/server-spec.js";
import type { Draw } from "../../mailbox/join/draw-turns.js";
import type { MailboxUser, WorkerLine } from "../../mailbox/join/worker-line.js";
import { BrokerRefusal } from "../../mailbox/peer/broker-error.js";
import type { BrokerLine } from "../../mailbox/peer/line.js";
import type { MailboxPresence, ReceivedLive, ReceivedMessage } from "../../mailbox/wire/broker-frames.js";
import { Fault, OUTCOME_UNKNOWN } from "../../protocol/errors.js";
import { locate, scanText } from "../../protocol/message.js";
import { Meta } from "../../protocol/modern.js";
import { systemClock } from "../../runtime/clock.js";
import { Table } from "../../runtime/containers/table.js";
import type { Holder } from "../../runtime/memory/held-bytes.js";
import { safeUrl } from "../../runtime/redact/safe-url.js";
import { redactorFor } from "../../runtime/redact/secrets-of.js";
import { sentence } from "../../runtime/words/sentence.js";
import { takenBack } from "../link/cancelled-call.js";
import type { Link, LinkDescription, LinkEvents, Ticket } from "../link/link.js";
import { failure, readLive, readReply, requestBody } from "./body.js";
import { DrawnReply } from "./drawn-reply.js";
import { awayText, Outgoing } from "./outgoing.js";

/** So many sessions' hashes are remembered, so that each call does not make its own anew. */
const MAX_SESSIONS = 1_000;
/** Messages that are taken back when there is a line again. More agents than that do not give up within a few seconds. */
const MAX_CANCELS = 1_000;
/** The broker says at once whether a machine is there. One that does not, is of a kind that cannot. */
const PRESENCE_MS = 2_000;
const NO_KEY = { digest: undefined, journal: undefined };
/** A message without a bound of its own: the broker's. */
const DEFAULT_LEFT_MS = 3_600_000;

/** A request to listen: it has no message, and lives as long as line and machine do. */
interface Listening {
  readonly ticket: Ticket;
  readonly id: string;
  /** It is with the machine; otherwise nobody hears it, and it is failed when somebody could. */
  isSent: boolean;
}

export interface MailboxLinkContext {
  /** The line to the broker, shared with other mailboxes. */
  readonly worker: WorkerLine;
  readonly newHolder: () => Holder;
  readonly now?: () => number;
}

export class MailboxLink implements Link, MailboxUser {
  readonly mailbox: string;
  readonly #target: MailboxTarget;
  readonly #events: LinkEvents;
  readonly #worker: WorkerLine;
  readonly #newHolder: () => Holder;
  readonly #now: () => number;
  /** Two links never use one id, not even in another life of the process. */
  readonly #prefix = randomBytes(12).toString("base64url").replaceAll("-", "_");
  readonly #outgoing = new Table<number, Outgoing>();
  readonly #listening = new Table<number, Listening>();
  readonly #replies = new Map<Draw, DrawnReply>();
  readonly #sessions = new Map<string, string>();
  #cancels: string[] = [];
  #awayTimer: NodeJS.Timeout | undefined;
  #isOpen = false;
  #isClosed = false;
  /** Told of the line and of presence while the link is being opened. */
  #onChange: (() => void) | undefined;
  #openFault: Fault | undefined;

  constructor(target: MailboxTarget, events: LinkEvents, context: MailboxLinkContext) {
    this.#target = target;
    this.mailbox = target.mailbox;
    this.#events = events;
    this.#worker = context.worker;
    this.#newHolder = context.newHolder;
    this.#now = context.now ?? systemClock.now;
  }

  /**
   * There is a line, and a machine behind it, or one that was there before: what it is then said stands for it while it
   * is away.
   */
  async open(signal: AbortSignal): Promise<void> {
    if (this.#isClosed) throw new Fault("closing", "A link is opened once.");
    this.#worker.attach(this.#prefix, this);
    this.#worker.want();
    try {
      await this.#until(() => this.#worker.line !== undefined, signal, undefined);
      await this.#until(() => this.#presence !== undefined, signal, PRESENCE_MS);
      if (this.#isAway && !this.#worker.intros.has(this.mailbox)) {
        await this.#until(() => !this.#isAway, signal, this.#target.awayWaitMs);
        if (this.#isAway) throw new Fault("unavailable", this.#neverMetText());
      }
      this.#isOpen = true;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  send(text: string, ticket: Ticket | undefined): void {
    if (this.#isClosed) return;
    // Our own word that a request is taken back: forget() takes its message back.
    if (ticket === undefined) this.#tell(text);
    else if (ticket.method === "subscriptions/listen") this.#listen(text, ticket);
    else if (this.#isAway && ticket.sessionKey === undefined) this.#answerForAway(ticket);
    else if (this.#hasMoved(ticket)) this.#failMoved(ticket);
    else this.#deliverNew(text, ticket);
  }

  established(): void {
    // No handshake crosses a mailbox.
  }

  forget(ticket: Ticket): void {
    const listening = this.#listening.get(ticket.id);
    if (listening !== undefined) this.#endListening(listening, true);
    const outgoing = this.#outgoing.get(ticket.id);
    if (outgoing === undefined) return;
    this.#drop(outgoing);
    if (outgoing.draw !== undefined) {
      const reply = this.#replies.get(outgoing.draw);
      // What is given on as a stream goes on until its reader has it.
      if (reply?.isStreaming !== true) reply?.drop();
    } else if (outgoing.wasTried && !outgoing.isTakenBack && ticket.messageKey?.isTakenBack !== false)
      this.#cancel(outgoing.id);
  }

  /** The broker knows whether the machine was handed the message. */
  withdraw({ id }: Ticket): boolean | Promise<boolean> {
    const outgoing = this.#outgoing.get(id);
    if (outgoing === undefined || outgoing.draw !== undefined) return false;
    if (!outgoing.wasTried) return true;
    const { line } = this.#worker;
    if (line === undefined) return false;
    outgoing.isTakenBack = true;
    return line.cancel(this.mailbox, outgoing.id).catch(() => {
      outgoing.isTakenBack = false;
      return false;
    });
  }

  async close(): Promise<void> {
    this.#shut(new Fault("unavailable", "The connection was closed within the answer."));
    this.#onChange?.();
  }

  /** Nothing is asked for, awaited or held any more. Whose calls were under way is told by whoever shuts it. */
  #shut(fault: Fault): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#awayTimer);
    for (const listening of [...this.#listening.values()]) this.#endListening(listening, true);
    this.#endReplies(fault);
    this.#worker.detach(this.#prefix);
  }

  /** What is being drawn comes no further: whoever reads it on is told why. */
  #endReplies(fault: Fault): void {
    for (const reply of [...this.#replies.values()]) {
      if (reply.isStreaming) reply.fail(fault);
      else reply.drop();
    }
  }

  describe(): LinkDescription {
    const { broker } = this.#target;
    return broker === undefined ? { kind: "mailbox" } : { kind: "mailbox", url: safeUrl(new URL(broker)) };
  }

  // ---- what the line says

  onLine(line: BrokerLine): void {
    for (const id of this.#cancels.splice(0)) void line.cancel(this.mailbox, id).catch(() => {});
    for (const outgoing of this.#inOrder()) if (outgoing.state === "waiting") this.#deliver(outgoing, line);
    this.#onChange?.();
  }

  onLost(): void {
    for (const outgoing of this.#outgoing.values()) if (outgoing.state === "delivering") outgoing.state = "waiting";
    for (const listening of this.#listening.values()) listening.isSent = false;
    this.#clearAway();
  }

  onDown(why: string, final: boolean): void {
    const fault = this.#downFault(why, final);
    this.#openFault = fault;
    this.#onChange?.();
    const calls = this.#inOrder();
    for (const outgoing of calls) this.#drop(outgoing);
    if (final && this.#isOpen && !this.#isClosed) {
      this.#shut(fault);
      this.#events.onClosed(fault);
      return;
    }
    this.#endReplies(fault);
    for (const outgoing of calls) this.#failDown(outgoing, fault);
  }

  onPresence(presence: MailboxPresence): void {
    if (presence.connected) {
      this.#clearAway();
      // Whoever listened while nobody could hear it begins anew, and reads what was missed.
      for (const listening of [...this.#listening.values()]) {
        if (!listening.isSent) this.#failListening(listening, `${this.mailbox} is there again.`);
      }
    } else {
      for (const listening of this.#listening.values()) listening.isSent = false;
      for (const outgoing of this.#outgoing.values()) this.#awaitReturn(outgoing);
    }
    this.#onChange?.();
  }

  onReply(message: ReceivedMessage): void {
    const outgoing = this.#outgoingOf(message.correlationId);
    if (outgoing === undefined) {
      this.#worker.acknowledge(message);
      return;
    }
    const { ticket } = outgoing;
    const reply = readReply(message.body);
    if (reply.kind === "large") {
      this.#drawReply(outgoing, message, reply.bytes, reply.sha256);
      return;
    }
    this.#drop(outgoing);
    this.#worker.acknowledge(message);
    if (reply.kind === "message") {
      if (ticket.method === "server/discover") this.#remember(reply.text);
      this.#events.onMessage(Buffer.from(reply.text), ticket);
    } else if (reply.kind === "error") {
      const fault = failure(reply.error, reply.outcome, reply.code);
      const neverRan = outgoing.isTakenBack && reply.outcome === "not run";
      // It does not go out again.
      if (neverRan) this.#events.onFailed(ticket, takenBack(fault.plain, true), true);
      else this.#events.onFailed(ticket, fault, reply.outcome !== "not run");
    } else {
      const text = `${this.mailbox} answered with what is no answer: missing result.`;
      this.#events.onFailed(ticket, new Fault("protocol", text), true);
    }
  }

  onLive({ correlationId, body }: ReceivedLive): void {
    const id = ticketIdOf(correlationId);
    const outgoing = this.#outgoing.get(id);
    const listening = this.#listening.get(id);
    const ticket = outgoing?.ticket ?? listening?.ticket;
    const live = readLive(body);
    if (live?.kind === "piece" || live?.kind === "no piece") {
      this.#piece(correlationId ?? "", live);
      return;
    }
    if (ticket === undefined || live === undefined) return;
    if (live.kind === "notification") {
      this.#events.onMessage(Buffer.from(live.text), ticket);
    } else if (listening !== undefined && live.kind === "reply") {
      this.#endListening(listening, false);
      this.#events.onMessage(Buffer.from(live.text), ticket);
    } else if (listening !== undefined && live.kind === "end") this.#failListening(listening, live.error);
  }

  onTurn(draw: Draw, offset: number, bytes: number): void {
    this.#worker.line?.live(this.mailbox, draw.id, `{"op":"draw","offset":${offset},"bytes":${bytes}}`);
  }

  onSilent(draw: Draw): void {
    const where = this.#isAway ? this.#awayText() : `${this.mailbox} sends nothing`;
    const text = `${where}, and the rest of its answer stays there.`;
    this.#replies.get(draw)?.fail(new Fault("outcome-unknown", text, { outcome: OUTCOME_UNKNOWN }));
  }

  // ---- requests

  #deliverNew(text: string, ticket: Ticket): void {
    const { sessionKey } = ticket;
    const session = sessionKey === undefined ? undefined : this.#hashOf(sessionKey);
    const { messageKey } = ticket;
    const endMs = this.#now() + (messageKey?.leftMs ?? ticket.longestMs ?? DEFAULT_LEFT_MS);
    const id = messageKey?.id ?? `${this.#prefix}-${ticket.id}`;
    const outgoing = new Outgoing(ticket, id, requestBody("rpc", session, text), endMs);
    this.#outgoing.set(ticket.id, outgoing);
    if (messageKey !== undefined) this.#worker.expect(id, this);
    const { line } = this.#worker;
    if (line === undefined) {
      this.#worker.want();
      return;
    }
    this.#deliver(outgoing, line);
    if (this.#isAway) this.#awaitReturn(outgoing);
  }

  #deliver(outgoing: Outgoing, line: BrokerLine): void {
    const { id, body, endMs, ticket } = outgoing;
    outgoing.state = "delivering";
    outgoing.wasTried = true;
    const leftMs = Math.max(1, endMs - this.#now());
    const { digest, journal } = ticket.messageKey ?? NO_KEY;
    line.deliver({ to: this.mailbox, id, kind: "mcp_request", body, leftMs, digest, journal }).then(
      () => {
        if (outgoing.state !== "delivering") return;
        outgoing.state = "delivered";
        outgoing.body = "";
      },
      (error: unknown) => this.#undelivered(outgoing, error),
    );
  }

  /** The broker did not take it; where the line ended first, it goes out again on the next. */
  #undelivered(outgoing: Outgoing, error: unknown): void {
    const { ticket } = outgoing;
    if (!(error instanceof BrokerRefusal)) return;
    if (this.#outgoing.get(ticket.id) !== outgoing || outgoing.state !== "delivering") return;
    this.#drop(outgoing);
    const text = `The broker did not take the message for ${this.mailbox}: ${error.message}`;
    this.#events.onFailed(ticket, new Fault("unavailable", sentence(text)), false);
  }

  /** Another machine is there than the one that writes this call down. */
  #hasMoved({ messageKey }: Ticket): boolean {
    return messageKey !== undefined && this.journal !== undefined && this.journal !== messageKey.journal;
  }

  #failMoved(ticket: Ticket): void {
    const isRepeat = ticket.messageKey?.isRepeat === true;
    const text = `Another machine shares as ${this.mailbox} than the one that had the call`;
    const fault = isRepeat
      ? new Fault("outcome-unknown", `${text}.`, { outcome: OUTCOME_UNKNOWN, wire: { final: true } })
      : new Fault("unavailable", `${text} before; not run.`);
    queueMicrotask(() => {
      if (!this.#isClosed) this.#events.onFailed(ticket, fault, isRepeat);
    });
  }

  /** It is over, or goes out no more. */
  #drop({ ticket, id, draw }: Outgoing): void {
    this.#outgoing.delete(ticket.id);
    // A reply that is drawn comes until it is whole.
    if (ticket.messageKey !== undefined && draw === undefined) this.#worker.unexpect(id, this);
  }

  #failDown({ ticket, wasTried }: Outgoing, down: Fault): void {
    const { plain, remedy } = down;
    const unknown = () => new Fault("outcome-unknown", plain, { outcome: OUTCOME_UNKNOWN, remedy });
    this.#events.onFailed(ticket, wasTried ? unknown() : down, wasTried);
  }

  #cancel(id: string): void {
    const { line } = this.#worker;
    if (line !== undefined) void line.cancel(this.mailbox, id).catch(() => {});
    else if (this.#cancels.length < MAX_CANCELS) this.#cancels.push(id);
  }

  /** An agent's notification, or our own that a request is taken back, which its message says. */
  #tell(text: string): void {
    if (text.includes('"notifications/cancelled"')) return;
    this.#worker.line?.live(this.mailbox, undefined, `{"op":"notification","message":${text}}`);
  }

  // ---- a machine that is away

  get journal(): string | undefined {
    return this.#presence?.journal;
  }

  get #presence(): MailboxPresence | undefined {
    return this.#worker.presenceOf(this.mailbox);
  }

  get #isAway(): boolean {
    return this.#presence?.connected === false;
  }

  #awayText(): string {
    return awayText(this.mailbox, this.#presence?.since, Date.now());
  }

  /** Said of a machine of which nothing is known here. Where the broker has not seen it either, it may not exist. */
  #neverMetText(): string {
    if (this.#presence?.since !== undefined) return `${this.#awayText()}.`;
    const how = `\`toolway share --as ${this.mailbox}\``;
    return `The broker has not seen ${this.mailbox} since it started: is ${how} running on that machine?`;
  }

  /** What the gateway itself asks is not kept for later: it asks again. Who the machine is, is known from before. */
  #answerForAway(ticket: Ticket): void {
    const intro = ticket.method === "server/discover" ? this.#worker.intros.get(this.mailbox) : undefined;
    const text = `${this.#awayText()}.`;
    queueMicrotask(() => {
      if (this.#isClosed) return;
      if (intro === undefined) this.#events.onFailed(ticket, new Fault("unavailable", text), false);
      else this.#events.onMessage(Buffer.from(`{"jsonrpc":"2.0","id":${ticket.id},"result":${intro}}`), ticket);
    });
  }

  #remember(text: string): void {
    const at = locate(scanText(text), ["result"]);
    if (at !== undefined) this.#worker.intros.set(this.mailbox, text.slice(at.start, at.end));
  }

  #awaitReturn(outgoing: Outgoing): void {
    if (outgoing.awayDueMs !== undefined || outgoing.state === "answered") return;
    const { ticket } = outgoing;
    outgoing.awayDueMs = this.#now() + this.#target.awayWaitMs;
    if (ticket.wantsProgress === true) {
      const params = { progressToken: ticket.id, progress: 0, message: `${this.#awayText()}; waiting` };
      const text = JSON.stringify({ jsonrpc: "2.0", method: "notifications/progress", params });
      this.#events.onMessage(Buffer.from(text), ticket);
    }
    // All wait equally long: the first that is due is the one that the timer was set for.
    this.#awayTimer ??= setTimeout(() => this.#giveUpAway(), this.#target.awayWaitMs).unref();
  }

  #giveUpAway(): void {
    this.#awayTimer = undefined;
    const { line } = this.#worker;
    if (line === undefined || !this.#isAway) return;
    const nowMs = this.#now();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const outgoing of this.#inOrder()) {
      const dueMs = outgoing.awayDueMs;
      if (dueMs === undefined) continue;
      // A timer may come a moment early.
      if (dueMs > nowMs + 1) nextMs = Math.min(nextMs, dueMs);
      else if (dueMs > 0) void this.#takeBack(outgoing, line);
    }
    if (nextMs !== Number.POSITIVE_INFINITY) {
      this.#awayTimer = setTimeout(() => this.#giveUpAway(), Math.max(1, nextMs - nowMs)).unref();
    }
  }

  /** One that was handed out before goes on: nobody knows what became of it. */
  async #takeBack(outgoing: Outgoing, line: BrokerLine): Promise<void> {
    const { ticket, id } = outgoing;
    const text = this.#awayText();
    // It is asked for once.
    outgoing.awayDueMs = 0;
    const isRemoved = await line.cancel(this.mailbox, id).catch(() => false);
    if (!isRemoved || this.#outgoing.get(ticket.id) !== outgoing) return;
    this.#drop(outgoing);
    this.#events.onFailed(ticket, new Fault("unavailable", `${text}; not run.`), false);
  }

  #clearAway(): void {
    clearTimeout(this.#awayTimer);
    this.#awayTimer = undefined;
    for (const outgoing of this.#outgoing.values()) outgoing.awayDueMs = undefined;
  }

  // ---- listening

  #listen(text: string, ticket: Ticket): void {
    const body = requestBody("listen", undefined, text);
    const listening: Listening = { ticket, id: `${this.#prefix}-${ticket.id}`, isSent: false };
    this.#listening.set(ticket.id, listening);
    const { line } = this.#worker;
    if (line !== undefined && this.#presence?.connected === true) {
      listening.isSent = line.live(this.mailbox, listening.id, body);
      return;
    }
    // Nobody is there to listen. It counts as listened to until somebody is: nothing can change unheard before, and
    // then it is failed, so that it is asked for again and the lists are read.
    const at = locate(scanText(text), ["params", "notifications"]);
    const agreed = at === undefined ? "{}" : text.slice(at.start, at.end);
    const meta = `"_meta":{"${Meta.subscriptionId}":${ticket.id}}`;
    const method = "notifications/subscriptions/acknowledged";
    const said = `{"jsonrpc":"2.0","method":"${method}","params":{${meta},"notifications":${agreed}}}`;
    queueMicrotask(() => {
      if (this.#listening.get(ticket.id) === listening) this.#events.onMessage(Buffer.from(said), ticket);
    });
  }

  #failListening(listening: Listening, why: string): void {
    this.#endListening(listening, false);
    this.#events.onFailed(listening.ticket, new Fault("unavailable", why), false);
  }

  #endListening(listening: Listening, isTold: boolean): void {
    this.#listening.delete(listening.ticket.id);
    if (isTold && listening.isSent) this.#worker.line?.live(this.mailbox, listening.id, '{"op":"cancel"}');
  }

  // ---- large replies

  #drawReply(outgoing: Outgoing, message: ReceivedMessage, bytes: number, sha256: string): void {
    const { ticket } = outgoing;
    outgoing.state = "answered";
    outgoing.awayDueMs = undefined;
    const worker = this.#worker;
    const draw = worker.draw(message, bytes);
    outgoing.draw = draw;
    const reply = new DrawnReply({
      ticket,
      bytes,
      sha256,
      holder: this.#newHolder(),
      events: this.#events,
      source: {
        pause: () => worker.pause(draw, true),
        resume: () => worker.pause(draw, false),
        abort: () => reply.drop(),
      },
      onEnd: () => {
        outgoing.draw = undefined;
        this.#drop(outgoing);
        this.#replies.delete(draw);
        worker.endDraw(draw);
      },
    });
    this.#replies.set(draw, reply);
  }

  #piece(
    id: string,
    live: { kind: "piece"; offset: number; data: string } | { kind: "no piece"; error: string },
  ): void {
    for (const [draw, reply] of this.#replies) {
      if (draw.id !== id) continue;
      if (live.kind === "no piece") {
        const text = `${this.mailbox} no longer has the rest of its answer: ${live.error}`;
        reply.fail(new Fault("outcome-unknown", sentence(text), { outcome: OUTCOME_UNKNOWN }));
        return;
      }
      const data = Buffer.from(live.data, "base64");
      if (this.#worker.drew(draw, live.offset, data.length)) reply.push(data);
      return;
    }
  }

  // ---- inside

  #inOrder(): Outgoing[] {
    return [...this.#outgoing.values()].sort((a, b) => a.ticket.id - b.ticket.id);
  }

  #outgoingOf(id: string | undefined): Outgoing | undefined {
    const outgoing = this.#outgoing.get(ticketIdOf(id));
    return outgoing?.id === id ? outgoing : undefined;
  }

  /** The machine tells sessions apart by it, and learns nothing of ours. */
  #hashOf(sessionKey: string): string {
    let session = this.#sessions.get(sessionKey);
    if (session === undefined) {
      session = createHash("sha256").update(sessionKey).digest("hex").slice(0, 32);
      if (this.#sessions.size >= MAX_SESSIONS) this.#sessions.clear();
      this.#sessions.set(sessionKey, session);
    }
    return session;
  }

  #downFault(why: string, final: boolean): Fault {
    const { broker } = this.#target;
    const where = broker === undefined ? "The gateway's own broker" : `The broker at ${safeUrl(new URL(broker))}`;
    const said = redactorFor(this.#target).redact(why);
    if (!final) {
      const remedy = "This is passing: it is dialled again by itself, and with the next call.";
      return new Fault("unavailable", sentence(`${where} cannot be reached just now: ${said}`), { remedy });
    }
    const remedy = 'Check "token" in its entry, and by `toolway token list` at the broker whether it may send there.';
    return new Fault("unauthorized", sentence(`${where} refuses us: ${said}`), { remedy });
  }

  /** Resolves when it is so, or after `limitMs`. Rejects with a Fault where there is no line to be had. */
  async #until(isSo: () => boolean, signal: AbortSignal, limitMs: number | undefined): Promise<void> {
    if (isSo()) return;
    this.#openFault = undefined;
    await new Promise<void>((resolve, reject) => {
      const timer = limitMs === undefined ? undefined : setTimeout(() => end(resolve), limitMs);
      const end = (then: () => void) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        this.#onChange = undefined;
        then();
      };
      const onAbort = () => end(() => reject(signal.reason as Error));
      signal.addEventListener("abort", onAbort, { once: true });
      this.#onChange = () => {
        const fault = this.#openFault ?? (this.#isClosed ? new Fault("closing", "It was closed.") : undefined);
        if (fault !== undefined) end(() => reject(fault));
        else if (isSo()) end(resolve);
      };
      if (signal.aborted) onAbort();
    });
  }
}

function ticketIdOf(id: string | undefined): number {
  return id === undefined ? 0 : Number(id.slice(id.lastIndexOf("-") + 1));
}
