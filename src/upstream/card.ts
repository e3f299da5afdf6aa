// A server's card: what it says of itself before anybody connects. For `status` alone; a card that cannot be read is
// no card, and never an error.

import { open } from "node:fs/promises";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import type { ServerSpec } from "../upstream.js";

/** Cards are a few kB. It is kept in memory and shown whole. */
const MAX_CARD_BYTES = 64 * 1024;

/** Nobody waits for it, and a server that is slow with it has none. */
const CARD_MS = 5_000;

/** From where the entry says; else an HTTP server is asked, beside its own address. */
export async function readCard({ card, target }: ServerSpec): Promise<JsonObject | undefined> {
  try {
    if (card === undefined) return target.kind === "stdio" ? undefined : await fetched(besideUrl(target.url), target);
    return /^https?:\/\//.test(card) ? await fetched(card, undefined) : parsed(await headOf(card));
  } catch {
    return undefined;
  }
}

function besideUrl(url: string): string {
  const at = new URL(url);
  at.pathname = `${at.pathname.replace(/\/$/, "")}/server-card`;
  return at.href;
}

/** The server's own headers go to the server's own address, and nowhere else: redirects are not followed. */
async function fetched(
  url: string,
  target: { readonly headers: Readonly<Record<string, string>> } | undefined,
): Promise<JsonObject | undefined> {
  const { request } = await import("undici");
  const headers = { ...target?.headers, accept: "application/json" };
  const response = await request(url, { headers, signal: AbortSignal.timeout(CARD_MS) });
  // To destroy what is left of an answer makes it fail, which nobody need hear of.
  response.body.on("error", () => {});
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    if (response.statusCode !== 200) return undefined;
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > MAX_CARD_BYTES) return undefined;
      chunks.push(chunk);
    }
  } finally {
    response.body.destroy();
  }
  return parsed(Buffer.concat(chunks));
}

/** One byte past the bound tells a file that is too large; what is no file (a pipe, say) is not read. */
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
