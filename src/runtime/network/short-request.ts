// One short HTTP request and its whole answer, as whoever asks and whoever carries it both know them.

import type { LookupFunction } from "node:net";

export interface ShortRequest {
  readonly url: URL;
  readonly method: "GET" | "POST";
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body: string | undefined;
  /** Which addresses a name leads to, where that is judged here. Through an executor it is judged there. */
  readonly lookup: LookupFunction;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

export interface ShortAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}
