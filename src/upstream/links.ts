// Makes the link that a server's entry means.

import type { ServerPlace } from "../contracts/engine/placement.js";
import type { HttpTarget, ServerSpec } from "../contracts/server-spec.js";
import type { WorkerIdentity } from "../mailbox/join/worker-lines.js";
import { Fault } from "../protocol/errors.js";
import { type HeldBytes, ownHolder } from "../runtime/memory/held-bytes.js";
import { type LiveCredential, withCredential } from "./http/credential-requester.js";
import { openHttpLink } from "./http/link.js";
import { openPoolRequester } from "./http/pool-requester.js";
import type { OpenRequester } from "./http/requester.js";
import type { Link, LinkDescription, LinkEvents } from "./link/link.js";
import { LateMailboxLink, lateLines } from "./mailbox/late-link.js";
import { PassedLink } from "./placed/passed-link.js";
import { PlacedLink } from "./placed/placed-link.js";
import { type StdioContext, type StdioLimits, StdioLink } from "./stdio/link.js";
import type { StderrBatch } from "./stdio/stderr-lines.js";

export interface LinkContext extends Omit<StdioContext, "onStderr"> {
  /** Takes what servers that are children write to stderr. */
  readonly onStderr?: ((server: string, batch: StderrBatch) => void) | undefined;
  /** How addresses are reached. By default it is over our own network. */
  readonly openRequester?: OpenRequester;
  /** The credential of an address, where its entry has one. */
  readonly credentialOf?: (server: string, target: HttpTarget) => LiveCredential | undefined;
  /** The gateway's count of the bytes that it holds. */
  readonly held?: HeldBytes;
  /** Where the one process of a server is that all gateways have together; undefined where each has its own. */
  readonly placeOf?: ((spec: ServerSpec) => ServerPlace | undefined) | undefined;
  /** Who we are at brokers, for servers behind mailboxes. By default the inbox is one that is not kept. */
  readonly worker?: WorkerIdentity | undefined;
}

/**
 * A child that has to end for another gateway to run it: within the three seconds that are left of a handover when its calls had
 * theirs.
 */
const MOVING: Partial<StdioLimits> = { stdinGraceMs: 1_000, termGraceMs: 1_000 };

/** Never throws: an entry that cannot be used fails when it is opened, like a server that cannot be reached. */
export function linkMaker(context: LinkContext): (spec: ServerSpec, events: LinkEvents) => Link {
  const lines = lateLines(context.worker);
  return (spec, events) => {
    const { name, target } = spec;
    const newHolder = () => context.held?.serverHolder(name) ?? ownHolder();
    try {
      switch (target.kind) {
        case "stdio": {
          const child = (theirs: LinkEvents, limits: Partial<StdioLimits> = {}) =>
            new StdioLink(target, theirs, {
              ...context,
              limits: { ...limits, ...context.limits },
              newHolder,
              onStderr: context.onStderr && ((batch) => context.onStderr?.(name, batch)),
            });
          const place = context.placeOf?.(spec);
          if (place === undefined) return child(events);
          return new PlacedLink(events, {
            place,
            own: (theirs) => child(theirs, MOVING),
            passed: (server, theirs) => new PassedLink(server, theirs, newHolder),
          });
        }
        case "http":
        case "sse":
          return openHttpLink(target, events, wireFor(name, target, context), newHolder);
        case "mailbox":
          return new LateMailboxLink(target, events, { lines, newHolder });
      }
    } catch (error) {
      return new UnusableLink(target.kind, error);
    }
  };
}

function wireFor(
  server: string,
  target: HttpTarget,
  { openRequester, credentialOf }: LinkContext,
): OpenRequester | undefined {
  const credential = credentialOf?.(server, target);
  return credential === undefined ? openRequester : withCredential(credential, openRequester ?? openPoolRequester);
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
