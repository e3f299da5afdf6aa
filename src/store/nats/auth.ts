// How we prove to the engine who we are. Secrets are read at each dial, so that a new one is used without a restart.

import {
  type Auth,
  type Authenticator,
  credsAuthenticator,
  nkeyAuthenticator,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
} from "@nats-io/transport-node";
import type { EngineAuth, EngineSecret } from "../../contracts/settings.js";
import { messageOf } from "../../runtime/expected-error.js";
import { readTextFile } from "../../runtime/text-file.js";
import { EngineError } from "./engine-error.js";

/** A `.creds` file has about 1 kB; what is larger is another file. */
const MAX_SECRET_BYTES = 64 * 1024;

/** Throws an EngineError that says what to do where there is none. White space around it is not part of it. */
export function readSecret(secret: EngineSecret, what: string, env: NodeJS.ProcessEnv): string {
  if (secret.from === "env") {
    const value = env[secret.name]?.trim() ?? "";
    if (value !== "") return value;
    throw new EngineError("refused", `The variable ${secret.name} is not set: it has to hold ${what}.`);
  }
  let value: string;
  try {
    value = readTextFile(secret.path, MAX_SECRET_BYTES).trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason = code === "ENOENT" ? "does not exist" : `cannot be read (${code ?? String(error)})`;
    throw new EngineError("refused", `The file ${secret.path} ${reason}: it has to hold ${what}.`, { cause: error });
  }
  if (value !== "") return value;
  throw new EngineError("refused", `The file ${secret.path} is empty: it has to hold ${what}.`);
}

/**
 * Reads the secret once at once, and throws where that fails. Later it never throws, because the client would then close
 * the connection for good: it goes on with the last good answer, and `onProblem` is told.
 */
export function authenticatorOf(
  auth: EngineAuth,
  env: NodeJS.ProcessEnv,
  onProblem: (problem: string) => void,
): Authenticator {
  const make = makerOf(auth, env);
  // The nonce of a server that asks for none: enough to find a seed that is none.
  let last: Auth = make("nonce");
  return (nonce?: string) => {
    try {
      last = make(nonce);
    } catch (error) {
      onProblem(messageOf(error));
    }
    return last;
  };
}

function makerOf(auth: EngineAuth, env: NodeJS.ProcessEnv): (nonce?: string) => Auth {
  const bytes = (text: string) => new TextEncoder().encode(text);
  switch (auth.by) {
    case "token":
      return (nonce) => tokenAuthenticator(readSecret(auth.token, "the token of the engine", env))(nonce);
    case "password": {
      const { user, password } = auth;
      const what = "the password of the engine";
      return (nonce) => usernamePasswordAuthenticator(user, readSecret(password, what, env))(nonce);
    }
    case "nkey":
      return (nonce) => {
        const seed = readSecret(auth.seed, "the seed of an nkey", env);
        return understood(auth.seed, 'the seed of an nkey, which begins with "SU"', () =>
          nkeyAuthenticator(bytes(seed))(nonce),
        );
      };
    case "creds":
      return (nonce) => {
        const creds = readSecret(auth.creds, "what a .creds file holds", env);
        return understood(auth.creds, "what a .creds file holds: a JWT and its seed", () =>
          // The client finds no seed behind which no line ends.
          credsAuthenticator(bytes(`${creds}\n`))(nonce),
        );
      };
  }
}

/** The client's own errors quote nothing, and say nothing of where the secret came from. */
function understood<T>(secret: EngineSecret, what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const place = secret.from === "env" ? `The variable ${secret.name}` : `The file ${secret.path}`;
    throw new EngineError("refused", `${place} does not hold ${what}.`, { cause: error });
  }
}
