// Where the browser comes back to after a login: one listener on 127.0.0.1, for as long as the login may take. It takes
// one answer, the one to its own question, and its page says what came of that.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { visible } from "../runtime/visible.js";
import { sentence } from "../runtime/words/sentence.js";
import type { LoginAnswer } from "./login-source.js";

export interface Callback {
  readonly redirectUri: string;
  /** Resolves with the answer to the login of this state; others are turned away. */
  answerTo(state: string): Promise<LoginAnswer>;
  /** Says on the page that waits there what became of the login: why it failed, or undefined where it did not. */
  tell(failure: string | undefined): void;
  close(): void;
}

const PATH = "/callback";
/** A browser sends some hundred bytes; whoever is slower than this is none. */
const REQUEST_MS = 5_000;

/** `port` is undefined where any will do. Rejects with the system's own error where it is taken. */
export async function listenForCallback(port: number | undefined): Promise<Callback> {
  let expected: string | undefined;
  let waiting: ServerResponse | undefined;
  let settle: (answer: LoginAnswer) => void = () => {};
  const answered = new Promise<LoginAnswer>((resolve) => {
    settle = resolve;
  });
  const server = createServer((request, response) => {
    const own = `127.0.0.1:${(server.address() as AddressInfo | null)?.port ?? 0}`;
    const answer = request.headers.host === own ? readAnswer(request) : undefined;
    if (answer === undefined) return say(response, 404, "Nothing is here.");
    // Whatever page sent the browser here: it did not begin this login.
    if (expected === undefined || answer.state !== expected) {
      return say(response, 400, "This is not the answer to the login that waits here.");
    }
    expected = undefined;
    waiting = response;
    settle(answer);
  });
  const tell = (text: string): void => {
    if (waiting !== undefined) say(waiting, 200, `${text} You can close this page.`);
    waiting = undefined;
  };
  server.headersTimeout = REQUEST_MS;
  server.requestTimeout = REQUEST_MS;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port ?? 0, "127.0.0.1", resolve);
  });
  return {
    redirectUri: `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`,
    answerTo(state) {
      expected = state;
      return answered;
    },
    tell: (failure) => tell(failure === undefined ? "Toolway has what it needs." : sentence(visible(failure))),
    close() {
      tell("Nobody waits for this login any more.");
      server.close();
      server.closeIdleConnections();
      // What was just answered leaves first.
      setTimeout(() => server.closeAllConnections(), 500).unref();
    },
  };
}

function readAnswer({ method, url }: IncomingMessage): LoginAnswer | undefined {
  if (method !== "GET" || url === undefined || !URL.canParse(url, "http://127.0.0.1")) return undefined;
  const { pathname, searchParams } = new URL(url, "http://127.0.0.1");
  return pathname === PATH ? answerIn(searchParams) : undefined;
}

/** What a person pasted: the whole address that the browser could not open, or the code alone. */
export function readPasted(line: string, state: string): LoginAnswer | undefined {
  const text = line.trim();
  if (text === "") return undefined;
  // A code may have a colon in it, as an address has after its scheme.
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) {
    return { state, code: text, iss: undefined, error: undefined };
  }
  return answerIn(new URL(text).searchParams);
}

function answerIn(query: URLSearchParams): LoginAnswer {
  const error = query.get("error");
  const description = query.get("error_description");
  return {
    state: query.get("state") ?? "",
    code: query.get("code") ?? undefined,
    iss: query.get("iss") ?? undefined,
    error: error === null ? undefined : description === null ? error : `${error}: ${description}`,
  };
}

function say(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'",
    "referrer-policy": "no-referrer",
    connection: "close",
  });
  response.end(`<!doctype html><title>Toolway</title><p>${escaped(text)}</p>\n`);
}

/** An authorization server's words may be in it: they are text, and no part of the page. */
function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
