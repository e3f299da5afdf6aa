// A request that belongs at another gateway goes there as it came, over a stream of the engine on which that gateway's
// endpoint speaks HTTP, and its answer comes back byte for byte. What is passed on once is not passed on again.

import { type IncomingMessage, request, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Homes } from "../../contracts/engine/homes.js";
import { PeerError } from "../../contracts/engine/peers.js";
import { CLOSING } from "../../protocol/errors.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import { OF_CONNECTION } from "../../runtime/network/headers.js";
import { ENDPOINT_LIMITS } from "../session/limits.js";
import { refuse } from "./write-reply.js";

/** Each of the two connections has its own: Node throws at a trailer where the length is told. So has each answer its date. */
const NOT_PASSED: ReadonlySet<string> = new Set([...OF_CONNECTION, "date"]);

const LOST =
  "The gateway that has this session or call was lost before it had answered: it is unknown what became of the request.";

const FAILED = "The request could not be passed to the gateway that has this session or call. Send it anew.";

/** `nobody` is called where that gateway is not there, and nothing was sent. `text` is the body, where there is one. */
export function passOn(
  homes: Homes,
  gateway: string,
  req: IncomingMessage,
  res: ServerResponse,
  text: string | undefined,
  nobody: () => void,
): void {
  homes
    .connect(gateway)
    .then(
      (stream) => {
        if (res.destroyed) stream.destroy();
        else exchange(stream, req, res, text);
      },
      (error: unknown) => {
        // Too much is under way here: that says nothing of the other.
        if (!(error instanceof PeerError && error.code === "busy")) homes.gone(gateway);
        // Whoever has gone meanwhile is served by nobody: nothing would tell that call that it is to end.
        if (!res.destroyed) nobody();
      },
    )
    // What is thrown here is caught by nobody else, and would end the process.
    .catch(() => {
      if (res.headersSent) res.destroy();
      else refuse(res, 500, ErrorCode.internal, FAILED);
    });
}

function exchange(stream: Duplex, req: IncomingMessage, res: ServerResponse, text: string | undefined): void {
  const passed = asked(stream, req, text);
  // Whoever asked has gone: so has what was asked for them.
  res.on("close", () => stream.destroy());
  passed.on("response", (answer) => {
    const headers = ownHeaders(answer.rawHeaders);
    const length = answer.headers["content-length"];
    res.writeHead(answer.statusCode ?? 502, length === undefined ? headers : [...headers, "Content-Length", length]);
    res.flushHeaders();
    // While more is to come, the gateway that writes it sees whether it is read.
    answer.on("end", () => {
      if (res.writableLength > 0) res.setTimeout(ENDPOINT_LIMITS.stallMs);
    });
    answer.pipe(res);
    // An answer that is cut off is cut off here too, and not ended as if it were whole.
    answer.on("error", () => res.destroy());
  });
  passed.on("error", () => {
    if (res.headersSent) res.destroy();
    else refuse(res, 502, CLOSING, LOST);
  });
}

/** The same to another gateway, whose answer the agent is not shown. Resolves with whether it took what it was told. */
export async function tellToo(homes: Homes, gateway: string, req: IncomingMessage, text: string): Promise<boolean> {
  try {
    const stream = await homes.connect(gateway);
    return await new Promise((resolve) => {
      const passed = asked(stream, req, text);
      passed.on("response", (answer) => {
        answer.resume();
        resolve(answer.statusCode === 202);
      });
      passed.on("error", () => {
        stream.destroy();
        resolve(false);
      });
    });
  } catch {
    return false;
  }
}

function asked(stream: Duplex, req: IncomingMessage, text: string | undefined) {
  const body = text === undefined ? undefined : Buffer.from(text);
  const headers = ownHeaders(req.rawHeaders);
  if (body !== undefined) headers.push("Content-Length", String(body.length));
  stream.on("error", () => {});
  try {
    const passed = request({ createConnection: () => stream, method: req.method, path: req.url, headers });
    passed.end(body);
    return passed;
  } catch (error) {
    stream.destroy();
    throw error;
  }
}

/** Names and values in turn, as they came. */
function ownHeaders(raw: readonly string[]): string[] {
  const headers: string[] = [];
  for (let n = 0; n + 1 < raw.length; n += 2) {
    const [name = "", value = ""] = [raw[n], raw[n + 1]];
    if (!NOT_PASSED.has(name.toLowerCase())) headers.push(name, value);
  }
  return headers;
}
