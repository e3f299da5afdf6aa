// What a call is answered with that its caller took back.

import { Fault } from "../../protocol/errors.js";

/** `neverLeft`: nobody who acts on it has had it, and nobody will. */
export function takenBack(reason: string | undefined, neverLeft: boolean): Fault {
  return new Fault("cancelled", reason ?? "Cancelled.", neverLeft ? { wire: { left: false } } : {});
}
