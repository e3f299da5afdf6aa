// Which lines of two texts are the same, which are old and which new: a longest common subsequence. Knows no colours.

export interface Change {
  readonly kind: "same" | "old" | "new";
  readonly line: string;
}

/** Cells of the table: 4 MB. Definitions of 64 KiB stay below; larger middles are shown as replaced. */
const MAX_CELLS = 2_000_000;

export function lineDiff(before: readonly string[], after: readonly string[]): Change[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (
    end < before.length - start &&
    end < after.length - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  ) {
    end++;
  }
  const same = (line: string): Change => ({ kind: "same", line });
  return [
    ...before.slice(0, start).map(same),
    ...middle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(same),
  ];
}

function middle(before: readonly string[], after: readonly string[]): Change[] {
  const [n, m] = [before.length, after.length];
  const old = (line: string): Change => ({ kind: "old", line });
  const fresh = (line: string): Change => ({ kind: "new", line });
  const width = m + 1;
  if (n * m === 0 || (n + 1) * width > MAX_CELLS) return [...before.map(old), ...after.map(fresh)];
  // longest[i, j]: of what is left from line i of the old and line j of the new.
  const longest = new Uint16Array((n + 1) * width);
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      const skip = Math.max(longest[(i + 1) * width + j] ?? 0, longest[i * width + j + 1] ?? 0);
      longest[i * width + j] = before[i] === after[j] ? (longest[(i + 1) * width + j + 1] ?? 0) + 1 : skip;
    }
  }
  const changes: Change[] = [];
  let [i, j] = [0, 0];
  while (i < n && j < m) {
    const [ofOld, ofNew] = [before[i] ?? "", after[j] ?? ""];
    if (ofOld === ofNew) {
      changes.push({ kind: "same", line: ofOld });
      i++;
      j++;
    } else if ((longest[(i + 1) * width + j] ?? 0) >= (longest[i * width + j + 1] ?? 0)) {
      changes.push(old(ofOld));
      i++;
    } else {
      changes.push(fresh(ofNew));
      j++;
    }
  }
  return [...changes, ...before.slice(i).map(old), ...after.slice(j).map(fresh)];
}
