// A login, from the person's side: the address that they open, and what comes back of it, by the browser or by hand.

import type { CredentialStatus } from "../../contracts/status.js";
import { type Callback, listenForCallback, readPasted } from "../../credentials/callback.js";
import type { LoginAnswer } from "../../credentials/login-source.js";
import { isObject } from "../../protocol/jsonrpc.js";
import { messageOf } from "../../runtime/expected-error.js";
import { within } from "../../runtime/wait.js";
import { UserError } from "../line/errors.js";
import { type Io, note } from "../line/io.js";
import { openBrowser } from "./browser.js";

/** As long as the gateway waits for it. */
const LOGIN_MS = 5 * 60_000;

/** What a login needs of the gateway. */
interface LoginClient {
  get(path: string, signal: AbortSignal): Promise<unknown>;
  post(path: string, body: object, signal: AbortSignal): Promise<unknown>;
}

interface LoginInput {
  readonly server: string;
  readonly noBrowser: boolean;
}

/** Resolves when the gateway has the login. */
export async function logIn(client: LoginClient, input: LoginInput, io: Io): Promise<CredentialStatus | undefined> {
  const at = `/servers/${encodeURIComponent(input.server)}`;
  const port = numberIn(await client.get(`${at}/login`, io.signal), "redirectPort");
  const callback = await listenForCallback(port).catch((error: NodeJS.ErrnoException) => {
    throw new UserError(`The port ${port ?? 0} on 127.0.0.1 cannot be listened on: ${error.code ?? error.message}.`, {
      hint: 'End what uses it, or change "redirectPort" in the config.',
    });
  });
  try {
    return await logInBy(callback, client, at, input, io);
  } finally {
    callback.close();
  }
}

async function logInBy(
  callback: Callback,
  client: LoginClient,
  at: string,
  { noBrowser }: LoginInput,
  io: Io,
): Promise<CredentialStatus | undefined> {
  const begun = await client.post(`${at}/login`, { redirectUri: callback.redirectUri }, io.signal);
  const { address, state } = begun as { readonly address: string; readonly state: string };
  const isOpen = !noBrowser && (await openBrowser(address, io.env));
  note(io, isOpen ? "The browser has the login. If it does not show, open:" : "Open this address to log in:");
  // Whatever reads the output may open it, so it is alone on its line.
  note(io, address);
  const answer = await brought(callback, state, io);
  const done = await client.post(`${at}/login/finish`, answer, io.signal).catch((error: unknown) => {
    callback.tell(messageOf(error));
    throw error;
  });
  callback.tell(undefined);
  return isObject(done) ? (done["credential"] as CredentialStatus | undefined) : undefined;
}

/** By the browser, or by a person who pastes what the browser of another machine shows. */
async function brought(callback: Callback, state: string, io: Io): Promise<LoginAnswer> {
  const over = new AbortController();
  const ends = AbortSignal.any([within(LOGIN_MS, io.signal), over.signal]);
  if (io.isErrTTY) note(io, "Waiting for it to come back. Or paste the address that the browser ends at:");
  const pasted = new Promise<LoginAnswer>((resolve) => {
    let text = "";
    const take = (chunk: Buffer | string): void => {
      // Addresses are shorter; what is longer is not one.
      text = (text + chunk.toString()).slice(-32_768);
      const end = text.lastIndexOf("\n");
      const answer = end < 0 ? undefined : readPasted(text.slice(0, end).split("\n").at(-1) ?? "", state);
      if (answer !== undefined) resolve(answer);
    };
    io.stdin.on("data", take);
    ends.addEventListener("abort", () => {
      io.stdin.off("data", take);
      io.stdin.pause();
    });
  });
  const ended = new Promise<never>((_, reject) => {
    ends.addEventListener("abort", () => {
      if (io.signal.aborted) reject(io.signal.reason as Error);
      else reject(new UserError("Nobody logged in within five minutes.", { hint: "Begin again when you are ready." }));
    });
  });
  ended.catch(() => {});
  try {
    return await Promise.race([callback.answerTo(state), pasted, ended]);
  } finally {
    over.abort();
  }
}

function numberIn(answer: unknown, key: string): number | undefined {
  const value = isObject(answer) ? answer[key] : undefined;
  return typeof value === "number" ? value : undefined;
}
