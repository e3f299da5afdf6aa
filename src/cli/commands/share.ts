// `toolway share`: this machine's tools in a mailbox of a broker, for agents elsewhere, until it is told to stop.

import { DEFAULT_BROKER_LISTEN } from "../../config/config.js";
import type { ShareLine } from "../../contracts/status.js";
import { type GatewaySource, gatewayPort } from "../gateway/port.js";
import { sourceFor } from "../gateway/source.js";
import { ask, canAsk } from "../line/ask.js";
import { configArg, defineCommand, folderOption } from "../line/command.js";
import { Exit, type ExitCode, UserError, usageError } from "../line/errors.js";
import { type Io, note, print, shown } from "../line/io.js";
import { brokerOption, noteUnencrypted } from "../mailbox/broker-option.js";
import { newsOfLine, sharingText, stateText } from "../text/sharing.js";

import { listenOption, noteStopping } from "./serve.js";

type Question = Extract<ShareLine, { kind: "ask" }>;

export const share = defineCommand({
  metadata: {
    name: "share",
    lasts: true,
    summary: "Shares this machine's tools through a broker, with agents elsewhere.",
    description:
      "Shares the tools of a config in a mailbox of a broker, with agents elsewhere, until it is stopped. It shares those of " +
      "the gateway that runs for the same config; where none runs, it is one, without an endpoint of its own. " +
      "The token is the broker's, of the role sharer, and is taken from TOOLWAY_TOKEN. The roles of the config decide who " +
      "may use what. What was begun is written down first, so that nothing happens twice, whatever breaks. " +
      "With --pair it prints a word that lets one other machine in, by `toolway join --pair`; where no broker is named it " +
      "runs one itself, and needs no token.",
  },
  args: { config: configArg("The config, as for serve.") },
  options: {
    broker: { value: "URL", description: "Where the broker is: wss://…, or ws://… on this machine." },
    as: {
      value: "ID",
      description:
        "The mailbox: the id of the token at the broker. With --pair by default what this machine is called.",
    },
    pair: { description: "Prints a word of one use, good for 10 minutes, that lets another machine in." },
    role: { value: "ROLE", description: "With --pair: the role of whoever comes by it. Default: default." },
    listen: {
      value: "HOST:PORT",
      description: `With --pair and no --broker: where its own broker listens. Default: ${DEFAULT_BROKER_LISTEN}.`,
    },
    state: folderOption("The state directory, as for serve."),
    json: { description: "Prints what happens as lines of JSON, for scripts." },
  },
  examples: [
    {
      line: "toolway share ./mcp.json --broker ws://127.0.0.1:7440 --as studio",
      note: "with the token in TOOLWAY_TOKEN",
    },
    { line: "toolway share --broker wss://broker.example.com --as studio", note: "./toolway.json, or the demo" },
    { line: "toolway share ./mcp.json --pair --as studio", note: "with a broker of its own, and a word to type" },
  ],
  async handler(input, io) {
    // A config that is not there is told before anything is made for it.
    const source = await sourceFor({ config: input.config, state: input.state }, io);
    const place = await placeFor(input, source, io);
    try {
      if (input.json && place.word !== undefined) print(io, JSON.stringify({ kind: "pair", pair: place.word }));
      return await shareAt(place, source, input, io);
    } finally {
      await place.close();
    }
  },
});

interface SharePlace {
  readonly broker: string;
  readonly as: string;
  readonly token: string | undefined;
  readonly word?: string | undefined;
  close(): Promise<void>;
}

interface ShareInput {
  readonly config: string | undefined;
  readonly state: string | undefined;
  readonly broker: string | undefined;
  readonly as: string | undefined;
  readonly pair: boolean;
  readonly role: string | undefined;
  readonly listen: string | undefined;
  readonly json: boolean;
}

async function placeFor(input: ShareInput, source: GatewaySource, io: Io): Promise<SharePlace> {
  const { broker, as, role } = input;
  if (input.pair) {
    const { pairForShare } = await import("../mailbox/share-pair.js");
    return pairForShare({ broker, as, role, source, listen: listenOption(input.listen) }, io);
  }
  const paired = [...(role === undefined ? [] : ["--role"]), ...(input.listen === undefined ? [] : ["--listen"])];
  if (paired.length > 0) {
    throw usageError(
      `${paired.join(" and ")} ${paired.length === 1 ? "goes" : "go"} with --pair, which is missing.`,
      "`toolway share --pair` needs neither --broker nor --as.",
    );
  }
  const token = io.env["TOOLWAY_TOKEN"];
  return { ...required(broker, as), token: token === "" ? undefined : token, close: async () => {} };
}

