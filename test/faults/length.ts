// How long the runs are: short in `npm test`, and with the full figures in `npm run faults`.

export const full = process.env["TOOLWAY_FULL"] === "1";

/** The figure that a run takes. Both must be able to fail; only the full one is quoted. */
export function figure<T>(short: T, whole: T): T {
  return full ? whole : short;
}
