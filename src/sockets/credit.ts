// The receiver's book of credit: what each stream may still send, and what of it waits for its reader. It only counts;
// grants are sent by whoever asks it.

import { FIRST_WINDOW_BYTES, LARGEST_WINDOW_BYTES, MAX_QUEUED_BYTES } from "./limits.js";

/** One stream in the book. Only the book writes to it. */
export class CreditAccount {
  /** Bytes that are granted and have not arrived. */
  mayCome = 0;
  /** Bytes that arrived and were not taken by the reader. */
  waiting = 0;
  /** What `mayCome + waiting` was raised to last: half of it must be used up before the next grant. */
  level = 0;
  isOpen: boolean = false;
}

export class CreditBook {
  #streams = 0;
  #unread = 0;

  /** Bytes that are granted and not read, all streams together: what may have to be held here. */
  get unread(): number {
    return this.#unread;
  }

  get streams(): number {
    return this.#streams;
  }

  /** The window that was offered at the beginning is granted without a word. */
  open(account: CreditAccount): void {
    account.isOpen = true;
    account.mayCome = FIRST_WINDOW_BYTES;
    account.waiting = 0;
    account.level = FIRST_WINDOW_BYTES;
    this.#streams++;
    this.#unread += FIRST_WINDOW_BYTES;
  }

  /** False where more came than was granted. */
  arrived(account: CreditAccount, bytes: number): boolean {
    if (bytes > account.mayCome) return false;
    account.mayCome -= bytes;
    account.waiting += bytes;
    return true;
  }

  /** What to grant now that the reader took so much: 0 where it is not worth a message yet. */
  taken(account: CreditAccount, bytes: number): number {
    if (!account.isOpen) return 0;
    account.waiting -= bytes;
    this.#unread -= bytes;
    const has = account.mayCome + account.waiting;
    if (has > account.level / 2) return 0;
    const window = this.#window(account, has);
    if (has > window / 2) return 0;
    account.mayCome += window - has;
    account.level = window;
    this.#unread += window - has;
    return window - has;
  }

  close(account: CreditAccount): void {
    if (!account.isOpen) return;
    account.isOpen = false;
    this.#streams--;
    this.#unread -= account.mayCome + account.waiting;
    account.mayCome = 0;
    account.waiting = 0;
  }

  /**
   * The next window is twice the last one where the reader has read all there is: then the way is long, and more should
   * be under way. A slow reader gains nothing by more that waits. It is at most an even share, and no more than is left
   * of the whole; but always a first window, so that no stream stands still.
   */
  #window({ level, waiting }: CreditAccount, has: number): number {
    const share = Math.min(LARGEST_WINDOW_BYTES, Math.floor(MAX_QUEUED_BYTES / this.#streams));
    const wanted = Math.min(share, waiting > 0 ? level : 2 * level);
    return Math.max(FIRST_WINDOW_BYTES, Math.min(wanted, has + MAX_QUEUED_BYTES - this.#unread));
  }
}
