// `toolway pins list`, `diff`, `accept`, `reject` and `forget`: which tools are pinned, how one changed, that the change is
// accepted or not, and that what is gone need not be remembered.

import type { AcceptedPin, PinDiff, PinLine, RejectedPin } from "../../contracts/pins.js";
import { nearest } from "../../runtime/nearest.js";
import { visible, visibleJson } from "../../runtime/visible.js";
import { shellWord } from "../../runtime/words/shell-word.js";
import { gatewayFor } from "../gateway/which.js";
import { withGateway } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit, usageError } from "../line/errors.js";
import { note, pasted, print } from "../line/io.js";
import { pinDiffText } from "../text/pin-text.js";
import { clockTime, count, fittedTable, HASH_SHOWN, heading, oneLine, type Style, styleOf } from "../text/print.js";

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
    const source = await gatewayFor(input, io);
    return withGateway(source, io, { servers: false }, async ({ client }) => {
      const answer = (await client.get("/pins", io.signal)) as PinsAnswer;
      const { pins } = answer;
      demandKnown(input.server, answer);
      const shown = input.server === undefined ? pins : pins.filter(({ server }) => server === input.server);
      if (input.json) {
        print(io, visibleJson(JSON.stringify(shown, null, 2)));
        return Exit.ok;
      }
      if (shown.length === 0) {
        note(io, whyNone(answer, input.server, source.configPath === undefined));
        return Exit.ok;
      }
      const style = styleOf(io);
      const nowMs = Date.now();
      const rows = shown.map((pin) => row(pin, style, nowMs));
      print(
        io,
        fittedTable([heading(style, ["SERVER", "TOOL", "STATE", "FIRST SEEN", "HASH"]), ...rows], io, {
          whole: ["SERVER", "TOOL", "STATE"],
        }),
      );
      const changed = shown.filter(({ state }) => state === "changed").map(({ server }) => server);
      for (const server of new Set(changed)) {
        const many = count(changed.filter((other) => other === server).length, "tool");
        note(io, `${many} of ${visible(server)} changed: \`toolway pins diff ${shellWord(server)}\` shows how.`);
      }
      const left = new Set(shown.filter(({ state }) => state === "left").map(({ server }) => server));
      for (const server of left) {
        const drop = `\`toolway pins forget ${shellWord(server)}\` drops its pins`;
        note(io, `${visible(server)} is no longer in the config: ${drop}.`);
      }
      for (const { server, tool, reason } of shown.filter(({ state }) => state === "refused")) {
        note(io, `${visible(server)}/${oneLine(visible(tool), NAME_WIDTH)} is refused: ${visible(reason ?? "")}.`);
      }
      return Exit.ok;
    });
  },
});

interface PinsAnswer {
  readonly pins: readonly PinLine[];
  /** Servers whose tools are not pinned. */
  readonly trusted?: readonly string[];
  /** Servers of the config. */
  readonly servers?: readonly string[];
}

/** A name that nobody has is a typo: "nothing is pinned" would be believed. */
function demandKnown(server: string | undefined, { pins, trusted = [], servers = [] }: PinsAnswer): void {
  const known = [...new Set([...servers, ...trusted, ...pins.map((pin) => pin.server)])];
  if (server === undefined || known.includes(server)) return;
  const near = nearest(server, known);
  throw usageError(
    `There is no server ${server}, and no pin of one.`,
    near === undefined ? `There is ${known.join(", ") || "none"}.` : `Did you mean ${near}?`,
  );
}

function whyNone({ trusted = [] }: PinsAnswer, server: string | undefined, isDemo: boolean): string {
  const names = trusted.filter((name) => server === undefined || name === server);
  if (names.length === 0) return "No tool is pinned: tools are pinned when a gateway first sees them.";
  if (isDemo) return "No tool is pinned: the built-in demo is a part of Toolway, and trusted.";
  const their = names.length === 1 ? "its entry says" : "their entries say";
  return `No tool is pinned: ${names.map(visible).join(", ")} ${names.length === 1 ? "is" : "are"} trusted, ${their} "trust": "always".`;
}

function row({ server, tool, state, firstSeen, hash, newHash }: PinLine, style: Style, nowMs: number): string[] {
  const paint =
    state === "changed" || state === "refused"
      ? style.red
      : state === "gone" || state === "left" || state === "rejected"
        ? style.dim
        : style.green;
  const hashes = [hash, newHash].flatMap((one) => (one === undefined ? [] : [one.slice(0, HASH_SHOWN)]));
  return [
    style.bold(oneLine(visible(server), NAME_WIDTH)),
    oneLine(visible(tool), NAME_WIDTH),
    paint(state),
    firstSeen === undefined ? "-" : clockTime(firstSeen, nowMs),
    hashes.join(" → ") || "-",
  ];
}

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
    return withGateway(await gatewayFor(input, io), io, { servers: false }, async ({ client }) => {
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
          `Accept it: ${pasted(io, `pins accept ${shellWord(server)} ${shellWord(tool)} --hash ${after.hash.slice(0, HASH_SHOWN)}`)}`,
        );
      }
      return Exit.ok;
    });
  },
});

