// How long the runs are: short in `npm test`, and with the full figures in `npm run faults`.

export const full = process.env["TOOLWAY_FULL"] === "1";

/** The figure that a run takes. Both must be able to fail; only the full one is quoted. */
export function figure<T>(short: T, whole: T): T {
  return full ? whole : short;
}

/** `npm run test:unit`, which ends in seconds, sets it (vitest.config.ts). */
const isQuick = process.env["TOOLWAY_QUICK"] === "1";

/** What a quick run leaves of a thousand histories still meets most of what happens in them. */
const QUICK_PART = 10;

/** The figure of `npm run test:unit` where it is not the usual one. */
export function quicker<T>(usual: T, quick: T): T {
  return isQuick ? quick : usual;
}

/** How many random histories a run makes; in `npm run test:unit` a tenth of them. */
export function histories(usual: number, whole: number = usual): number {
  return isQuick ? Math.ceil(usual / QUICK_PART) : figure(usual, whole);
}
