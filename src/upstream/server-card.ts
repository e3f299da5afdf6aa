// Reads a server's card: what it says of itself before anybody connects. Only `status` shows it; a card that cannot be
// read counts as none, and is never an error.

import { open } from "node:fs/promises";
import type { HttpTarget, ServerSpec } from "../contracts/server-spec.js";
import { Pieces } from "../protocol/event-stream.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import { openPoolRequester } from "./http/pool-requester.js";
import type { OpenRequester, Requester, RequestOptions } from "./http/requester.js";

/** Cards have a few kB. One is kept in memory and shown whole. */
const MAX_CARD_BYTES = 64 * 1024;

/** Nobody waits for it, and a server that is slow with it has none. */
const CARD_MS = 5_000;

/**
 * Reads it from where the entry says; otherwise an HTTP server is asked, beside its own address. It goes the way that
 * calls go.
 */
export async function readCard(
  { card, target }: ServerSpec,
  openRequester: OpenRequester = openPoolRequester,
): Promise<JsonObject | undefined> {
  const own = target.kind === "stdio" || target.kind === "mailbox" ? undefined : target;
  // The server's own headers go to the server's own address, and nowhere else.
  const elsewhere = { kind: "http", url: "", headers: {}, via: own?.via } as const;
  try {
    if (card === undefined)
      return own === undefined ? undefined : await fetched(besideUrl(own.url), own, openRequester);
    return /^https?:\/\//.test(card) ? await fetched(card, elsewhere, openRequester) : parsed(await headOf(card));
  } catch {
    return undefined;
  }
}

function besideUrl(url: string): string {
  const at = new URL(url);
  at.pathname = `${at.pathname.replace(/\/$/, "")}/server-card`;
  return at.href;
}

async function fetched(
  address: string,
  target: HttpTarget,
  openRequester: OpenRequester,
): Promise<JsonObject | undefined> {
  const url = new URL(address);
  const signal = AbortSignal.timeout(CARD_MS);
  const requester = await openRequester(target, url, signal);
  const headers = Object.entries({ ...target.headers, accept: "application/json" }).flat();
  try {
    return parsed(
      await bodyOf(requester, { method: "GET", pool: "asides", path: url.pathname + url.search, headers }, signal),
    );
  } finally {
    await requester.destroy();
  }
}

/** Rejects where there is no body, or more than a card has. */
function bodyOf(requester: Requester, options: RequestOptions, signal: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const body = new Pieces();
    signal.addEventListener("abort", reject, { once: true });
    requester.dispatch(options, {
      onHead: (status) => {
        if (status !== 200) reject(new Error(`HTTP ${status}`));
      },
      onData: (chunk) => {
        if (body.length + chunk.length > MAX_CARD_BYTES) reject(new Error("too large"));
        else body.push(chunk);
      },
      onEnd: () => resolve(body.take()),
      onError: reject,
    });
  });
}

/** One byte past the bound tells a file that is too large; what is no file (for example a pipe) is not read. */
async function headOf(path: string): Promise<Buffer> {
  const file = await open(path, "r");
  try {
    if (!(await file.stat()).isFile()) throw new Error("not a file");
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_CARD_BYTES + 1), 0, MAX_CARD_BYTES + 1, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

function parsed(bytes: Buffer): JsonObject | undefined {
  const value: unknown = bytes.length > MAX_CARD_BYTES ? undefined : JSON.parse(bytes.toString());
  return isObject(value) ? value : undefined;
}
