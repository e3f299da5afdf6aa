// Random values that a seed brings back: a fuzzer's failure must be repeatable.

export interface Random {
  readonly seed: number;
  /** In [0, 1). */
  next(): number;
  /** In [0, below). */
  int(below: number): number;
  pick<T>(from: readonly T[]): T;
  chance(share: number): boolean;
  bytes(length: number): Buffer;
}

/** mulberry32: small, fast, and good enough to make garbage. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const int = (below: number) => Math.floor(next() * below);
  return {
    seed,
    next,
    int,
    pick: <T>(from: readonly T[]): T => from[int(from.length)] as T,
    chance: (share) => next() < share,
    bytes: (length) => Buffer.from(Array.from({ length }, () => int(256))),
  };
}

/** The numbers alone, in [0, 1). */
export function randomOf(seed: number): () => number {
  return seeded(seed).next;
}

/** `TOOLWAY_SEED` repeats a run. */
export function runSeed(): number {
  return Number(process.env["TOOLWAY_SEED"] ?? Math.floor(Math.random() * 2 ** 32));
}
