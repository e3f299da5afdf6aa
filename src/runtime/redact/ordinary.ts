// What a value looks like, and what a name says of it: ordinary words, numbers, hosts and paths on one side, what only
// a machine would make up on the other.

/** Names of variables, options, headers and members whose values are credentials by custom. */
export const SECRET_NAME =
  /token|secret|key(?!word|board|space|stroke)|passw|passphrase|pwd|credential|auth(?!ors?(?:$|[^a-z]))|dsn|cookie|signature|(?:^|[-_.])(?:sig|pass|pat|jwt)(?:$|[-_.])/i;

/** Of these the names that say a credential and nothing else: a password may well be spelt like a host or a path. */
const CREDENTIAL_NAME =
  /token(?!iz)|secret|passw|passphrase|pwd|authorization|(?:api|access)[-_.]?key|(?:^|[-_.])(?:pass|pat|jwt)(?:$|[-_.])/i;
/** `DB_PASSWORD_FILE`, `TOKEN_URL`, `secretPath`: what they end in says that the value is where something is. */
const PLACE_NAME =
  /(?:file|filename|path|dir|directory|folder|url|uri|endpoint|host|hostname|server|address|addr|domain|issuer|audience|scope|store|socket|port|origin|proxy|location)s?$/i;
/** The shell's own variables, which are spelt like those for passwords. */
const WORKING_DIRECTORY = /^(?:OLD)?PWD$/;

/** Shorter values are seldom made by machines, and words of that length are many. */
const MIN_RANDOM_CHARACTERS = 16;

/** A part of letters that is longer is no word of any language that names things. */
const MAX_WORD_CHARACTERS = 24;

/** True for what no person chose: sixteen characters and more that are no words, numbers, hosts, paths or versions. */
export function looksRandom(value: string): boolean {
  if (value.length < MIN_RANDOM_CHARACTERS || /\s/.test(value)) return false;
  return !isPath(value) && !isWords(value);
}

/** A path that names its root, or the folder that it starts from. Base64 may begin with a slash too. */
export function isPath(value: string): boolean {
  const rest = /^(?:\.{1,2}|~|[A-Za-z]:)?[\\/]+(.*)$/s.exec(value)?.[1];
  return rest !== undefined && !/[\r\n]/.test(rest) && isWords(rest.split(/[\\/]/, 1)[0] ?? "");
}

/** Words, numbers, versions, dates, hosts, names of packages, and what is made of them. */
export function isWords(value: string): boolean {
  return value.split(/[^\p{L}\p{N}]+/u).every(isWord);
}

function isWord(part: string): boolean {
  // Names of one to five characters mix letters and digits as they like: "x86", "s3", "utf8", "h264".
  if (part.length <= 5 || /^\d+$/.test(part)) return part.length <= 20;
  if (/^\p{L}+$/u.test(part)) return isCased(part) && part.split(/(?<=\p{Ll})(?=\p{Lu})/u).every(isShort);
  // "python3", "server2024", "2024a", "v2beta1".
  return /^(?:\p{L}{2,16}\d{1,4}|v?\d{1,8}\p{L}{1,5}\d{0,3})$/u.test(part) && isCased(part);
}

function isShort(word: string): boolean {
  return word.length <= MAX_WORD_CHARACTERS;
}

/** In words, capitals begin a word or are an abbreviation; in random letters they are anywhere. */
function isCased(part: string): boolean {
  const changes = part.match(/\p{Ll}\p{Lu}/gu)?.length ?? 0;
  return changes * 5 <= part.length && !(/\p{Lu}{7}/u.test(part) && /\p{Ll}/u.test(part));
}

/** Values that say which of a few ways is meant; they are in every text, and nobody's secret. */
const TRIVIAL =
  /^(?:true|false|null|none|undefined|default|auto|always|never|required|optional|enabled|disabled|basic|bearer|oauth2?|apikey|api[-_]key|token|header|prompt|select)$/i;

export function isTrivial(value: string): boolean {
  return TRIVIAL.test(value);
}

/** A host with or without its port, in digits or in names. */
export function isHost(value: string): boolean {
  return /^(?:\[[\da-f:.]+\]|[\da-z-]+(?:\.[\da-z-]+)+|localhost)(?::\d{1,5})?$/i.test(value) && isWords(value);
}

export function isUrl(value: string): boolean {
  return /^[a-z][a-z\d+.-]*:\/\//i.test(value) && URL.canParse(value);
}

/**
 * True for a path, a host or an address under a name that leaves room for one. Under the name of a credential it is
 * none, however it is spelt: to hide a place costs a hint, to show a password costs the password.
 */
export function isPlaceUnder(name: string, value: string): boolean {
  if (WORKING_DIRECTORY.test(name)) return isPath(value);
  const isPossible = PLACE_NAME.test(name) || !CREDENTIAL_NAME.test(name);
  return isPossible && (isPath(value) || isHost(value) || isUrl(value));
}

export function isNumber(value: string): boolean {
  return /^[-+]?\d*\.?\d+(?:e[-+]?\d+)?$/i.test(value);
}
