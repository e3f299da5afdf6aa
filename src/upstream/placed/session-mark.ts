// Whose session a request is of that one gateway passes to another: a server that does not say which call makes it ask is answered
// by the one session that is calling, so sessions must be told apart where it runs. It stands last in the request, beside its
// `params`, and the server never sees it.

const NAME = "toolway/session";
const MARK = new RegExp(`,"${NAME}":"([^"\\\\]{1,1024})"\\}$`);
/** Where the mark is looked for. */
const MAX_CHARS = 1_100;

export function withSession(text: string, sessionKey: string): string {
  return `${text.slice(0, text.lastIndexOf("}"))},"${NAME}":"${encodeURIComponent(sessionKey)}"}`;
}

/** The request as it was, and whose it is. Undefined where nobody said that. */
export function takeSession(text: string): { readonly text: string; readonly sessionKey: string } | undefined {
  const found = MARK.exec(text.slice(-MAX_CHARS));
  if (found === null) return undefined;
  const [whole, sessionKey = ""] = found;
  return { text: `${text.slice(0, text.length - whole.length)}}`, sessionKey: decodeURIComponent(sessionKey) };
}

export function isSessionMark(member: string): boolean {
  return member === NAME;
}
