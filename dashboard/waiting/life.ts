// One write's life: what became of it since it was taken, in steps with words, and as parts of one line. It decides only,
// and knows no browser.

import type { LifeStep, OutboxEntry, WriteState } from "../../src/contracts/outbox.js";

export interface LifeMark {
  readonly atMs: number;
  readonly words: string;
  readonly kind: "wait" | "good" | "bad";
}

export interface LifePart {
  /** Of the whole, from 0 to 1. */
  readonly from: number;
  readonly to: number;
  readonly kind: "wait" | "good" | "bad";
  readonly words: string;
}

const KINDS: Readonly<Record<WriteState, LifeMark["kind"]>> = {
  queued: "wait",
  sending: "wait",
  done: "good",
  failed: "bad",
  unknown: "bad",
  expired: "bad",
  cancelled: "bad",
};

export function lifeOf(
  entry: OutboxEntry,
  nowMs: number,
): { readonly marks: readonly LifeMark[]; readonly parts: readonly LifePart[] } {
  const { takenMs, sinceMs, state, principal, life = [] } = entry;
  const marks: LifeMark[] = [{ atMs: takenMs, words: `taken from ${principal}`, kind: "wait" }];
  for (const step of life) marks.push({ atMs: step.atMs, words: stepWords(step), kind: KINDS[step.state] });
  // Where it stands now says the record itself; what is on its way has no step yet.
  if (life.at(-1)?.state !== state && (state !== "queued" || life.length > 0)) {
    marks.push({ atMs: sinceMs, words: stepWords({ atMs: sinceMs, state, why: entry.why }), kind: KINDS[state] });
  }
  const isOver = state !== "queued" && state !== "sending";
  const endMs = Math.max(isOver ? sinceMs : nowMs, marks.at(-1)?.atMs ?? 0, takenMs + 1);
  const share = (ms: number) => Math.min(1, Math.max(0, (ms - takenMs) / (endMs - takenMs)));
  const parts = marks.flatMap(({ atMs, words, kind }, i): LifePart[] => {
    const next = marks[i + 1]?.atMs ?? endMs;
    return next <= atMs ? [] : [{ from: share(atMs), to: share(next), kind, words }];
  });
  return { marks, parts };
}

function stepWords({ state, why, times = 1 }: LifeStep): string {
  const often = times === 1 ? "" : ` ${times} times`;
  const because = why === undefined || why === "" ? "" : `: ${why}`;
  switch (state) {
    case "queued":
      return `went back to its place${often}${because}`;
    case "sending":
      return "is on its way";
    case "done":
      return `done${because}`;
    case "failed":
      return `failed${because}`;
    case "unknown":
      return `nobody knows whether it was done${because}`;
    case "expired":
      return `given up for its age${because}`;
    case "cancelled":
      return `taken back${because}`;
  }
}
