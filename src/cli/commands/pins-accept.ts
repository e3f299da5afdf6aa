// `toolway pins accept`: a changed definition is taken for good.

import type { AcceptedPin } from "../../contracts/pins.js";
import { visible, visibleJson } from "../../runtime/visible.js";
import { sourceFor } from "../gateway/source.js";
import { withGateway } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { note, print } from "../line/io.js";
import { HASH_SHOWN } from "../text/pin-text.js";

export const pinsAccept = defineCommand({
  metadata: {
    name: "pins accept",
    summary: "Accepts the changed definition of a tool, or of all of a server's.",
    description:
      "Accepts the changed definition of a tool, or of all tools of a server that changed: agents see and use them " +
      "again. It asks for nothing; `toolway pins diff` shows beforehand what changed. It is on disk when this returns.",
  },
  args: {
    server: { required: true, description: "Its name in the config.", completes: "server" },
    tool: { description: "The server's own name of the tool. Default: all that changed.", completes: "pinned" },
  },
  options: {
    hash: { value: "HASH", description: "Only if the new definition has this hash, as `pins diff` showed it." },
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    {
      line: "toolway pins accept github create_issue --hash 5fQ0cVx3Tq1a",
      note: "what was looked at, and nothing since",
    },
    { line: "toolway pins accept github", note: "all that changed, after an update of the server" },
  ],
  async handler(input, io) {
    return withGateway(sourceFor(input, io), io, { servers: false }, async ({ client }) => {
      const { server, tool, hash } = input;
      const body = { server, ...(tool === undefined ? {} : { tool }), ...(hash === undefined ? {} : { hash }) };
      const answer = (await client.post("/pins/accept", body, io.signal)) as { accepted: readonly AcceptedPin[] };
      if (input.json) {
        print(io, visibleJson(JSON.stringify({ server, accepted: answer.accepted }, null, 2)));
        return Exit.ok;
      }
      if (answer.accepted.length === 0) note(io, "There was nothing to accept: nothing has changed.");
      for (const one of answer.accepted) {
        const [before, after] = [one.oldHash, one.hash].map((text) => text.slice(0, HASH_SHOWN));
        print(io, `Accepted ${visible(server)}/${visible(one.tool)}: ${before} → ${after}`);
      }
      return Exit.ok;
    });
  },
});