async function shareAt(
  { broker, as, token }: SharePlace,
  source: GatewaySource,
  input: ShareInput,
  io: Io,
): Promise<ExitCode> {
  const port = await gatewayPort();
  const stop = new AbortController();
  const questions = new Questions(io, () => stop.abort());
  noteUnencrypted(broker, io);
  let isLogged = false;
  const isNews = newsOfLine();
  const stopped = AbortSignal.any([io.signal, stop.signal]);
  stopped.addEventListener("abort", () => noteStopping(io), { once: true });
  const end = await port.share(source, {
    broker,
    as,
    token,
    canAsk: !input.json && canAsk(io),
    onOwn: () => {
      isLogged = true;
    },
    signal: stopped,
    onLine: (line, answer) => {
      if (input.json) print(io, JSON.stringify(line));
      else if (line.kind === "sharing") print(io, sharingText(line, { broker, as }, io));
      else if (line.kind === "state") {
        // Once is enough.
        if (!isLogged && isNews(line)) note(io, stateText(line, broker));
      } else if (line.kind === "ask") questions.put(line, answer);
      else if (line.kind === "asked") questions.take(line.id);
    },
  });
  if (end !== "stopped") throw new UserError(end.why, { hint: hintFor(as, token) });
  return Exit.ok;
}

function required(broker: string | undefined, as: string | undefined): { broker: string; as: string } {
  if (broker === undefined || as === undefined) {
    const missing = [...(broker === undefined ? ["--broker URL"] : []), ...(as === undefined ? ["--as ID"] : [])];
    throw usageError(
      `${missing.join(" and ")} ${missing.length === 1 ? "is" : "are"} missing: tools are shared in a mailbox of a broker.`,
      "For instance `toolway share --broker ws://127.0.0.1:7440 --as studio`; or `toolway share --pair`, which needs no broker.",
    );
  }
  return { broker: brokerOption("--broker", broker), as };
}

function hintFor(as: string, token: string | undefined): string {
  const make = `\`toolway token create --id ${as} --role sharer\` at the broker`;
  return token === undefined
    ? `TOOLWAY_TOKEN is not set. Make a token with ${make}, and put it into that variable here.`
    : `Is TOOLWAY_TOKEN the broker's, of the id ${as} and the role sharer? Make a token with ${make}.`;
}

/** Asks the person one question after another. */
class Questions {
  readonly #io: Io;
  readonly #onInterrupt: () => void;
  readonly #waiting = new Map<number, AbortController>();
  #last: Promise<void> = Promise.resolve();

  constructor(io: Io, onInterrupt: () => void) {
    this.#io = io;
    this.#onInterrupt = onInterrupt;
  }

  put(question: Question, answer: (id: number, answer: string) => void): void {
    const over = new AbortController();
    this.#waiting.set(question.id, over);
    this.#last = this.#last.then(() => this.#ask(question, over.signal, answer));
  }

  /** Nobody waits for the answer any more. */
  take(id: number): void {
    this.#waiting.get(id)?.abort();
    this.#waiting.delete(id);
  }

  async #ask(question: Question, over: AbortSignal, answer: (id: number, answer: string) => void): Promise<void> {
    if (over.aborted) return;
    const io = { ...this.#io, signal: AbortSignal.any([this.#io.signal, over]) };
    const { worker, role, server, tool, arguments: args } = shown(question, true);
    const text = `${worker} (${role}) wants ${tool} of ${server}: ${args}\n[y]es, [n]o, [a]lways for ${worker}: `;
    try {
      answer(question.id, answerOf(await ask(io, text, { isHidden: false, isFresh: true })));
    } catch {
      if (over.aborted) note(this.#io, "\nToo late: it was refused.");
      else this.#onInterrupt();
    }
  }
}

function answerOf(line: string | undefined): string {
  const said = line?.trim().toLowerCase() ?? "";
  if (said === "y" || said === "yes") return "yes";
  return said === "a" || said === "always" ? "always" : "no";
}
