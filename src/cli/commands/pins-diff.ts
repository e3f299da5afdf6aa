// `toolway pins diff`: what changed in the definitions of a server's tools.

import type { PinDiff } from "../../contracts/pins.js";
import { visible, visibleJson } from "../../runtime/visible.js";
import { sourceFor } from "../gateway/source.js";
import { withGateway } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { note, print } from "../line/io.js";
import { HASH_SHOWN, pinDiffText } from "../text/pin-text.js";

export const pinsDiff = defineCommand({
  metadata: {
    name: "pins diff",
    summary: "Shows how the definition of a tool changed since it was accepted.",
    description:
      "Shows the accepted and the new definition of each changed tool: side by side on a wide terminal, else one under " +
      "the other. Characters that cannot be seen, or that change the direction of text, are shown as \\u{202E} and " +
      "marked by ! beside the line.",
  },
  args: {
    server: { required: true, description: "Its name in the config.", completes: "server" },
    tool: { description: "The server's own name of the tool. Default: all that changed.", completes: "pinned" },
  },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway pins diff github", note: "all of the server's changed tools" },
    { line: "toolway pins diff github create_issue --json", note: "both definitions, for a script" },
  ],
  async handler(input, io) {
    return withGateway(sourceFor(input, io), io, { servers: false }, async ({ client }) => {
      const query = new URLSearchParams({ server: input.server });
      if (input.tool !== undefined) query.set("tool", input.tool);
      const { diffs } = (await client.get(`/pins/diff?${query}`, io.signal)) as { diffs: readonly PinDiff[] };
      if (input.json) {
        print(io, visibleJson(JSON.stringify(diffs.map(parsed), null, 2)));
        return Exit.ok;
      }
      if (diffs.length === 0) {
        note(io, `Nothing changed: ${input.tool === undefined ? "all of it is" : "it is"} as it was accepted.`);
        return Exit.ok;
      }
      print(io, diffs.map((diff) => pinDiffText(diff, io)).join("\n\n"));
      for (const { server, tool, new: after } of diffs) {
        note(
          io,
          `Accept it: toolway pins accept ${shellWord(server)} ${shellWord(tool)} --hash ${after.hash.slice(0, HASH_SHOWN)}`,
        );
      }
      return Exit.ok;
    });
  },
});

/** For a line to paste: a name is a server's own choice, and must not become a command. */
function shellWord(text: string): string {
  if (/^[\w./@:+-]+$/.test(text)) return text;
  return visible(text) === text ? `'${text.replaceAll("'", "'\\''")}'` : "<tool>";
}

/** A script wants the definition, not its text. */
function parsed({ server, tool, old: before, new: after }: PinDiff): object {
  const side = ({ hash, at, definition }: PinDiff["old"]): object => ({
    hash,
    at,
    ...(definition === undefined ? {} : { definition: JSON.parse(definition) as unknown }),
  });
  return { server, tool, old: side(before), new: side(after) };
}
