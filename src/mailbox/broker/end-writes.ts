// Ends of messages are written in the end, whatever the disk says first.

import { RETRY_MS } from "./limits.js";
import type { EndWrite, MailStore } from "./mail-store.js";

export interface EndedMessage extends EndWrite {
  /** It is on disk; the answer has this place there. */
  written(answer: number | undefined): void;
}

/**
 * The ends of messages that nobody finished, on their way to the disk. What cannot be written now is tried again until it can: whoever
 * waits for an answer is told when there is room on the disk again, and not when the broker is started anew.
 */
export class EndWrites {
  readonly #mail: MailStore;
  readonly #mayAct: () => boolean;
  /** What could not be written, the oldest first: its messages are on disk, and its answers have their room in their mailboxes. */
  readonly #left: EndedMessage[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** `mayAct`: whether the mailboxes are this broker's at this moment. */
  constructor(mail: MailStore, mayAct: () => boolean) {
    this.#mail = mail;
    this.#mayAct = mayAct;
  }

  write(ended: EndedMessage): void {
    void this.#try(ended, false);
  }

  async #try(ended: EndedMessage, isAgain: boolean): Promise<boolean> {
    const written = await this.#mail.end(ended, isAgain);
    if (written !== undefined) ended.written(written.answer);
    else {
      this.#left.push(ended);
      this.#tryLater();
    }
    return written !== undefined;
  }

  /** One of them shows whether the others would be written. */
  async #goOn(): Promise<void> {
    this.#timer = undefined;
    if (!this.#mayAct()) {
      this.#tryLater();
      return;
    }
    const first = this.#left.shift();
    if (first === undefined || !(await this.#try(first, true))) return;
    for (const ended of this.#left.splice(0)) void this.#try(ended, true);
  }

  #tryLater(): void {
    if (!this.#isClosed) this.#timer ??= setTimeout(() => void this.#goOn(), RETRY_MS).unref();
  }

  /** Who begins anew with the same store finds the messages there, and ends them. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#left.length = 0;
  }
}
