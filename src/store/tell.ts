// Tells whoever watches a map. One that throws is not told apart from a bug: it is shown, and ends neither the process nor the
// telling of the others, which would miss what is never told again.

import { stackOf } from "../runtime/expected-error.js";

export function tellListener(map: string, tell: () => void): void {
  try {
    tell();
  } catch (error) {
    process.emitWarning(`Somebody who watches "${map}" failed: ${stackOf(error)}`);
  }
}
