// Which of the words that we know somebody may have meant.

/**
 * The candidate that differs only in case and punctuation, or by a typo or two; undefined where none is near.
 * Short words get one typo only: `files` is not `roles`; the shortest get none: every letter is one typo from another.
 */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const folded = fold(word);
  // Nothing but punctuation is like everything that is short.
  if (folded === "") return undefined;
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const target = fold(candidate);
    // Each letter more is a typo at least; so nothing is compared with names that are far longer.
    if (Math.abs(target.length - folded.length) > typosAllowed(target)) continue;
    const distance = target === folded ? 0 : editDistance(folded, target);
    if (distance <= typosAllowed(target) && distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

function typosAllowed(word: string): number {
  if (word.length < 3) return 0;
  return word.length < 6 ? 1 : 2;
}

function fold(word: string): string {
  return word.toLowerCase().replace(/[^a-z0-9$]/g, "");
}

/** Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
