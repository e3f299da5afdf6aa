// `toolway top`: the overview of a running gateway in a terminal, live.

import type { CallsAnswer } from "../../contracts/control/calls.js";
import type { HistoryAnswer } from "../../contracts/control/history.js";
import type { GatewayStatus } from "../../contracts/status.js";
import { demandGateway } from "../gateway/which.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { pauseBetweenLooks, print, printJson, shown } from "../line/io.js";

/** Often enough to watch; the gateway works the numbers out anew each time. */
const LOOK_MS = 1_000;

/** A screen of its own, as editors have: what was on it before is back at the end. */
const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";
/** To the end of the line, and of the screen. */
const REST_OF_LINE = "\u001b[K";
const REST_OF_SCREEN = "\u001b[J";

export const top = defineCommand({
  metadata: {
    name: "top",
    lasts: true,
    summary: "Shows what goes on in a running gateway, live.",
    description:
      "Shows what goes on in a running gateway until Ctrl-C: calls a minute, what failed, how long calls take and what of " +
      "it is the gateway's own, servers with the bad ones first, calls under way. Where stdout is no terminal it is shown once.",
  },
  args: {},
  options: {
    once: { description: "Shows it once, and ends." },
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    { line: "toolway top", note: "until Ctrl-C" },
    {
      line: "toolway top --json | jq '.history.servers[] | select(.errors > 0)'",
      note: "servers that failed in this hour",
    },
  ],
  async handler(input, io) {
    const client = await demandGateway(input, io);
    const look = async () => {
      const [status, history, { underWay }] = await Promise.all([
        client.get("/status", io.signal) as Promise<GatewayStatus>,
        client.get("/history", io.signal) as Promise<HistoryAnswer>,
        client.get("/calls?limit=0", io.signal) as Promise<CallsAnswer>,
      ]);
      return { status, history, underWay };
    };
    if (input.json) {
      printJson(io, await look());
      return Exit.ok;
    }
    const { topText } = await import("../text/top.js");
    if (input.once || !io.isTTY) {
      print(io, topText(shown(await look(), io.isTTY), io, Date.now()));
      return Exit.ok;
    }
    let text = topText(shown(await look(), true), io, Date.now(), io.rows);
    io.stdout.write(ENTER);
    try {
      for (;;) {
        io.stdout.write(`${HOME}${text.replaceAll("\n", `${REST_OF_LINE}\n`)}${REST_OF_LINE}${REST_OF_SCREEN}`);
        await pauseBetweenLooks(io, LOOK_MS);
        if (io.signal.aborted) return Exit.ok;
        text = topText(shown(await look(), true), io, Date.now(), io.rows);
      }
    } catch (error) {
      if (io.signal.aborted) return Exit.ok;
      throw error;
    } finally {
      io.stdout.write(LEAVE);
    }
  },
});
