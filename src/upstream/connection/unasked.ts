// What a server says that is no reply: progress, other notifications, questions; passed to whom it concerns.
// Whom that is, whose.ts knows; questions under way are questions.ts.

import type { Caller } from "../../contracts/caller.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import { locate, type NotificationMessage, type RequestMessage, rewrite } from "../../protocol/message.js";
import type { Ticket } from "../link/link.js";
import type { ModernSide } from "../modern/side.js";
import type { Flights } from "./flights.js";
import type { Questions } from "./questions.js";
import type { Whose } from "./whose.js";

/** The connection, as far as it is needed here. */
export interface UnaskedPlace {
  readonly server: string;
  readonly flights: Flights;
  readonly whose: Whose;
  readonly questions: Questions;
  readonly now: () => number;
  /** Set where the server is a modern one. */
  modern(): ModernSide | undefined;
  notify(text: string): void;
  /** A notification that is not progress, and whose it is, where that can be told. */
  onNotification(message: NotificationMessage, caller: Caller | undefined): void;
  onNoise(sample: string): void;
}

export class Unasked {
  readonly #at: UnaskedPlace;

  constructor(place: UnaskedPlace) {
    this.#at = place;
  }

  notified(message: NotificationMessage, ticket: Ticket | undefined): void {
    const { method, params } = message;
    const modern = this.#at.modern();
    if (method === "notifications/progress") {
      this.#progressed(message);
    } else if (modern !== undefined) {
      const passed = modern.notified(message);
      // What came by listening is nobody's call.
      if (passed === message) this.#toCaller(message, ticket);
      else if (passed !== undefined) this.#at.onNotification(passed, undefined);
    } else if (method === "notifications/cancelled") {
      this.#at.questions.cancel(params?.["requestId"]);
    } else {
      this.#toCaller(message, ticket);
    }
  }

  #toCaller(message: NotificationMessage, ticket: Ticket | undefined): void {
    const caller = this.#at.whose.callerOf(ticket);
    this.#at.onNotification(message, caller);
    if (caller === undefined && message.method === "notifications/message") this.#logToModern(message);
  }

  /**
   * A log message while several agents are calling. It goes to those who set a level for their session; modern agents
   * have none, and say with each call what they want to hear.
   */
  #logToModern({ text }: NotificationMessage): void {
    const told = new Set<string>();
    for (const { call } of this.#at.flights.values()) {
      const { caller } = call;
      if (caller?.era !== "modern" || caller.logLevel === undefined || told.has(caller.sessionKey)) continue;
      told.add(caller.sessionKey);
      caller.notify(text);
    }
  }

  asked(request: RequestMessage, ticket: Ticket | undefined): void {
    if (this.#at.modern() !== undefined) {
      // In the modern era servers send no requests, and there is no way to answer one.
      this.#at.onNoise(`request ${request.method} of a modern server`);
      return;
    }
    if (request.method === "ping") {
      const at = locate(request, ["id"]);
      const id = at === undefined ? "null" : request.text.slice(at.start, at.end);
      this.#at.notify(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
      return;
    }
    const caller = this.#at.whose.callerOf(ticket);
    if (caller !== undefined) {
      this.#at.questions.ask(request, caller);
      return;
    }
    const why = `Toolway cannot tell which agent ${request.method} is for: it came outside any call, or while several agents were calling.`;
    const hint = `Set "isolation": "session" for server "${this.#at.server}" to give each agent a connection of its own.`;
    this.#at.questions.refuse(request, toRpcError(new Fault("no-caller", `${why} ${hint}`)));
  }

  #progressed(message: NotificationMessage): void {
    const token = message.params?.["progressToken"];
    const flight = this.#at.flights.get(typeof token === "string" ? Number(token) : (token as number));
    if (flight === undefined) return;
    const { progressToken, caller } = flight.call;
    if (progressToken === undefined || caller === undefined) return;
    flight.extend(this.#at.now());
    caller.notify(rewrite(message, [{ path: ["params", "progressToken"], json: JSON.stringify(progressToken) }]));
  }
}
