// How a pairing code is written and read: twelve characters of Crockford's base32, which has no letter that looks like a
// digit, in groups that people can type. With the broker's address before it, it is one word.

import { isLoopback, isLoopbackName } from "../../runtime/addresses.js";

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** Twelve of five bits each are 60. */
const CODE_CHARS = 12;
const GROUP = 4;

/** The bytes that a code is made of; three of eight bits of each are left out. */
export const CODE_BYTES = CODE_CHARS;

/** `ABCD-EFGH-JKMN`. */
export function codeText(random: Uint8Array): string {
  const letters = [...random.subarray(0, CODE_CHARS)].map((byte) => ALPHABET[byte & 31]).join("");
  return (letters.match(new RegExp(`.{${GROUP}}`, "g")) ?? []).join("-");
}

/** What somebody typed, as it was meant: O is 0, I and L are 1. Undefined where it is no code. */
export function readCode(text: string): string | undefined {
  const letters = text.toUpperCase().replace(/[\s-]/g, "").replaceAll("O", "0").replace(/[IL]/g, "1");
  return letters.length === CODE_CHARS && [...letters].every((letter) => ALPHABET.includes(letter))
    ? letters
    : undefined;
}

/** The broker's address and a code in one word: `127.0.0.1:7440/ABCD-EFGH-JKMN`, or `wss://broker.example.com/…`. */
export function pairWord(broker: string, code: string): string {
  const url = new URL(broker);
  const path = url.pathname.replace(/\/$/, "").replace(/\/mailboxes$/, "");
  // What would be taken for granted is left out.
  const isUsual = url.protocol === usualScheme(url.hostname);
  return `${isUsual ? "" : `${url.protocol}//`}${url.host}${path}/${code}`;
}

export interface ReadPairWord {
  /** Of the broker, as `--broker` takes it. */
  readonly broker: string;
  readonly code: string;
}

/** Undefined where it is no such word. */
export function readPairWord(text: string): ReadPairWord | undefined {
  const trimmed = text.trim();
  const at = trimmed.lastIndexOf("/");
  const code = at < 0 ? undefined : readCode(trimmed.slice(at + 1));
  if (code === undefined) return undefined;
  const named = /^([a-z]+):\/\/(.+)$/i.exec(trimmed.slice(0, at));
  const place = named?.[2] ?? trimmed.slice(0, at);
  try {
    const scheme = schemeOf(named?.[1]) ?? usualScheme(new URL(`ws://${place}`).hostname);
    const url = new URL(`${scheme}//${place}`);
    if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") return undefined;
    return { broker: url.href.replace(/\/$/, ""), code };
  } catch {
    return undefined;
  }
}

/** A token that crosses a network does so encrypted, unless the word says otherwise. */
function usualScheme(hostname: string): string {
  const name = hostname.replace(/^\[|\]$/g, "");
  return isLoopback(name) || isLoopbackName(name) ? "ws:" : "wss:";
}

/** Undefined: it is not said. Throws where it is none of a broker's. */
function schemeOf(named: string | undefined): string | undefined {
  if (named === undefined) return undefined;
  const scheme = SCHEMES.get(named.toLowerCase());
  if (scheme === undefined) throw new Error(`${named} is no scheme of a broker.`);
  return scheme;
}

const SCHEMES: ReadonlyMap<string, string> = new Map([
  ["ws", "ws:"],
  ["http", "ws:"],
  ["wss", "wss:"],
  ["https", "wss:"],
]);
