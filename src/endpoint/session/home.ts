// Where what a session holds in memory lives, of several gateways: at the one that made the session while that is there, and
// else at another that all of them agree upon without asking.

import { createHash } from "node:crypto";
import type { Homes } from "../../contracts/engine/homes.js";

/** `madeAt`: the gateway that a sealed id names; undefined where it names none. `key` tells sessions apart. */
export function homeOf(
  madeAt: string | undefined,
  key: string,
  homes: Pick<Homes, "self" | "gateways" | "gone">,
): string {
  const there = homes.gateways();
  if (madeAt !== undefined && there.includes(madeAt)) return madeAt;
  if (madeAt !== undefined) homes.gone(madeAt);
  let home = homes.self;
  let highest = "";
  for (const gateway of there) {
    // The same at every gateway, and when one more is gone, only what was there moves.
    const rank = createHash("sha256").update(`${gateway}\n${key}`).digest("hex");
    if (rank <= highest) continue;
    highest = rank;
    home = gateway;
  }
  return home;
}
