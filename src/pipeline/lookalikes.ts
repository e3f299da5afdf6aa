// Methods that are nearly one we know. What we do not know is passed on to a server as it is, judged by nobody but for the
// server as a whole; a careless server must not read a call of a tool in it.

const KNOWN = [
  "initialize",
  "tools/list",
  "tools/call",
  "prompts/list",
  "prompts/get",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "resources/subscribe",
  "resources/unsubscribe",
  "completion/complete",
  "logging/setLevel",
  "tasks/list",
  "tasks/get",
  "tasks/result",
  "tasks/update",
  "tasks/cancel",
];

/** A longer one is nobody's, and may be one of these with blanks around it: it is not looked into, and reaches no server. */
const MAX_CHARACTERS = 256;

const KNOWN_LETTERS: ReadonlySet<string> = new Set(KNOWN.map(lettersOf));

/** True for `Tools/Call`, `tools/call `, `tools.call` and the like. To be asked of methods that are not known. */
export function looksKnown(method: string): boolean {
  return method.length > MAX_CHARACTERS || KNOWN_LETTERS.has(lettersOf(method));
}

/** What is left of a method for a reader that is as careless as can be: its letters, small. */
function lettersOf(method: string): string {
  return method
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[^a-z]/g, "");
}
