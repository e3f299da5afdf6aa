// Times as a person types them: 30s, 10m, 2h; and how long what is under way has when a gateway, a broker or an executor ends.

import { usageError } from "./errors.js";

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/** In milliseconds; undefined for what is no such time, or nothing. */
export function durationMs(text: string): number | undefined {
  const [, count, unit = ""] = /^(\d{1,5})([smh])$/.exec(text) ?? [];
  const ms = Number(count) * (UNITS[unit] ?? Number.NaN);
  return ms > 0 ? ms : undefined;
}

/** `--drain SECONDS`. */
export const drainOption = (description: string) => ({ drain: { value: "SECONDS", description } }) as const;

/** As the config's `drainMs` has it. */
const MAX_DRAIN_S = 3600;

/** Undefined where the option is not given: the config decides then, or the default. */
export function drainMsOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(seconds <= MAX_DRAIN_S)) throw usageError(`--drain ${text}: expected seconds, from 0 to ${MAX_DRAIN_S}.`);
  return Math.round(seconds * 1000);
}
