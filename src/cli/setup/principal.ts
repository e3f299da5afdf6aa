// The principal of a client that is set up: its token is made, kept for whoever asks for its header, and ended with the
// client's last entry.

import { mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { saveConfig } from "../../config/edit/save.js";
import { isObject } from "../../protocol/jsonrpc.js";
import type { GatewayClient, GatewaySource } from "../gateway/port.js";
import type { KeptToken } from "../gateway/running.js";
import { withGateway } from "../gateway/with-gateway.js";
import { UserError } from "../line/errors.js";
import type { Io } from "../line/io.js";

/**
 * Sees to it that there is a token for this principal, and that `file` counts among those that use it. Resolves with its
 * role: the one that is asked for, else the one that it has.
 */
export async function demandToken(
  principal: string,
  file: string,
  role: string | undefined,
  source: GatewaySource,
  io: Io,
): Promise<string> {
  return withGateway(source, io, { servers: false }, async ({ client }) => {
    if (role !== undefined) await client.get(`/roles/${encodeURIComponent(role)}`, io.signal);
    const kept = await keptOf(principal, source);
    const has = await roleOf(client, principal, io);
    const path = `/tokens/${encodeURIComponent(principal)}`;
    // Without a word about it, it may do what the default token may.
    const wanted = role ?? has ?? (await roleOf(client, "default", io)) ?? "default";
    // A role cannot be changed: whoever came in by the old one is out.
    if (has !== undefined && has !== wanted) await client.delete(path, io.signal);
    const token =
      has === wanted
        ? // One whose secret was lost, with the state of an older backup for instance, gets another.
          (kept?.token ?? tokenIn(await client.post(`${path}/rotate`, {}, io.signal)))
        : tokenIn(await client.post("/tokens", { id: principal, role: wanted }, io.signal));
    await store(source, principal, { token, files: [...new Set([...(kept?.files ?? []), file])] });
    return wanted;
  });
}

/** The entry of `file` is gone. Whether the token was revoked: it is, where no other file has an entry. */
export async function letGo(principal: string, file: string, source: GatewaySource, io: Io): Promise<boolean> {
  const kept = await keptOf(principal, source);
  const files = (kept?.files ?? []).filter((path) => path !== file);
  if (kept !== undefined && files.length > 0) {
    await store(source, principal, { ...kept, files });
    return false;
  }
  return withGateway(source, io, { servers: false }, async ({ client }) => {
    const isKnown = (await roleOf(client, principal, io)) !== undefined;
    if (isKnown) await client.delete(`/tokens/${encodeURIComponent(principal)}`, io.signal);
    const { keptPath } = await import("../gateway/running.js");
    rmSync(keptPath(source.stateDir, principal), { force: true });
    return isKnown;
  });
}

/** What is kept of the principal; undefined where nothing is. */
export async function keptOf(principal: string, { stateDir }: GatewaySource): Promise<KeptToken | undefined> {
  // From there, where the helper reads it too: a file of its own in the bundle would be one more that a start opens.
  const { readKept } = await import("../gateway/running.js");
  return readKept(stateDir, principal);
}

async function roleOf(client: GatewayClient, id: string, io: Io): Promise<string | undefined> {
  const answer = await client.get("/tokens", io.signal);
  const tokens: unknown[] = isObject(answer) && Array.isArray(answer["tokens"]) ? answer["tokens"] : [];
  const found = tokens.find((token) => isObject(token) && token["id"] === id);
  return isObject(found) ? String(found["role"]) : undefined;
}

function tokenIn(answer: unknown): string {
  if (isObject(answer) && typeof answer["token"] === "string") return answer["token"];
  throw new Error("The gateway gave no token.");
}

/** Projects in which one client is set up; the token of one that was forgotten goes with the last of the others. */
const MAX_FILES = 200;

/** Mode 0600, in a folder that is its owner's alone. */
async function store({ stateDir }: GatewaySource, principal: string, { token, files }: KeptToken): Promise<void> {
  const { keptPath } = await import("../gateway/running.js");
  const path = keptPath(stateDir, principal);
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    saveConfig(path, `${JSON.stringify({ token, files: files.slice(-MAX_FILES) })}\n`);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new UserError(`The token cannot be kept in ${stateDir}: ${code}.`, { cause });
  }
}
