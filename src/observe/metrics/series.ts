// Counters and histograms by labels, within a bound. Plain arrays and maps: an observation costs tens of nanoseconds.
// It has no clock, and knows neither calls nor how it is written down.

/** Undefined labels are absent. In the order in which they are written. */
export type Labels = readonly (readonly [name: string, value: string | undefined])[];

/** Past this, what is new is counted under labels that say so: a page of metrics stays a page. */
const MAX_SETS = 1_000;

/** A new set of labels for which there was no room is counted as this. */
export const OTHER = "_other";

/** Those of OpenTelemetry's convention for MCP, in seconds, with finer ones before them: a local call takes 1 ms. */
export const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

interface LabelledValue<T> {
  readonly labels: Labels;
  readonly value: T;
}

/** The values of one metric, one for each set of labels. */
class Sets<T> {
  readonly #sets = new Map<string, LabelledValue<T>>();
  readonly #make: (labels: Labels) => T;
  readonly #maxSets: number;
  /** Observations that found no room for labels of their own. */
  folded = 0;

  constructor(make: (labels: Labels) => T, maxSets: number) {
    this.#make = make;
    this.#maxSets = maxSets;
  }

  /** Whether these have a value of their own, or can still have one. Who asks may keep what of() then gives. */
  hasRoom(labels: Labels): boolean {
    return this.#sets.size < this.#maxSets || this.#sets.has(keyOf(labels));
  }

  of(labels: Labels): T {
    const key = keyOf(labels);
    const known = this.#sets.get(key);
    if (known !== undefined) return known.value;
    if (this.#sets.size < this.#maxSets) return this.#add(key, labels);
    this.folded++;
    const folded: Labels = labels.map(([name, value]) => [name, value === undefined ? undefined : OTHER]);
    const foldedKey = keyOf(folded);
    // One for each form that labels can have: there are few.
    return this.#sets.get(foldedKey)?.value ?? this.#add(foldedKey, folded);
  }

  #add(key: string, labels: Labels): T {
    const value = this.#make(labels);
    this.#sets.set(key, { labels, value });
    return value;
  }

  all(): IterableIterator<LabelledValue<T>> {
    return this.#sets.values();
  }
}

/** No value has the separator: control characters are made visible where labels are made. */
function keyOf(labels: Labels): string {
  let key = "";
  for (const [, value] of labels) key += `${value ?? ""}\0`;
  return key;
}

export class Counter {
  readonly name: string;
  readonly help: string;
  readonly #sets: Sets<{ count: number }>;

  constructor(name: string, help: string, maxSets = MAX_SETS) {
    this.name = name;
    this.help = help;
    this.#sets = new Sets(() => ({ count: 0 }), maxSets);
  }

  add(labels: Labels, count = 1): void {
    this.#sets.of(labels).count += count;
  }

  /** The count of these labels, for who adds to it often. Undefined where there is no room: add() folds. */
  own(labels: Labels): { count: number } | undefined {
    return this.#sets.hasRoom(labels) ? this.#sets.of(labels) : undefined;
  }

  get folded(): number {
    return this.#sets.folded;
  }

  *values(): Generator<readonly [Labels, number]> {
    for (const { labels, value } of this.#sets.all()) yield [labels, value.count];
  }
}

/** How many observations were at most as large as each bound, their sum, and how many there were. */
export class Distribution {
  /** Each bound's own, and one for what is above all of them. */
  readonly counts: number[];
  sum = 0;
  /** Is told of each; undefined where nobody else keeps them. */
  tell: ((value: number) => void) | undefined;
  readonly #bounds: readonly number[];

  constructor(bounds: readonly number[], tell?: (value: number) => void) {
    this.tell = tell;
    this.#bounds = bounds;
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  add(value: number): void {
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at++;
    this.counts[at] = (this.counts[at] as number) + 1;
    this.sum += value;
    this.tell?.(value);
  }
}

export class Histogram {
  readonly name: string;
  readonly help: string;
  readonly bounds: readonly number[];
  readonly #sets: Sets<Distribution>;
  #teller: ((labels: Labels) => (value: number) => void) | undefined;

  constructor(name: string, help: string, bounds: readonly number[], maxSets = MAX_SETS) {
    this.name = name;
    this.help = help;
    this.bounds = bounds;
    this.#sets = new Sets((labels) => new Distribution(bounds, this.#teller?.(labels)), maxSets);
  }

  /** Who else is told of each observation, by its labels. */
  tell(teller: (labels: Labels) => (value: number) => void): void {
    this.#teller = teller;
    for (const { labels, value } of this.#sets.all()) value.tell = teller(labels);
  }

  observe(labels: Labels, value: number): void {
    this.#sets.of(labels).add(value);
  }

  /** The values of these labels, for who adds to them often. Undefined where there is no room: observe() folds. */
  own(labels: Labels): Distribution | undefined {
    return this.#sets.hasRoom(labels) ? this.#sets.of(labels) : undefined;
  }

  get folded(): number {
    return this.#sets.folded;
  }

  *values(): Generator<readonly [Labels, Distribution]> {
    for (const { labels, value } of this.#sets.all()) yield [labels, value];
  }
}

/** What is so at the moment of asking. */
export interface Gauge {
  readonly name: string;
  readonly help: string;
  /** A counter that somebody else keeps, where it only grows. */
  readonly kind?: "counter";
  readonly values: readonly (readonly [Labels, number])[];
}

/** One that has no labels. */
export function gauge(name: string, help: string, value: number): Gauge {
  return { name, help, values: [[[], value]] };
}
