// Times as a person types them: 30s, 10m, 2h.

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/** In milliseconds; undefined for what is no such time, or nothing. */
export function durationMs(text: string): number | undefined {
  const [, count, unit = ""] = /^(\d{1,5})([smh])$/.exec(text) ?? [];
  const ms = Number(count) * (UNITS[unit] ?? Number.NaN);
  return ms > 0 ? ms : undefined;
}
