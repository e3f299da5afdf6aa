// The rules of `--allow`, read: a bad one is the user's to mend.

import { Destinations } from "../executor/destinations.js";
import { usageError } from "./errors.js";

export function destinationsOf(rules: readonly string[]): Destinations {
  try {
    return Destinations.parse(rules);
  } catch (error) {
    if (error instanceof Error && error.name === "RuleError") throw usageError(error.message);
    throw error;
  }
}
