// The first line of a stream between gateways, which says what the rest of it is; what comes behind it stays in the stream, which
// is paused.

import { Buffer } from "node:buffer";
import type { Duplex } from "node:stream";
import { KIB } from "../../runtime/sizes.js";

/** A name and a hash, or a sentence. */
const MAX_BYTES = 16 * KIB;
const LF = 0x0a;

/** Rejects where the stream ends before, or says too much, or `signal` fires. */
export async function firstLine<T>(stream: Duplex, signal: AbortSignal): Promise<T> {
  let end = () => {};
  try {
    const line = await new Promise<Buffer>((resolve, reject) => {
      let seen = Buffer.alloc(0);
      const onData = (chunk: Buffer) => {
        seen = Buffer.concat([seen, chunk]);
        const at = seen.indexOf(LF);
        if (at < 0 && seen.length <= MAX_BYTES) return;
        stream.pause();
        stream.off("data", onData);
        if (at < 0 || at > MAX_BYTES) return reject(new Error("The first line is too long."));
        if (at + 1 < seen.length) stream.unshift(seen.subarray(at + 1));
        resolve(seen.subarray(0, at));
      };
      const onEnd = () => reject(new Error("It ended before it had said anything."));
      const onAbort = () => reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      stream.on("data", onData);
      stream.on("end", onEnd);
      stream.on("close", onEnd);
      stream.on("error", reject);
      end = () => {
        signal.removeEventListener("abort", onAbort);
        stream.off("data", onData).off("end", onEnd).off("close", onEnd).off("error", reject);
      };
      if (signal.aborted) onAbort();
    });
    return JSON.parse(line.toString()) as T;
  } finally {
    end();
  }
}
