// Of several gateways one renews a login, and the others wait for what it gets: a refresh token is good once, and two that show
// it lose the login. A claim stands in a map that all of them read; one whose gateway died is taken over when it has stood
// still for longer than any renewal lasts, by the clock of whoever waits.

import type { SharedMap } from "../contracts/store.js";
import { sleep } from "../runtime/wait.js";

/** A renewal ends after 30 s, and is then written. */
const CLAIM_MS = 40_000;
/** What others get is in the map at once; a few looks a second cost nothing, and each renewal waits for few. */
const LOOK_MS = 100;

/** Who renews the login of a server, by its name. */
export interface RenewalClaim {
  readonly by: string;
}

export class RenewalClaims {
  readonly #map: SharedMap<RenewalClaim>;
  readonly #self: string;
  readonly #now: () => number;
  /** Since when a claim of another has stood there, by server: no more than there are logins. */
  readonly #seen = new Map<string, { readonly revision: number; readonly sinceMs: number }>();

  /** `self` tells this gateway from the others. */
  constructor(map: SharedMap<RenewalClaim>, self: string, now: () => number) {
    this.#map = map;
    this.#self = self;
    this.#now = now;
  }

  /** Runs `act` when no other gateway is at it. Rejects where the claim cannot be written: then nothing was done. */
  async hold<T>(server: string, act: () => Promise<T>): Promise<T> {
    while (!(await this.#take(server))) await sleep(LOOK_MS);
    try {
      return await act();
    } finally {
      // Where it cannot be taken back, the others wait for as long as they would for one of the dead.
      await this.#map.delete(server).catch(() => {});
    }
  }

  async #take(server: string): Promise<boolean> {
    const claim = { by: this.#self };
    const found = this.#map.read(server);
    if (found === undefined) return (await this.#map.create(server, claim)) !== undefined;
    const { value, revision } = found;
    const seen = this.#seen.get(server);
    if (seen?.revision !== revision) this.#seen.set(server, { revision, sinceMs: this.#now() });
    const isLeft = value.by === this.#self || (seen?.revision === revision && this.#now() - seen.sinceMs > CLAIM_MS);
    return isLeft && (await this.#map.update(server, claim, revision)) !== undefined;
  }
}
