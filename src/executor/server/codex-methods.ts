// What a client may ask besides HTTP: Codex does, of every environment. It gets an answer, for it waits for one; what
// is refused here it lives with.

import { RpcCode, type RpcFailure } from "../wire/protocol.js";

const ENVIRONMENT_INFO = "environment/info";
const FILE_METADATA = "fs/getMetadata";

/** The exec-server's code for a file that is not there: Codex looks for its notes, and goes on. */
const FILE_NOT_FOUND = -32_004;

/**
 * In the answer to `initialize`, too. Without a shell in it Codex does not start servers that have a bearer token;
 * nothing is ever run in it. No capabilities: header values from our environment variables are not for clients to read.
 */
export const ENVIRONMENT = { shell: { name: "sh", path: "/bin/sh" }, capabilities: {} };

/** The answer to a request that is neither `initialize` nor `http/request`. */
export function answerOther(method: string): { readonly result: unknown } | { readonly error: RpcFailure } {
  if (method === ENVIRONMENT_INFO) return { result: ENVIRONMENT };
  if (method === FILE_METADATA) {
    return { error: { code: FILE_NOT_FOUND, message: "No such file or directory: this executor has no files" } };
  }
  const message = `this executor does HTTP requests only: it does not implement \`${method.slice(0, 80)}\``;
  return { error: { code: RpcCode.unknownMethod, message } };
}
