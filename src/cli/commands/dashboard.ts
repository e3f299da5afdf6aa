// `toolway dashboard`: the operator's page of a running gateway, in the browser.

import { demandGateway, USUAL } from "../gateway/which.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { note, print, printJson } from "../line/io.js";
import { openBrowser } from "../login/browser.js";

interface Link {
  readonly url: string;
  readonly power: "viewer" | "operator";
}

export const dashboard = defineCommand({
  metadata: {
    name: "dashboard",
    summary: "Opens the page of a running gateway.",
    description:
      "Opens a page that shows what is wrong and what to do: servers, tools, pins, what waits, and who has access. The " +
      "gateway listens for it on 127.0.0.1 from now on, and stops with the last page. The link is good once, for a minute.",
  },
  args: {},
  options: {
    print: { description: "Prints the link, and opens no browser." },
    view: { description: "A link that sees, and can change nothing." },
    close: { description: "Ends every page, and closes the door." },
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    { line: "toolway dashboard", note: "in the browser" },
    { line: "toolway dashboard --print", note: "the link, for a browser that is reached otherwise" },
    { line: "toolway dashboard --close", note: "ends all pages" },
    { line: "toolway dashboard --state DIR", note: "of a broker, which has no config; alone on a machine it is found" },
  ],
  async handler(input, io) {
    const client = await demandGateway(input, io, { ...USUAL, orBroker: true });
    if (input.close) {
      const { ended, held } = (await client.delete("/door", io.signal)) as { ended: number; held?: boolean };
      if (input.json) printJson(io, { ended });
      else print(io, closedText(ended, held === true));
      return Exit.ok;
    }
    const link = (await client.post("/door", { view: input.view }, io.signal)) as Link;
    if (input.json) printJson(io, link);
    else if (input.print || !(await openBrowser(link.url, io.env))) {
      print(io, link.url);
      note(io, "It is good once, for a minute.");
    } else {
      // That a program took the address does not mean that somebody sees it: there may be no screen.
      print(io, `The page opens in your browser. If it does not, follow this link within a minute: ${link.url}`);
    }
    return Exit.ok;
  },
});

function closedText(ended: number, held: boolean): string {
  const what =
    ended === 0 ? "No session was open." : ended === 1 ? "One session was ended." : `${ended} sessions were ended.`;
  return `${what} ${held ? 'The config holds the door open ("admin").' : "The door is closed."}`;
}
