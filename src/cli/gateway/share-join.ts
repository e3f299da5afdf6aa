// The other end of a gateway's share socket: says what to share where, passes on what it hears, and ends with its signal.

import type { Duplex } from "node:stream";
import type { ShareLine } from "../../contracts/status.js";
import { LineSplitter } from "../../runtime/line-splitter.js";
import { MIB } from "../../runtime/sizes.js";
import type { ShareEnd, ShareOptions } from "./port.js";

/** A plan with all tools of a large gateway. */
const MAX_LINE_BYTES = 8 * MIB;

/** Resolves with "gone" where the gateway went away by itself. */
export function shareOn(socket: Duplex, options: ShareOptions): Promise<ShareEnd | "gone"> {
  const { broker, as, token, canAsk, signal, onLine } = options;
  let failed: string | undefined;
  const send = (line: object) => {
    if (!socket.writableEnded) socket.write(`${JSON.stringify(line)}\n`);
  };
  const answer = (id: number, said: string) => send({ id, answer: said });
  // Its other half stays open until the calls under way have ended.
  const stop = () => void socket.end();
  const take = (text: string) => {
    const line = JSON.parse(text) as ShareLine;
    onLine(line, answer);
    if (line.kind === "error") failed = line.message;
    else if (line.kind === "state" && line.state === "refused") {
      failed = `The broker refused: ${line.why}.`;
      stop();
    }
  };
  return new Promise((resolve) => {
    const lines = new LineSplitter({ onLine: (line) => take(line.toString()), onOversize: stop }, MAX_LINE_BYTES);
    socket.on("data", (chunk: Buffer) => lines.push(chunk));
    socket.on("error", () => socket.destroy());
    socket.once("end", () => socket.end());
    socket.once("close", () => {
      signal.removeEventListener("abort", stop);
      resolve(failed !== undefined ? { why: failed } : signal.aborted ? "stopped" : "gone");
    });
    signal.addEventListener("abort", stop, { once: true });
    send({ broker, as, token, canAsk });
    if (signal.aborted) stop();
  });
}
