// What is said of a marked state: where it went, and what to do.

import { ExpectedError } from "../../runtime/expected-error.js";
import type { StateMark } from "./mark.js";

export class StateMarkedError extends ExpectedError {
  override readonly name = "StateMarkedError";
  override readonly kind = "failed";
}

export function refusalOf({ state, at, self, other }: StateMark): string {
  const again =
    "Run the same move again, with the state directory that it began with (toolway state move --to …): it goes on where it was; or " +
    "give it up with `toolway state unmark`.";
  const when = new Date(at).toISOString().slice(0, 16).replace("T", " ");
  switch (state) {
    case "moved":
      return (
        `What was kept in ${self} was moved to ${other} (${when} UTC), and nothing is started on it any more: what is queued ` +
        "here would be sent a second time. Run gateways there; or, to use what is here again, `toolway state unmark`."
      );
    case "arriving":
      return `${self} has a part of what is moved into it from ${other} (begun ${when} UTC). ${again}`;
    default:
      return `${self} is being moved to ${other} (begun ${when} UTC). ${again}`;
  }
}
