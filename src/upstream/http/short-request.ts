// One short HTTP request by a requester of its own: what logins need of authorization servers. Its answer is held whole, within
// bounds, and a requester that leads elsewhere is not followed.

import type { HttpTarget } from "../../contracts/server-spec.js";
import type { ShortAnswer, ShortRequest } from "../../runtime/network/short-request.js";
import { poolRequestersBy } from "./pool-requester.js";
import type { OpenRequester, ResponseHeaders } from "./requester.js";

/** `server`: whose login it is; requests go the way that its own go. Rejects where there is no whole answer. */
export async function requestShortly(
  server: HttpTarget,
  { url, method, headers, body, lookup, maxBytes, signal }: ShortRequest,
  openRequester: OpenRequester,
): Promise<ShortAnswer> {
  const { via, socketPath } = server;
  const isOwn = new URL(server.url).origin === url.origin;
  const open = via === undefined ? poolRequestersBy(lookup) : openRequester;
  const target: HttpTarget = {
    kind: "http",
    url: url.href,
    headers: {},
    via,
    socketPath: isOwn ? socketPath : undefined,
  };
  signal.throwIfAborted();
  const requester = await open(target, url, signal);
  let onAbort = () => {};
  try {
    // It may have been given up while the requester was opened.
    signal.throwIfAborted();
    return await new Promise<ShortAnswer>((resolve, reject) => {
      const chunks: Buffer[] = [];
      let head: { status: number; headers: ResponseHeaders } | undefined;
      let bytes = 0;
      const fail = (error: Error): void => {
        exchange.abort();
        reject(error);
      };
      const path = url.pathname + url.search;
      const exchange = requester.dispatch(
        { method, pool: "calls", path, headers, ...(body === undefined ? {} : { body }) },
        {
          onHead: (status, found) => {
            head = { status, headers: found };
          },
          onData: (chunk) => {
            bytes += chunk.length;
            if (bytes > maxBytes) fail(new Error(`its answer has more than ${maxBytes} bytes`));
            else chunks.push(chunk);
          },
          onEnd: () => {
            if (head === undefined) reject(new Error("it gave no answer"));
            else resolve({ ...head, body: Buffer.concat(chunks, bytes) });
          },
          onError: (error) => reject(error),
        },
      );
      onAbort = () => fail(signal.reason as Error);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  } finally {
    signal.removeEventListener("abort", onAbort);
    await requester.destroy();
  }
}
