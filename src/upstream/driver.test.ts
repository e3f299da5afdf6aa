// The moments between two states, with a link that is played: a real process cannot be made to hit them.

import { expect, it } from "vitest";
import { SUPERVISED } from "../../test/fixtures/spec.js";
import type { ServerSpec } from "../contracts/server-spec.js";
import type { UpstreamCall } from "../contracts/upstream.js";
import { Fault } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { type Reply, replyText } from "../protocol/reply.js";
import { ServerDriver } from "./driver.js";
import type { Link, LinkEvents, Ticket } from "./link/link.js";

/** Shakes hands, and answers every call with an empty result. */
class PlayedLink implements Link {
  readonly events: LinkEvents;
  onEstablished: () => void = () => {};
  closed = 0;

  constructor(events: LinkEvents) {
    this.events = events;
  }

  async open(): Promise<void> {}

  send(_: string, ticket: Ticket | undefined): void {
    if (ticket === undefined) return;
    const handshake = { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: {} };
    const result = ticket.method === "initialize" ? handshake : {};
    const bytes = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: ticket.id, result }));
    queueMicrotask(() => this.events.onMessage(bytes, undefined));
  }

  established(): void {
    this.onEstablished();
  }

  forget(): void {}

  async close(): Promise<void> {
    this.closed++;
  }

  describe() {
    return { kind: "stdio" } as const;
  }
}

const SPEC: ServerSpec = {
  name: "played",
  target: { kind: "stdio", command: "none", args: [], env: {}, cwd: undefined },
  isolation: "shared",
  connectTimeoutMs: 5_000,
  callTimeoutMs: 5_000,
  ...SUPERVISED,
};

function supervise(onLink: (link: PlayedLink, nth: number) => void) {
  const links: PlayedLink[] = [];
  const driver = new ServerDriver(
    SPEC,
    undefined,
    { clientInfo: {}, capabilities: {} },
    {
      now: () => performance.now(),
      random: () => 0,
      makeLink: (_, events) => {
        const link = new PlayedLink(events);
        links.push(link);
        onLink(link, links.length);
        return link;
      },
    },
    { onReady: () => {}, onNotification: () => {}, onState: () => {} },
  );
  return { driver, links };
}

function call(driver: ServerDriver): { answered: Promise<JsonObject>; one: UpstreamCall } {
  let settle: (answer: JsonObject) => void = () => {};
  const answered = new Promise<JsonObject>((resolve) => {
    settle = resolve;
  });
  const one: UpstreamCall = {
    caller: undefined,
    method: "tools/call",
    subject: undefined,
    progressToken: undefined,
    render: (id) => JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call" }),
    reply: (reply: Reply) => void replyText(reply, "1").then((text) => settle(JSON.parse(text) as JsonObject)),
  };
  driver.send(one);
  return { answered, one };
}

it("a server that is stopped in the moment of its handshake leaves no connection behind [no-orphans]", async () => {
  let stopped: Promise<void> | undefined;
  const { driver, links } = supervise((link) => {
    link.onEstablished = () => {
      stopped = driver.stop();
    };
  });
  const { answered } = call(driver);
  expect(await answered).toMatchObject({ error: { code: -31009 } });
  await stopped;
  expect(links[0]?.closed).toBeGreaterThan(0);
  expect(driver).toMatchObject({ state: "stopped", inFlight: 0 });
});

it("a server that goes away in the moment of its handshake is started anew by the next call", async () => {
  const { driver } = supervise((link, nth) => {
    if (nth === 1) link.onEstablished = () => link.events.onClosed(new Fault("unavailable", "It died."));
  });
  expect(await call(driver).answered).toMatchObject({ error: { code: -31001 } });
  expect(await call(driver).answered).toHaveProperty("result");
  await driver.stop();
});

it("a call that waits can be cancelled, and is answered once", async () => {
  const { driver } = supervise((link) => {
    link.open = () => new Promise(() => {});
  });
  const { answered, one } = call(driver);
  driver.cancel(one, "changed my mind");
  driver.cancel(one, "changed my mind");
  expect(await answered).toMatchObject({ error: { code: -31008, message: "changed my mind" } });
  expect(driver.inFlight).toBe(0);
});

it("a call is refused where too many wait already [bounded]", async () => {
  const { driver } = supervise((link) => {
    link.open = () => new Promise(() => {});
  });
  for (let i = 0; i < 1_000; i++) call(driver);
  expect(await call(driver).answered).toMatchObject({ error: { code: -31006 } });
  expect(driver.inFlight).toBe(1_000);
});
