// `toolway pins`, `toolway pins list`: which tools are pinned, and which have changed.

import type { PinLine } from "../../contracts/pins.js";
import { visible, visibleJson } from "../../runtime/visible.js";
import { sourceFor } from "../gateway/source.js";
import { withGateway } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { note, print } from "../line/io.js";
import { HASH_SHOWN } from "../text/pin-text.js";
import { count, heading, oneLine, type Style, styleOf, table } from "../text/print.js";

/** Longer names are cut in the table; `--json` has them whole. */
const NAME_WIDTH = 60;

export const pinsList = defineCommand({
  metadata: {
    name: "pins list",
    isDefault: true,
    summary: "Lists the pinned tools, and those whose definition changed.",
    description:
      "Lists the tools of all servers that are not trusted, with the hash of the definition that was accepted. " +
      "A tool is pinned when it is first seen. One that changed since is hidden from agents, and calls of it are " +
      "refused, until `toolway pins accept`. `toolway pins` alone does the same.",
  },
  args: {},
  options: {
    server: { value: "NAME", description: "Those of one server only.", completes: "server" },
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    { line: "toolway pins", note: "server, tool, state, first seen, hash" },
    { line: "toolway pins list --json | jq '.[] | select(.state == \"changed\")'", note: "what waits for you" },
  ],
  async handler(input, io) {
    return withGateway(sourceFor(input, io), io, { servers: false }, async ({ client }) => {
      const { pins } = (await client.get("/pins", io.signal)) as { pins: readonly PinLine[] };
      const shown = input.server === undefined ? pins : pins.filter(({ server }) => server === input.server);
      if (input.json) {
        print(io, visibleJson(JSON.stringify(shown, null, 2)));
        return Exit.ok;
      }
      if (shown.length === 0) {
        note(io, "No tool is pinned: tools are pinned when a gateway first sees them.");
        return Exit.ok;
      }
      const style = styleOf(io);
      const rows = shown.map((pin) => row(pin, style));
      print(io, table([heading(style, ["SERVER", "TOOL", "STATE", "FIRST SEEN", "HASH"]), ...rows]));
      const changed = shown.filter(({ state }) => state === "changed");
      if (changed.length > 0) {
        const servers = [...new Set(changed.map(({ server }) => visible(server)))];
        note(io, `${count(changed.length, "tool")} changed: \`toolway pins diff ${servers[0]}\` shows how.`);
      }
      for (const { server, tool, reason } of shown.filter(({ state }) => state === "refused")) {
        note(io, `${visible(server)}/${oneLine(visible(tool), NAME_WIDTH)} is refused: ${visible(reason ?? "")}.`);
      }
      return Exit.ok;
    });
  },
});

function row({ server, tool, state, firstSeen, hash, newHash }: PinLine, style: Style): string[] {
  const paint = state === "changed" || state === "refused" ? style.red : state === "gone" ? style.dim : style.green;
  const hashes = [hash, newHash].flatMap((one) => (one === undefined ? [] : [one.slice(0, HASH_SHOWN)]));
  return [
    style.bold(oneLine(visible(server), NAME_WIDTH)),
    oneLine(visible(tool), NAME_WIDTH),
    paint(state),
    firstSeen ?? "-",
    hashes.join(" → ") || "-",
  ];
}
