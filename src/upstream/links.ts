// Makes the link that a server's entry means.

import type { ServerSpec } from "../contracts/server-spec.js";
import { Fault } from "../protocol/errors.js";
import { openHttpLink } from "./http/link.js";
import type { OpenWire } from "./http/wire.js";
import type { Link, LinkDescription, LinkEvents } from "./link/link.js";
import { type StdioContext, StdioLink } from "./stdio/link.js";

export interface LinkContext extends StdioContext {
  /** How addresses are reached. By default it is over our own network. */
  readonly openWire?: OpenWire;
}

/** Never throws: an entry that cannot be used fails when it is opened, like a server that cannot be reached. */
export function linkMaker(context: LinkContext): (spec: ServerSpec, events: LinkEvents) => Link {
  return ({ target }, events) => {
    try {
      switch (target.kind) {
        case "stdio":
          return new StdioLink(target, events, context);
        case "http":
        case "sse":
          return openHttpLink(target, events, context.openWire);
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
