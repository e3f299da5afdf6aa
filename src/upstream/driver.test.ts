// The moments between two states, with a link that is played: a real process cannot be made to hit them.

import { describe, expect, it, vi } from "vitest";
import { SUPERVISED } from "../../test/fixtures/spec.js";
import type { Caller } from "../contracts/caller.js";
import type { ServerSpec } from "../contracts/server-spec.js";
import type { UpstreamCall } from "../contracts/upstream.js";
import { Fault } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { requestText } from "../protocol/message.js";
import { type Reply, replyText } from "../protocol/reply.js";
import { type DriverEvents, ServerDriver } from "./driver.js";
import type { Link, LinkEvents, Ticket } from "./link/link.js";
import type { ServerLifecycle } from "./server-deps.js";
import { Breaker } from "./supervise/breaker.js";

/** Shakes hands, and answers every call with an empty result. */
class PlayedLink implements Link {
  readonly events: LinkEvents;
  /** The methods of what was sent. */
  readonly sent: string[] = [];
  onEstablished: () => void = () => {};
  isLeaving = false;
  closed = 0;

  constructor(events: LinkEvents) {
    this.events = events;
  }

  async open(): Promise<void> {}

  send(_: string, ticket: Ticket | undefined): void {
    if (ticket === undefined) return;
    this.sent.push(ticket.method);
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

function supervise(
  onLink: (link: PlayedLink, nth: number) => void,
  events: Partial<DriverEvents> = {},
  now = () => performance.now(),
  lifecycle?: ServerLifecycle,
  breaker?: Breaker,
) {
  const links: PlayedLink[] = [];
  const driver = new ServerDriver(
    SPEC,
    undefined,
    { clientInfo: {}, capabilities: {} },
    {
      now,
      random: () => 0,
      lifecycle,
      makeLink: (_, events) => {
        const link = new PlayedLink(events);
        links.push(link);
        onLink(link, links.length);
        return link;
      },
    },
    { onReady: () => undefined, onNotification: () => {}, onState: () => {}, ...events },
    breaker === undefined ? {} : { breaker },
  );
  return { driver, links };
}

function call(
  driver: ServerDriver,
  more: Partial<UpstreamCall> = {},
): { answered: Promise<JsonObject>; one: UpstreamCall } {
  let settle: (answer: JsonObject) => void = () => {};
  const answered = new Promise<JsonObject>((resolve) => {
    settle = resolve;
  });
  const one: UpstreamCall = {
    caller: undefined,
    method: "tools/call",
    subject: undefined,
    params: undefined,
    progressToken: undefined,
    render: (id, changes) => requestText(id, "tools/call", undefined, changes),
    reply: (reply: Reply) => void replyText(reply, "1").then((text) => settle(JSON.parse(text) as JsonObject)),
    ...more,
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

it("a call that waits for a start that fails is told nothing of how far the start came [no-double-effect]", async () => {
  const { driver } = supervise((link) => {
    link.open = () => Promise.reject(new Fault("unavailable", "HTTP 502.", { wire: { status: 502, left: true } }));
  });
  const reply = await new Promise<Reply>((resolve) => void call(driver, { reply: resolve }));
  expect(reply).toMatchObject({ kind: "error", fault: { code: "unavailable", wire: undefined } });
  await driver.stop();
});

it("a server that is started again is tried by the next call, however long its breaker was to be open", async () => {
  const breaker = new Breaker({ failures: 1, openMs: 3_600_000 });
  breaker.faulted(0, performance.now());
  const { driver } = supervise(() => {}, {}, undefined, undefined, breaker);
  const caller = { principal: { id: "anna", role: "agent" }, sessionKey: "s" } as Caller;
  expect(await call(driver, { caller }).answered).toMatchObject({ error: { code: -31001 } });
  driver.ensure();
  await vi.waitFor(() => expect(driver.isReady).toBe(true));
  expect(await call(driver, { caller }).answered).toHaveProperty("result");
  expect(breaker.circuit).toBe("closed");
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

/** Takes a call back, and gives what its fault says of whether it left. */
async function takenBack(driver: ServerDriver, more: Partial<UpstreamCall> = {}): Promise<boolean | undefined> {
  const reply = await new Promise<Reply>((reply) => {
    const { one } = call(driver, { ...more, reply });
    driver.cancel(one, "enough");
  });
  if (reply.kind !== "error" || reply.fault?.code !== "cancelled") throw new Error("It was not taken back.");
  return reply.fault.wire?.left;
}

it("a call that is taken back while its server starts says that it never left, unless it was sent before [unknown-is-said]", async () => {
  const { driver } = supervise((link) => {
    link.open = () => new Promise(() => {});
  });
  expect(await takenBack(driver)).toBe(false);
  expect(await takenBack(driver, { wasSent: true })).toBeUndefined();
});

it("a call that was sent says that it never left where its link knows so, and is answered by what comes first [unknown-is-said]", async () => {
  let withdraw: Link["withdraw"];
  const { driver, links } = supervise((link) => {
    link.send = (text, ticket) => {
      if (ticket?.method !== "tools/call") PlayedLink.prototype.send.call(link, text, ticket);
    };
    Object.defineProperty(link, "withdraw", { get: () => withdraw });
  });
  driver.ensure();
  await vi.waitFor(() => expect(driver.isReady).toBe(true));
  expect(await takenBack(driver)).toBeUndefined();
  for (const [answer, left] of [
    [() => true, false],
    [() => false, undefined],
    [async () => true, false],
    [async () => false, undefined],
  ] as const) {
    withdraw = answer;
    expect(await takenBack(driver)).toBe(left);
  }
  withdraw = () => Promise.resolve(true);
  expect(await takenBack(driver, { wasSent: true })).toBeUndefined();
  // The server's answer was faster than what the link was asked for.
  withdraw = (ticket) => {
    links[0]?.events.onMessage(Buffer.from(`{"jsonrpc":"2.0","id":${ticket.id},"result":{}}`), undefined);
    return Promise.resolve(true);
  };
  await expect(takenBack(driver)).rejects.toThrow("not taken back");
  // The connection ends while the link is asked: what may be made again is not, once its agent has taken it back.
  withdraw = () => {
    links[0]?.events.onClosed(new Fault("unavailable", "It went away."));
    return Promise.resolve(true);
  };
  const caller = { principal: { id: "anna", role: "agent" }, sessionKey: "s" } as Caller;
  expect(await takenBack(driver, { caller, method: "tools/list" })).toBeUndefined();
  expect(driver.inFlight).toBe(0);
  await driver.stop();
});

it("a call is refused where too many wait already [bounded]", async () => {
  const { driver } = supervise((link) => {
    link.open = () => new Promise(() => {});
  });
  for (let i = 0; i < 1_000; i++) call(driver);
  expect(await call(driver).answered).toMatchObject({ error: { code: -31006 } });
  expect(driver.inFlight).toBe(1_000);
});

describe("a call of a tool on a new connection", () => {
  const OF_TOOL = { isOfTool: true };
  const CHANGED = new Fault("denied", "It changed.");

  /** A server whose tools are read when the test says so; each reading is one promise. */
  function unread(onLink: (link: PlayedLink, nth: number) => void = () => {}, clock = { nowMs: 0 }) {
    const readings: ((why?: string) => void)[] = [];
    const read = () => new Promise<string | undefined>((resolve) => void readings.push(resolve));
    const events = { onReady: vi.fn(read), readTools: vi.fn(read) };
    return { ...supervise(onLink, events, () => clock.nowMs), readings, events, clock };
  }

  it("waits until its tools were read, and is judged by them once more; other calls do not wait [host-12]", async () => {
    const { driver, links, readings } = unread();
    const good = call(driver, OF_TOOL);
    const changed = call(driver, { ...OF_TOOL, refusal: () => CHANGED });
    expect(await call(driver, { method: "prompts/get" }).answered).toHaveProperty("result");
    expect(links[0]?.sent).not.toContain("tools/call");
    expect(driver.inFlight).toBe(2);
    readings[0]?.();
    expect(await changed.answered).toMatchObject({ error: { code: -31007, message: "It changed." } });
    expect(await good.answered).toHaveProperty("result");
    // From here on nothing is asked: who is called was judged by these tools.
    const refusal = vi.fn(() => CHANGED);
    expect(await call(driver, { ...OF_TOOL, refusal }).answered).toHaveProperty("result");
    expect(refusal).not.toHaveBeenCalled();
    await driver.stop();
  });

  it("is refused where they cannot be read, and the next one has them read again [host-12]", async () => {
    const { driver, links, readings, events } = unread();
    const refused = call(driver, OF_TOOL);
    await vi.waitFor(() => expect(readings).toHaveLength(1));
    readings[0]?.("it has no list");
    expect(await refused.answered).toMatchObject({
      error: {
        code: -31001,
        message: expect.stringMatching(/could not be read: it has no list\..*toolway reload played/),
      },
    });
    const two = [call(driver, OF_TOOL), call(driver, OF_TOOL)];
    expect(events.readTools).toHaveBeenCalledTimes(1);
    expect(links[0]?.sent).not.toContain("tools/call");
    readings[1]?.();
    for (const { answered } of two) expect(await answered).toHaveProperty("result");
    await driver.stop();
  });

  it("waits no longer than its own time, and can be cancelled meanwhile [bounded]", async () => {
    const { driver, readings, clock } = unread();
    const late = call(driver, OF_TOOL);
    await vi.waitFor(() => expect(readings).toHaveLength(1));
    const cancelled = call(driver, OF_TOOL);
    driver.cancel(cancelled.one, "enough");
    expect(await cancelled.answered).toMatchObject({ error: { code: -31008 } });
    clock.nowMs += SPEC.callTimeoutMs - 1;
    driver.tick(clock.nowMs);
    expect(driver.inFlight).toBe(1);
    clock.nowMs += 1;
    driver.tick(clock.nowMs);
    expect(await late.answered).toMatchObject({ error: { message: expect.stringContaining("within 5000 ms") } });
    // Who comes later has what the reading brings.
    const later = call(driver, OF_TOOL);
    readings[0]?.();
    expect(await later.answered).toHaveProperty("result");
    await driver.stop();
  });

  it("has the whole of its time, whoever waited before it or took its call back [bounded]", async () => {
    const { driver, readings, clock } = unread();
    const first = call(driver, OF_TOOL);
    await vi.waitFor(() => expect(readings).toHaveLength(1));
    clock.nowMs += SPEC.callTimeoutMs - 1;
    const second = call(driver, OF_TOOL);
    clock.nowMs += 1;
    driver.tick(clock.nowMs);
    expect(await first.answered).toMatchObject({ error: { message: expect.stringContaining("within 5000 ms") } });
    expect(driver.inFlight).toBe(1);
    driver.cancel(second.one, "enough");
    clock.nowMs += SPEC.callTimeoutMs - 2;
    const third = call(driver, OF_TOOL);
    clock.nowMs += 2;
    driver.tick(clock.nowMs);
    expect(driver.inFlight).toBe(1);
    readings[0]?.();
    expect(await third.answered).toHaveProperty("result");
    await driver.stop();
  });

  it("waits for the tools of the next one where this one dies, once only, and an old reading opens nothing [host-12]", async () => {
    const { driver, links, readings, clock } = unread();
    const waits = call(driver, { ...OF_TOOL, refusal: () => CHANGED });
    const die = (nth: number) => links[nth]?.events.onClosed(new Fault("unavailable", "It died."));
    await vi.waitFor(() => expect(readings).toHaveLength(1));
    clock.nowMs += 60_000;
    die(0);
    await vi.waitFor(() => expect(readings).toHaveLength(2));
    readings[0]?.();
    await call(driver, { method: "prompts/get" }).answered;
    expect(links[1]?.sent).not.toContain("tools/call");
    readings[1]?.();
    expect(await waits.answered).toMatchObject({ error: { code: -31007 } });
    die(1);

    clock.nowMs += 60_000;
    const twice = call(driver, OF_TOOL);
    for (const nth of [2, 3]) {
      await vi.waitFor(() => expect(readings).toHaveLength(nth + 1));
      clock.nowMs += 60_000;
      die(nth);
    }
    expect(await twice.answered).toMatchObject({
      error: { code: -31001, message: expect.stringContaining("It died.") },
    });
    await driver.stop();
  });
});

describe("a call of a tool whose server another gateway is to run", () => {
  const OF_TOOL = { isOfTool: true };
  const MOVED = new Fault("unavailable", "Another runs it.", { reason: "moved" });

  /** A server whose tools cannot be read where `isLeaving`, and can elsewhere. */
  function moving(isLeaving: (nth: number) => boolean) {
    const read = vi.fn(async () => (links.at(-1)?.isLeaving === true ? "it was moved" : undefined));
    let nowMs = 0;
    const { driver, links } = supervise(
      (link, nth) => {
        link.isLeaving = isLeaving(nth);
      },
      { onReady: read, readTools: read },
      () => nowMs,
    );
    const move = (nth: number) => {
      nowMs += 60_000;
      links[nth]?.events.onClosed(new Fault("outcome-unknown", "It was ended here.", { reason: "moved" }));
    };
    return { driver, links, move, read };
  }

  it("waits for the tools at the next, as often as it moves, and is not refused meanwhile [placement-one]", async () => {
    const { driver, links, move, read } = moving((nth) => nth <= 3);
    const waits = call(driver, OF_TOOL);
    for (const nth of [0, 1, 2]) {
      await vi.waitFor(() => expect(links).toHaveLength(nth + 1));
      await vi.waitFor(() => expect(read).toHaveBeenCalledTimes(nth + 1));
      move(nth);
    }
    expect(await waits.answered).toHaveProperty("result");
    await driver.stop();
  });

  it("goes back unbegun to the gateway that passed it on, which sends it to the next [placement-one]", async () => {
    const { driver, links, move, read } = moving((nth) => nth <= 1);
    const caller = { passesOn: true } as unknown as NonNullable<UpstreamCall["caller"]>;
    const replies: Reply[] = [];
    call(driver, { ...OF_TOOL, caller, reply: (reply) => void replies.push(reply) });
    await vi.waitFor(() => expect(read).toHaveBeenCalledTimes(1));
    move(0);
    expect(replies).toMatchObject([{ kind: "error", fault: { code: "unavailable", reason: "moved" } }]);
    expect(links[0]?.sent).not.toContain("tools/call");
    await driver.stop();
  });

  it("waits where it moved while it was being started [placement-one]", async () => {
    const { driver, links } = supervise((link, nth) => {
      if (nth === 1) link.open = () => Promise.reject(MOVED);
    });
    const waits = call(driver, OF_TOOL);
    await vi.waitFor(() => expect(links).toHaveLength(1));
    expect(await waits.answered).toHaveProperty("result");
    await driver.stop();
  });
});

it("a call notes that it waited for a start, what came then, and whether it was a start after a death [calls-recorded]", async () => {
  const { driver, links } = supervise(() => {});
  const noted: string[] = [];
  const notes = {
    enter: (phase: string) => void noted.push(phase),
    sent: () => void noted.push("server"),
    mended: (by: string) => void noted.push(by),
  };
  await call(driver, { notes }).answered;
  expect(noted.splice(0)).toEqual(["starting", "server", "returning"]);
  await call(driver, { notes }).answered;
  expect(noted.splice(0)).toEqual(["server", "returning"]);
  await driver.rest();
  await call(driver, { notes }).answered;
  expect(noted.splice(0)).toEqual(["starting", "server", "returning"]);
  links.at(-1)?.events.onClosed(new Fault("unavailable", "It died."));
  await call(driver, { notes }).answered;
  expect(noted).toEqual(["starting", "restart", "server", "returning"]);
  await driver.stop();
});

it("whoever counts the starts of a server hears why each began and how it ended [metrics-agree]", async () => {
  const heard: string[] = [];
  const { driver, links } = supervise(
    () => {},
    {},
    () => performance.now(),
    {
      started: (_server, reason) => void heard.push(reason),
      disconnected: (_server, ms, fault) => void heard.push(`${ms >= 0} ${fault}`),
      cameBack: () => void heard.push("back"),
    },
  );
  await call(driver).answered;
  await driver.rest();
  await call(driver).answered;
  links.at(-1)?.events.onClosed(new Fault("unavailable", "It died."));
  await call(driver).answered;
  await driver.stop();
  expect(heard).toEqual(["first", "true undefined", "idle", "true unavailable", "restart", "back", "true undefined"]);
});
