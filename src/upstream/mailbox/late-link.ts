// A link to a mailbox whose code is loaded when it is opened, as nothing of it is needed by a gateway without mailboxes.

import { randomBytes } from "node:crypto";
import type { MailboxTarget } from "../../contracts/server-spec.js";
import type { WorkerIdentity, WorkerLines } from "../../mailbox/join/worker-lines.js";
import { Fault } from "../../protocol/errors.js";
import { systemClock } from "../../runtime/clock.js";
import type { Holder } from "../../runtime/memory/held-bytes.js";
import { safeUrl } from "../../runtime/redact/safe-url.js";
import type { Link, LinkDescription, LinkEvents, Ticket } from "../link/link.js";

/** The lines that all links of one gateway share, made with the first. */
export function lateLines(identity: WorkerIdentity | undefined): () => Promise<WorkerLines> {
  let lines: Promise<WorkerLines> | undefined;
  return () => {
    lines ??= import("./parts.js").then(({ WorkerLines }) => {
      return new WorkerLines({
        now: systemClock.now,
        random: Math.random,
        ...(identity ?? passingIdentity()),
      });
    });
    return lines;
  };
}

/** For whoever tries a server and keeps nothing: its inbox is forgotten with it. */
function passingIdentity(): WorkerIdentity {
  const part = randomBytes(8).toString("hex");
  return { addressPart: () => part };
}

export interface LateMailboxOptions {
  readonly lines: () => Promise<WorkerLines>;
  readonly newHolder: () => Holder;
}

export class LateMailboxLink implements Link {
  readonly #target: MailboxTarget;
  readonly #events: LinkEvents;
  readonly #options: LateMailboxOptions;
  #link: Link | undefined;
  #isClosed = false;

  constructor(target: MailboxTarget, events: LinkEvents, options: LateMailboxOptions) {
    this.#target = target;
    this.#events = events;
    this.#options = options;
  }

  async open(signal: AbortSignal): Promise<void> {
    const { broker, token } = this.#target;
    const { lines, newHolder } = this.#options;
    const [{ MailboxLink }, all] = await Promise.all([import("./parts.js"), lines()]);
    if (this.#isClosed) throw new Fault("closing", "It was closed while it was opened.");
    signal.throwIfAborted();
    this.#link = new MailboxLink(this.#target, this.#events, { worker: all.of(broker, token), newHolder });
    await this.#link.open(signal);
  }

  /** Nothing is sent before it is open. */
  send(text: string, ticket: Ticket | undefined): void {
    this.#link?.send(text, ticket);
  }

  get journal(): string | undefined {
    return this.#link?.journal;
  }

  established(): void {}

  forget(ticket: Ticket): void {
    this.#link?.forget(ticket);
  }

  withdraw(ticket: Ticket): boolean | Promise<boolean> {
    return this.#link?.withdraw?.(ticket) ?? false;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#link?.close();
  }

  describe(): LinkDescription {
    const { broker } = this.#target;
    return broker === undefined ? { kind: "mailbox" } : { kind: "mailbox", url: safeUrl(new URL(broker)) };
  }
}
