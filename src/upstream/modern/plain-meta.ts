// A modern agent's request for a legacy server: without what it says of its sender, which that era says at the handshake.

import { locate, parseMessage } from "../../protocol/message.js";
import { Meta } from "../../protocol/modern.js";
import { scanMembers, splice } from "../../protocol/scan.js";

const SAID_AT_HANDSHAKE = new Set<string>([Meta.version, Meta.capabilities, Meta.clientInfo, Meta.logLevel]);

/** The rest of `_meta` (a progress token, trace context, what we do not know) stays as it was written. */
export function withoutSender(text: string): string {
  const meta = locate(parseMessage(text), ["params", "_meta"]);
  if (meta === undefined) return text;
  const members = scanMembers(text, meta.start);
  const kept = members.filter(({ key }) => !SAID_AT_HANDSHAKE.has(key));
  if (kept.length === members.length) return text;
  const json = kept.map(({ key, start, end }) => `${JSON.stringify(key)}:${text.slice(start, end)}`);
  return splice(text, [{ start: meta.start, end: meta.end, text: `{${json.join(",")}}` }]);
}
