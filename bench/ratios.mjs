// The arithmetic of the bench. Ratios are taken round by round, because what disturbs a round disturbs all its targets.

/** @param {readonly number[]} values */
export function median(values) {
  if (values.length === 0) return Number.NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** @param {readonly number[]} values @param {readonly number[]} bases @returns {number[]} */
export function ratios(values, bases) {
  const count = Math.min(values.length, bases.length);
  return values.slice(0, count).map((value, round) => value / bases[round]);
}
