// URLs as they may be shown, in messages, logs and status: without user, password, query and fragment, which may hold
// secrets, and without parts of the path that only a machine would make up; and the same for URLs inside of a text.

import { isWords, looksRandom, SECRET_NAME } from "./ordinary.js";

/** Stands in the place of what is not shown. */
export const REDACTED = "[redacted]";

export function safeUrl({ protocol, host, pathname }: URL): string {
  return `${protocol}//${host}${safePath(pathname)}`;
}

/** The same without a path that is only "/", for addresses that people give without one. */
export function safeAddress({ protocol, host, pathname }: URL): string {
  return `${protocol}//${host}${pathname === "/" ? "" : safePath(pathname)}`;
}

/** Some services put the token into the path: `/hooks/T024/xYz…`. */
function safePath(pathname: string): string {
  return pathname
    .split("/")
    .map((part) => (looksRandom(part) ? REDACTED : part))
    .join("/");
}

const URL_IN_TEXT = /\b[a-z][a-z\d+.-]{1,20}:\/\/[^\s"'<>`]+/gi;
/** What comes after the scheme's name in a header. Words after it are a sentence about the scheme. */
const CREDENTIALS_IN_TEXT = /\b(bearer|basic) +([\w.~+/=-]{8,})/gi;

/** Takes tokens out of URLs and of `Authorization` values that stand in a text, whoever's they are. */
export function redactShapes(text: string): string {
  let out = text;
  if (out.includes("://")) out = out.replace(URL_IN_TEXT, redactUrl);
  return out.replace(CREDENTIALS_IN_TEXT, (all, scheme: string, value: string) =>
    isWords(value) ? all : `${scheme} ${REDACTED}`,
  );
}

/** Works on text: a URL in an error message is often cut or wrapped, and would not parse. */
function redactUrl(url: string): string {
  // Files of this machine have no credentials, and their names may be hashes.
  if (/^file:/i.test(url)) return url;
  const [, scheme = "", rest = ""] = /^([^:]+:\/\/)(.*)$/s.exec(url) ?? [];
  const [, authority = "", path = "", tail = ""] = /^([^/?#]*)([^?#]*)(.*)$/s.exec(rest) ?? [];
  const query = tail.replace(/([?&#;])([^=&#;]*)=([^&#;]+)/g, (all, mark: string, name: string, value: string) =>
    value !== REDACTED && (SECRET_NAME.test(name) || looksRandom(value)) ? `${mark}${name}=${REDACTED}` : all,
  );
  return scheme + redactUser(authority) + safePath(path) + query;
}

function redactUser(authority: string): string {
  const at = authority.lastIndexOf("@");
  if (at < 0) return authority;
  const user = authority.slice(0, at);
  // A name alone, as in ssh://git@host, is no credential.
  return !user.includes(":") && !looksRandom(user) ? authority : `${REDACTED}${authority.slice(at)}`;
}
