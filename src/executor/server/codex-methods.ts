// What a client may ask besides HTTP. Codex asks it of every environment and waits for the answers, so it gets some; it
// can do without what is refused here.

import { RpcCode, type RpcFailure } from "../wire/protocol.js";

const ENVIRONMENT_INFO = "environment/info";
const FILE_METADATA = "fs/getMetadata";

/** The exec-server's code for a file that is not there: Codex looks for its notes, and goes on. */
const FILE_NOT_FOUND = -32_004;

/**
 * The environment as Codex is told of it, in the answer to `initialize` too. Without a shell Codex does not start
 * servers that have a bearer token; nothing is ever run in it. It has no capabilities: our environment variables are
 * not for clients to read.
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
