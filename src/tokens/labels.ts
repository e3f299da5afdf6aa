// What an id, a role, a name and a recipient of a token may be, and what is said of one that may not.

import { EXECUTOR_ROLE, SHARER_ROLE } from "../contracts/settings.js";
import { CodedError } from "../runtime/expected-error.js";
import { visible } from "../runtime/visible.js";

/** Ids and roles appear in logs, metrics and headers. */
const MAX_LABEL_CHARS = 128;
/**
 * Of an id that sends to mailboxes: a gateway that uses it has an inbox whose address is the id and 21 characters more, and an
 * address has 128 at most.
 */
export const MAX_SENDER_ID_CHARS = MAX_LABEL_CHARS - 21;
/** Names that one token is good for; one machine seldom serves two. */
const MAX_NAMES = 32;
/** The roles whose tokens are good for names: their holders dial in. */
export const ROLES_WITH_NAMES: readonly string[] = [EXECUTOR_ROLE];
/** Mailboxes that one token may send to by name; whoever needs more may send to any. */
const MAX_RECIPIENTS = 256;

type TokenErrorCode = "exists" | "not-found" | "invalid" | "weak" | "limit" | "busy";

export class TokenError extends CodedError<TokenErrorCode> {
  override readonly name = "TokenError";
}

export function checkNames(role: string, names: readonly string[]): void {
  if (!ROLES_WITH_NAMES.includes(role)) {
    const roles = ROLES_WITH_NAMES.map((one) => `"${one}"`).join(" or ");
    throw new TokenError("invalid", `Only a token of the role ${roles} is good for names; this one's is "${role}".`);
  }
  if (names.length === 0) throw new TokenError("invalid", "The token would be good for no name at all.");
  if (names.length > MAX_NAMES) throw new TokenError("limit", `A token is good for ${MAX_NAMES} names at most.`);
  for (const name of names) checkName(name);
}

export function checkSender(id: string, role: string, maySendTo: readonly string[] | "any"): void {
  const characters = [...id].length;
  if (characters > MAX_SENDER_ID_CHARS) {
    const why = `may have ${MAX_SENDER_ID_CHARS} characters, not ${characters}: its inbox is called by the id and 21 more.`;
    throw new TokenError("invalid", `The id of a token that sends to mailboxes ${why}`);
  }
  if (role === SHARER_ROLE) {
    throw new TokenError("invalid", `A token of the role "${SHARER_ROLE}" sends to nobody but those who ask it.`);
  }
  if (maySendTo === "any") return;
  if (maySendTo.length === 0) throw new TokenError("invalid", "The token would send to no mailbox at all.");
  if (maySendTo.length > MAX_RECIPIENTS) {
    throw new TokenError("limit", `A token sends to ${MAX_RECIPIENTS} mailboxes by name at most; else to any.`);
  }
  for (const id of maySendTo) checkLabel("recipient", id);
}

export function checkLabel(what: "id" | "role" | "name" | "recipient", text: string): void {
  // As people count them: what UTF-16 writes in two is one.
  const characters = text.length > MAX_LABEL_CHARS ? [...text].length : text.length;
  const wrong =
    text.trim() === ""
      ? "must not be empty"
      : characters > MAX_LABEL_CHARS
        ? `may have ${MAX_LABEL_CHARS} characters, not ${characters}`
        : text !== text.trim()
          ? `must not begin or end with a space: ${JSON.stringify(text)} is not ${JSON.stringify(text.trim())}`
          : visible(text) !== text
            ? `must not contain control or other hidden characters: "${visible(text)}"`
            : undefined;
  if (wrong !== undefined) throw new TokenError("invalid", `The ${what} of a token ${wrong}.`);
}

/** A name is compared whole: what looks like a pattern would be thought to match more. */
export function checkName(name: string): void {
  checkLabel("name", name);
  const odd = [...name].find((character) => !/[\p{L}\p{M}\p{N} ._@+:-]/u.test(character));
  if (odd === undefined) return;
  const message = `The name ${JSON.stringify(name)} has ${JSON.stringify(odd)} in it: the names that a token is good for are made of letters, digits, ".", "_", "-", "@", "+", ":" and spaces. There are no patterns: name each executor.`;
  throw new TokenError("invalid", message);
}
