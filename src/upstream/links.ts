// Which link a server's entry means.

import { Fault } from "../protocol/errors.js";
import type { ServerSpec } from "../upstream.js";
import { openHttpLink } from "./http.js";
import type { Link, LinkDescription, LinkEvents } from "./link.js";
import { SseLink } from "./sse.js";
import { type StdioContext, StdioLink } from "./stdio.js";

/** Never throws: an entry that cannot be used fails when it is opened, like a server that cannot be reached. */
export function linkMaker(context: StdioContext): (spec: ServerSpec, events: LinkEvents) => Link {
  return ({ target }, events) => {
    try {
      switch (target.kind) {
        case "stdio":
          return new StdioLink(target, events, context);
        case "sse":
          return new SseLink(target, events);
        case "http":
          return openHttpLink(target, events);
      }
    } catch (error) {
      return new UnusableLink(target.kind, error);
    }
  };
}

class UnusableLink implements Link {
  readonly #kind: LinkDescription["kind"];
  readonly #fault: Fault;

  constructor(kind: LinkDescription["kind"], error: unknown) {
    this.#kind = kind;
    this.#fault = error instanceof Fault ? error : new Fault("invalid", String(error), { cause: error });
  }

  open(): Promise<void> {
    return Promise.reject(this.#fault);
  }

  send(): void {}
  established(): void {}
  forget(): void {}
  async close(): Promise<void> {}

  describe(): LinkDescription {
    return { kind: this.#kind };
  }
}