/** A script wants the definition, not its text. */
function parsed({ server, tool, old: before, new: after }: PinDiff): object {
  const side = ({ hash, at, definition }: PinDiff["old"]): object => ({
    hash,
    at,
    ...(definition === undefined ? {} : { definition: JSON.parse(definition) as unknown }),
  });
  return { server, tool, old: side(before), new: side(after) };
}

/** What is accepted or rejected. */
const CHANGED_TOOLS = {
  server: { required: true, description: "Its name in the config.", completes: "server" },
  tool: { description: "The server's own name of the tool. Default: all that changed.", completes: "pinned" },
} as const;

const DECISION = {
  hash: { value: "HASH", description: "Only if the new definition has this hash, as `pins diff` showed it." },
  ...gatewayOptions,
  ...jsonOption,
} as const;

/** As the control routes take it. */
function decided({ server, tool, hash }: { server: string; tool?: string | undefined; hash?: string | undefined }) {
  return { server, ...(tool === undefined ? {} : { tool }), ...(hash === undefined ? {} : { hash }) };
}

export const pinsAccept = defineCommand({
  metadata: {
    name: "pins accept",
    summary: "Accepts the changed definition of a tool, or of all of a server's.",
    description:
      "Accepts the changed definition of a tool, or of all tools of a server that changed: agents see and use them " +
      "again. It asks for nothing; `toolway pins diff` shows beforehand what changed. It is on disk when this returns.",
  },
  args: CHANGED_TOOLS,
  options: DECISION,
  examples: [
    {
      line: "toolway pins accept github create_issue --hash 5fQ0cVx3Tq1a",
      note: "what was looked at, and nothing since",
    },
    { line: "toolway pins accept github", note: "all that changed, after an update of the server" },
  ],
  async handler(input, io) {
    return withGateway(await gatewayFor(input, io), io, { servers: false }, async ({ client }) => {
      const { server } = input;
      const answer = (await client.post("/pins/accept", decided(input), io.signal)) as {
        accepted: readonly AcceptedPin[];
      };
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

export const pinsReject = defineCommand({
  metadata: {
    name: "pins reject",
    summary: "Leaves a changed tool hidden, and asks about it no more.",
    description:
      "Leaves a tool whose definition changed hidden as it is now, or all tools of a server that changed. Nobody is asked " +
      "about them any more until they change again; `toolway pins accept` takes them all the same. It is on disk when this " +
      "returns.",
  },
  args: CHANGED_TOOLS,
  options: DECISION,
  examples: [
    { line: "toolway pins reject github create_issue", note: "hidden, until it is another" },
    { line: "toolway pins reject github", note: "all that changed" },
  ],
  async handler(input, io) {
    return withGateway(await gatewayFor(input, io), io, { servers: false }, async ({ client }) => {
      const { server } = input;
      const { rejected } = (await client.post("/pins/reject", decided(input), io.signal)) as {
        rejected: readonly RejectedPin[];
      };
      if (input.json) {
        print(io, visibleJson(JSON.stringify({ server, rejected }, null, 2)));
        return Exit.ok;
      }
      if (rejected.length === 0) note(io, "There was nothing to reject: nothing has changed that was not rejected.");
      for (const one of rejected) {
        print(io, `Rejected ${visible(server)}/${visible(one.tool)}: ${one.hash.slice(0, HASH_SHOWN)} stays hidden.`);
      }
      return Exit.ok;
    });
  },
});

/** So many are named; `--json` has them all. */
const MAX_NAMED = 5;

export const pinsForget = defineCommand({
  metadata: {
    name: "pins forget",
    summary: "Forgets the pins of a server that is no longer there.",
    description:
      "Forgets the pins of a server that has left the config, or that is trusted. Of a server that is in use it forgets " +
      "the pins of tools that are gone, and no others: a pin is what a change is known by. A tool that comes back is " +
      "pinned as it then is. It is on disk when this returns.",
  },
  args: {
    server: { required: true, description: "Its name, as `toolway pins` shows it.", completes: "server" },
    tool: {
      description: "The server's own name of the tool. Default: all that can be forgotten.",
      completes: "pinned",
    },
  },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway pins forget old-wiki", note: "after its entry was removed" },
    { line: "toolway pins forget github list_gists --json", note: "one tool that it no longer has" },
  ],
  async handler(input, io) {
    return withGateway(await gatewayFor(input, io), io, { servers: false }, async ({ client }) => {
      const { server, tool } = input;
      const body = { server, ...(tool === undefined ? {} : { tool }) };
      const { forgotten } = (await client.post("/pins/forget", body, io.signal)) as { forgotten: readonly string[] };
      if (input.json) {
        print(io, visibleJson(JSON.stringify({ server, forgotten }, null, 2)));
        return Exit.ok;
      }
      const named = forgotten.slice(0, MAX_NAMED).map((name) => oneLine(visible(name), NAME_WIDTH));
      const more = forgotten.length > MAX_NAMED ? ` and ${forgotten.length - MAX_NAMED} more` : "";
      print(io, `Forgot ${count(forgotten.length, "pin")} of ${visible(server)}: ${named.join(", ")}${more}.`);
      const which = forgotten.length === 1 ? "it is" : "one of these tools is";
      print(
        io,
        `When ${which} listed again, that is a first sight: it is accepted as it then is, and not quarantined.`,
      );
      return Exit.ok;
    });
  },
});
