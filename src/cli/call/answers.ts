// Answers what a server asks during `toolway call`: on a terminal by asking the person there, one question after the
// other; without one by declining, and saying so.

import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { visible, visibleLines } from "../../runtime/visible.js";
import type { Terminal } from "../line/ask.js";
import type { CallView } from "./call-view.js";
import { explanation, type Field, fieldsOf, promptOf, readTyped, yesOrNo } from "./form.js";

/** So often a field may be typed wrong, before the whole is declined. */
const MAX_TRIES = 3;

/** A question that is longer is no question, and would push what is asked off the screen. */
const MAX_MESSAGE_CHARS = 4_000;

/** What is said of one that was declined is a line. */
const MAX_QUOTED_CHARS = 200;

const DECLINE: JsonObject = { action: "decline" };

export class Answers {
  readonly #terminal: Terminal;
  readonly #server: string;
  readonly #view: CallView;
  /** Questions wait for each other: there is one terminal. The gateway bounds how many there are. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(terminal: Terminal, server: string, view: CallView) {
    this.#terminal = terminal;
    this.#server = server;
    this.#view = view;
  }

  /**
   * The result of an elicitation. `takenBack` fires when the server wants no answer any more. Rejects with a Stopped at
   * Ctrl-C.
   */
  elicit(params: JsonObject, takenBack: AbortSignal): Promise<JsonObject> {
    if (!this.#terminal.canAsk) {
      const { message, url } = params;
      const asked = `${quoted(message)}${typeof url === "string" ? ` (${visible(url)})` : ""}`;
      this.#view.note(`toolway: ${this.#server} asked ${asked}; declined, because this is not a terminal.`);
      return Promise.resolve(DECLINE);
    }
    const answer = this.#turn.then(() => this.#askOnTerminal(params, takenBack));
    this.#turn = answer.catch(() => {});
    return answer;
  }

  async #askOnTerminal(params: JsonObject, takenBack: AbortSignal): Promise<JsonObject> {
    if (takenBack.aborted) return DECLINE;
    this.#view.hold();
    try {
      return params["mode"] === "url" ? await this.#address(params, takenBack) : await this.#form(params, takenBack);
    } catch (error) {
      if (!takenBack.aborted) throw error;
      this.#terminal.note(`\ntoolway: ${this.#server} does not want the answer any more.`);
      return DECLINE;
    } finally {
      this.#view.release();
    }
  }

  async #form({ message, requestedSchema }: JsonObject, takenBack: AbortSignal): Promise<JsonObject> {
    const fields = fieldsOf(requestedSchema);
    this.#terminal.note(`${this.#server} asks: ${questionText(message)}`);
    if (fields.length === 0) return this.#consent(takenBack, "Is that all right? (yes or no): ", { content: {} });
    this.#terminal.note("(Ctrl-D declines.)");
    const content: JsonObject = {};
    for (const field of fields) {
      const value = await this.#field(field, takenBack);
      if (value === "declined") return this.#declined();
      // defineProperty: a field `__proto__` is one like any other.
      if (value !== undefined) Object.defineProperty(content, field.name, { ...value, enumerable: true });
    }
    return { action: "accept", content };
  }

  /** Undefined where the field is left out. */
  async #field(field: Field, takenBack: AbortSignal): Promise<{ readonly value: unknown } | "declined" | undefined> {
    for (const line of explanation(field)) this.#terminal.note(line);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const line = await this.#terminal.ask(promptOf(field), takenBack);
      const typed = line === undefined ? MISSING : readTyped(field, line);
      if (typed.kind === "value") return { value: typed.value };
      if (typed.kind === "absent") return undefined;
      if (typed.kind === "missing") return "declined";
      this.#terminal.note(typed.why);
    }
    return "declined";
  }

  async #address({ message, url }: JsonObject, takenBack: AbortSignal): Promise<JsonObject> {
    if (typeof url !== "string" || !URL.canParse(url)) {
      this.#terminal.note(`toolway: ${this.#server} asked to open an address that is none; declined.`);
      return DECLINE;
    }
    this.#terminal.note(`${this.#server} asks: ${questionText(message)}`);
    // The host by itself: in a long address it is what decides whom one trusts.
    this.#terminal.note(`It wants you to open this address, at ${visible(new URL(url).host)}:\n  ${visible(url)}`);
    return this.#consent(takenBack, "Will you open it? (yes or no): ", {});
  }

  async #consent(takenBack: AbortSignal, question: string, accepted: JsonObject): Promise<JsonObject> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const line = await this.#terminal.ask(question, takenBack);
      if (line === undefined || line.trim() === "") break;
      const typed = yesOrNo(line);
      if (typed.kind === "value") return typed.value === true ? { action: "accept", ...accepted } : this.#declined();
      if (typed.kind === "wrong") this.#terminal.note(typed.why);
    }
    return this.#declined();
  }

  #declined(): JsonObject {
    this.#terminal.note("Declined.");
    return DECLINE;
  }
}

const MISSING = { kind: "missing" } as const;

function questionText(message: unknown): string {
  const text = visibleLines(typeof message === "string" ? message : "(no question)");
  return text.length <= MAX_MESSAGE_CHARS ? text : `${text.slice(0, MAX_MESSAGE_CHARS)}…`;
}

function quoted(message: unknown): string {
  if (typeof message !== "string") return "something";
  const line = visible(message.replace(/\s+/g, " ").trim());
  return `“${line.length <= MAX_QUOTED_CHARS ? line : `${line.slice(0, MAX_QUOTED_CHARS)}…`}”`;
}

/** The addresses that an error asks to be opened before the call is made again; empty for any other. */
export function addressesOf(error: JsonObject): string[] {
  const { data } = error;
  const wanted = isObject(data) && Array.isArray(data["elicitations"]) ? data["elicitations"] : [];
  return wanted.flatMap((one) => (isObject(one) && typeof one["url"] === "string" ? [one["url"]] : []));
}
