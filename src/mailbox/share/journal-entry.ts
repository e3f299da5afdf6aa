// What a sharer does with a message, by what its journal has of it: the rule by which nothing happens twice. It does no
// I/O and has no clock; the journal keeps the entries, the sharer acts.

/**
 * What is kept of a message whose effect must not happen twice. "started" is on disk before its tool is sent anything,
 * "finished" before its sender is told. What may be repeated has no entry, but for a reply that is drawn in pieces.
 */
export type JournalEntry = StartedEntry | FinishedEntry;

interface EntryBase {
  /** Of the message's body: tells a repeat from another message under the same id. */
  readonly digest: string;
  /** When its message ends, on the journal's clock. */
  readonly endMs: number;
}

export interface StartedEntry extends EntryBase {
  readonly state: "started";
  /** What was begun, for whoever is told that its outcome is unknown. */
  readonly what: string;
}

export interface FinishedEntry extends EntryBase {
  readonly state: "finished";
  readonly reply: KeptReply;
}

/** The body of a reply as JSON text, or where its parts are: the text of a JSON-RPC response that is too large for one. */
export type KeptReply = string | LargeReply;

export interface LargeReply {
  readonly bytes: number;
  readonly sha256: string;
}

export type Verdict =
  | { readonly act: "run" }
  /** It is being run by this process: what comes of it answers this one too, once. */
  | { readonly act: "wait" }
  | { readonly act: "reply"; readonly reply: KeptReply }
  /** It was started, and nobody knows how it ended. */
  | { readonly act: "unknown"; readonly what: string }
  | { readonly act: "refuse"; readonly why: string };

const RUN: Verdict = { act: "run" };
const WAIT: Verdict = { act: "wait" };

/** `runningDigest` is that of the call of this id that runs here; undefined where none does. */
export function judge(
  entry: JournalEntry | undefined,
  message: { readonly digest: string; readonly runningDigest: string | undefined },
): Verdict {
  const { digest, runningDigest } = message;
  const known = runningDigest ?? entry?.digest;
  if (known !== undefined && known !== digest) {
    return { act: "refuse", why: "this id was used for another message, with another body: use a new one. Not run." };
  }
  if (runningDigest !== undefined) return WAIT;
  if (entry === undefined) return RUN;
  if (entry.state === "finished") return { act: "reply", reply: entry.reply };
  // An earlier life of this process began it, or this one did and could not write down how it ended.
  return { act: "unknown", what: entry.what };
}

/**
 * An entry stays for so long after its message has ended: whoever repeats it in the last moment, by a clock that is
 * behind, is still answered from it.
 */
export const KEPT_AFTER_END_MS = 10 * 60_000;

export interface JournalLimits {
  readonly entries: number;
  readonly bytes: number;
}

/**
 * Why no further call of this worker may begin, by what is kept in all and what of it is the worker's own; undefined where there is room. A
 * living entry is never forgotten for a new one. No worker has more than half: one that fills its own part keeps nobody else out.
 */
export function fullness(
  used: JournalLimits,
  own: JournalLimits,
  limits: JournalLimits,
  worker: string,
): string | undefined {
  const full = reached(used, limits.entries, limits.bytes);
  if (full !== undefined) return refusal("is full", full, "");
  const share = reached(own, limits.entries / 2, limits.bytes / 2);
  return share === undefined
    ? undefined
    : refusal(`has no more room for "${worker}"`, share, " of one worker, half of all");
}

function reached(kept: JournalLimits, entries: number, bytes: number): string | undefined {
  if (kept.entries >= entries) return `${entries} calls`;
  return kept.bytes >= bytes ? `${bytes} bytes of replies` : undefined;
}

function refusal(state: string, what: string, whose: string): string {
  return `The sharer's journal ${state}: it keeps ${what}${whose}, until ten minutes after their end. Not run; try again later.`;
}
