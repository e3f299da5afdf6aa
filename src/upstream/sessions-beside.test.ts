// A server whose sessions have lists of their own, with links that are played: what is read when, and from which session,
// is a question of moments that real servers hit only under load.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Agent, TestCall } from "../../test/fixtures/links/played.js";
import { SUPERVISED } from "../../test/fixtures/spec.js";
import type { AgentProfile, Caller } from "../contracts/caller.js";
import { Fault } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import type { Link, LinkEvents, Ticket } from "./link/link.js";
import { UpstreamServer } from "./server.js";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "hrtime", "performance"] });
});
afterEach(() => void vi.useRealTimers());

/** One session at the server: its tools are its own. */
class PlayedSession implements Link {
  readonly #events: LinkEvents;
  tools: readonly string[] = ["set_tool"];
  gaps = 0;
  lists = 0;
  /** Calls of tools fail on their way, and the session stays. */
  isFailing = false;

  constructor(events: LinkEvents) {
    this.#events = events;
  }

  async open(): Promise<void> {}
  established(): void {}
  forget(): void {}
  async close(): Promise<void> {}
  describe = () => ({ kind: "http" }) as const;

  send(_text: string, ticket: Ticket | undefined): void {
    if (ticket === undefined) return;
    const capabilities = { tools: { listChanged: true } };
    if (ticket.method === "initialize") {
      this.#answer(ticket, { protocolVersion: "2025-11-25", capabilities, serverInfo: { name: "played" } });
    } else if (ticket.method === "tools/list") {
      this.lists++;
      this.#answer(ticket, { tools: this.tools.map((name) => ({ name, inputSchema: { type: "object" } })) });
    } else if (this.isFailing) {
      queueMicrotask(() => this.#events.onFailed(ticket, new Fault("protocol", "Nonsense came."), true));
    } else this.#answer(ticket, {});
  }

  announce(): void {
    this.#events.onMessage(Buffer.from('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'), undefined);
  }

  #answer({ id }: Ticket, result: JsonObject): void {
    queueMicrotask(() =>
      this.#events.onMessage(Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, result })), undefined),
    );
  }
}

const PROFILE: AgentProfile = { capabilities: { sampling: {} } };

/** A server that is up, with a session beside the shared one that an agent has called by. */
async function setUp() {
  const links: PlayedSession[] = [];
  let tools: readonly unknown[] = [];
  const server = new UpstreamServer(
    {
      name: "played",
      target: { kind: "http", url: "http://127.0.0.1:9/mcp", headers: {} },
      isolation: "shared",
      connectTimeoutMs: 5_000,
      callTimeoutMs: 5_000,
      ...SUPERVISED,
      era: "legacy",
    },
    {
      context: {
        now: () => performance.now(),
        random: () => 0,
        makeLink: (_, events) => {
          const link = new PlayedSession(events);
          links.push(link);
          return link;
        },
      },
      events: {
        onIntro: () => {},
        onList: (_, kind, items) => {
          if (kind === "tools") tools = items.map(({ value }) => value["name"]);
        },
        onNotification: () => {},
        onState: () => {},
      },
      clientInfo: { name: "test", version: "1" },
      log: () => {},
      openRequester: () => Promise.reject(new Error("There is no network.")),
    },
  );
  const agent: Caller = Object.assign(new Agent("one"), { profile: PROFILE });
  const call = async () => {
    const one = new TestCall(agent);
    server.upstream(agent).send(one);
    await vi.advanceTimersByTimeAsync(1);
    await one.answer();
  };
  server.start();
  await vi.advanceTimersByTimeAsync(1_000);
  await call();
  await vi.advanceTimersByTimeAsync(1_000);
  const [shared, beside] = links as [PlayedSession, PlayedSession];
  expect(links).toHaveLength(2);
  return { server, shared, beside, call, tools: () => tools, pass: (ms: number) => vi.advanceTimersByTimeAsync(ms) };
}

describe("a change that one session alone told of", () => {
  it("is read though somebody asks while its reading pauses [menu-current]", async () => {
    const { server, beside, call, tools, pass } = await setUp();
    beside.tools = ["set_tool", "new"];
    beside.announce();
    await call();
    // The shared session is read for the call, and the reading that was announced pauses after it.
    await pass(240);
    void server.renew("tools", "asked");
    await pass(20);
    expect(tools()).toEqual(["set_tool"]);
    void server.renew("tools", "asked");
    await pass(20_000);
    expect(tools()).toEqual(["set_tool", "new"]);
    await server.stop();
  });

  it("stays though calls end and agents ask, until the shared session tells of another [menu-current]", async () => {
    const { server, shared, beside, call, tools, pass } = await setUp();
    beside.tools = ["set_tool", "new"];
    beside.announce();
    await pass(1_000);
    expect(tools()).toEqual(["set_tool", "new"]);
    await call();
    await server.renew("tools", "asked");
    expect(tools()).toEqual(["set_tool", "new"]);
    shared.tools = ["set_tool", "other"];
    shared.announce();
    await pass(1_000);
    expect(tools()).toEqual(["set_tool", "other"]);
    await server.stop();
  });

  it("is gone with its session: what the others have is read then", async () => {
    const { server, beside, tools, pass } = await setUp();
    beside.tools = ["set_tool", "new"];
    beside.announce();
    await pass(1_000);
    expect(tools()).toEqual(["set_tool", "new"]);
    for (const connection of server.connections) if (connection.uses > 0) await connection.rest();
    await pass(10_000);
    expect(tools()).toEqual(["set_tool"]);
    await server.stop();
  });
});

it("a list is read again by itself when announcements of it may have been lost [menu-current]", async () => {
  const { server, shared, tools, pass } = await setUp();
  shared.tools = ["set_tool", "unheard"];
  await pass(10_000);
  server.tick(performance.now());
  await pass(10);
  expect(tools()).toEqual(["set_tool"]);
  shared.gaps++;
  server.tick(performance.now());
  await pass(10);
  expect(tools()).toEqual(["set_tool", "unheard"]);
  const { lists } = shared;
  server.tick(performance.now());
  await pass(10_000);
  expect(shared.lists, "once for each gap").toBe(lists);
  await server.stop();
});

it("a list is read for nobody who asks while the breaker is open, though the server is connected [menu-current] [one-bad-server]", async () => {
  const { server, shared, beside, call, pass } = await setUp();
  const isAsked = () => server.renew("tools", "asked") !== undefined || server.renew("tools", "missed") !== undefined;
  await call();
  expect(isAsked()).toBe(true);
  await pass(10_000);
  for (const session of [shared, beside]) session.isFailing = true;
  for (let failures = 0; failures < 5; failures++) await call();
  await pass(3_000);
  const before = shared.lists + beside.lists;
  expect(isAsked()).toBe(false);
  expect(shared.lists + beside.lists).toBe(before);
  await server.stop();
});
