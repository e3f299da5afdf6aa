// Answers that wait behind another of their connection, because requests were sent one behind the other. When the
// connection closes, Node tells the first answer alone; the others are told here, so that what they asked for ends too.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

const QUEUED = Symbol("queued answers");
/** Node itself reads no further while much waits to be answered, which bounds them. */
type WithQueued = Socket & { [QUEUED]?: Set<ServerResponse> };

/** Where Node keeps what was written before the answer had its socket. */
type WithOutput = ServerResponse & { readonly outputData?: unknown[] };

/** To be called for each request as it comes. Most are not behind another. */
export function closeWithConnection(req: IncomingMessage, res: ServerResponse): void {
  if (res.socket !== null) return;
  const queued = queuedOn(req.socket);
  queued.add(res);
  res.once("close", () => queued.delete(res));
}

function queuedOn(socket: WithQueued): Set<ServerResponse> {
  if (socket[QUEUED] !== undefined) return socket[QUEUED];
  const queued = new Set<ServerResponse>();
  socket[QUEUED] = queued;
  socket.once("close", () => {
    for (const res of queued) {
      // One whose turn had come is told by Node.
      if (res.socket !== null) continue;
      res.destroy();
      // A call that goes on although its agent has gone keeps the connection's objects, and Node keeps these by them.
      (res as WithOutput).outputData?.splice(0);
      res.emit("close");
    }
    queued.clear();
  });
  return queued;
}

/** Breaks the connection off. An answer that is not yet at the socket would do so only when its turn has come. */
export function cutConnection(res: ServerResponse): void {
  if (res.socket === null) res.req.socket.destroy();
  else res.destroy();
}
