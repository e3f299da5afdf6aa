// Makes the link that a server's entry means.

import type { ServerSpec, StdioTarget } from "../contracts/server-spec.js";
import { Fault } from "../protocol/errors.js";
import { openHttpLink } from "./http/link.js";
import { SseLink } from "./http/sse.js";
import type { OpenWire } from "./http/wire.js";
import type { Link, LinkDescription, LinkEvents } from "./link/link.js";
import { type StdioContext, StdioLink } from "./stdio/link.js";

export interface LinkContext extends StdioContext {
  /** Resolves when what an earlier gateway left behind is gone. The start of a child waits for this. */
  readonly swept?: () => Promise<unknown>;
  /** How addresses are reached. By default it is over our own network. */
  readonly openWire?: OpenWire;
}

/** Never throws: an entry that cannot be used fails when it is opened, like a server that cannot be reached. */
export function linkMaker(context: LinkContext): (spec: ServerSpec, events: LinkEvents) => Link {
  return ({ target }, events) => {
    try {
      switch (target.kind) {
        case "stdio":
          return new ChildLink(target, events, context);
        case "sse":
          return new SseLink(target, events, context.openWire);
        case "http":
          return openHttpLink(target, events, context.openWire);
      }
    } catch (error) {
      return new UnusableLink(target.kind, error);
    }
  };
}

class ChildLink extends StdioLink {
  readonly #swept: LinkContext["swept"];

  constructor(target: StdioTarget, events: LinkEvents, context: LinkContext) {
    super(target, events, context);
    this.#swept = context.swept;
  }

  override async open(signal: AbortSignal): Promise<void> {
    await this.#swept?.();
    await super.open(signal);
  }
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
