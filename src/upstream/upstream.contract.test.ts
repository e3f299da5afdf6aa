// What the pipeline relies on of every Upstream, whatever carries it: the same tests over stdio, HTTP, the old HTTP+SSE,
// executors and mailboxes, with real servers in processes of their own.

import { it as base, describe, expect, vi } from "vitest";
import { temporaryFolder } from "../../test/fixtures/folders.js";
import { entry, listed, start as startGateway } from "../../test/fixtures/gateways.js";
import { serverFile, startHttpServer } from "../../test/fixtures/http-server.js";
import { TestBroker } from "../../test/fixtures/mailbox/test-broker.js";
import { SUPERVISED } from "../../test/fixtures/spec.js";
import { OFFICE, startVia } from "../../test/fixtures/via.js";
import { defaultSupervision } from "../config/config.js";
import type { Caller, NotificationText } from "../contracts/caller.js";
import { type OwnName, ownName } from "../contracts/names.js";
import type { ServerSpec, Target } from "../contracts/server-spec.js";
import type { UpstreamCall } from "../contracts/upstream.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import {
  type HopChanges,
  parseMessage,
  type RequestMessage,
  type ResponseMessage,
  requestText,
} from "../protocol/message.js";
import type { Era } from "../protocol/modern.js";
import { type Reply, replyText } from "../protocol/reply.js";
import { Reaper } from "../runtime/processes/reaper.js";
import { hashStateDir } from "../runtime/processes/reaper-marker.js";
import { ServerDriver } from "./driver.js";
import { EVERY_CAPABILITY } from "./era/handshake.js";
import type { OpenRequester } from "./http/requester.js";
import { linkMaker } from "./links.js";

/** Above what anything here takes on a busy machine; only reached where a test fails. */
const SOON = { timeout: 60_000, interval: 20 };

class TestCaller implements Caller {
  readonly principal = { id: "tester", role: "default" };
  readonly sessionKey: string;
  readonly era = "legacy";
  readonly logLevel = undefined;
  readonly version = "2025-11-25";
  readonly capabilities: JsonObject = { sampling: {}, elicitation: {}, roots: {} };
  readonly clientInfo: JsonObject = { name: "test" };
  readonly heard: JsonObject[] = [];
  readonly asked: RequestMessage[] = [];
  answer: JsonObject = {};
  onHeard: () => void = () => {};

  constructor(sessionKey: string) {
    this.sessionKey = sessionKey;
  }

  setLogLevel(): void {}

  notify({ text }: NotificationText): void {
    this.heard.push(JSON.parse(text) as JsonObject);
    this.onHeard();
  }

  async ask(request: RequestMessage): Promise<ResponseMessage> {
    this.asked.push(request);
    return parseMessage(JSON.stringify({ jsonrpc: "2.0", id: "agent", result: this.answer })) as ResponseMessage;
  }
}

class TestCall implements UpstreamCall {
  readonly caller: Caller;
  method = "tools/call";
  readonly subject: OwnName;
  readonly progressToken: string | undefined;
  readonly params: JsonObject;
  reply: (reply: Reply) => void = () => {};
  readonly answered: Promise<JsonObject>;

  constructor(caller: Caller, tool: string, args: JsonObject = {}, progressToken?: string) {
    this.caller = caller;
    this.subject = ownName(tool);
    this.params = { name: tool, arguments: args };
    this.progressToken = progressToken;
    this.answered = new Promise((resolve) => {
      this.reply = (reply) => void replyText(reply, '"mine"').then((text) => resolve(JSON.parse(text) as JsonObject));
    });
  }

  render(id: number, changes?: HopChanges): string {
    const _meta = this.progressToken === undefined ? undefined : { progressToken: id };
    const params = { ...this.params, _meta };
    return requestText(id, this.method, params, changes);
  }
}

/** What is done when a test is over, the last first. Each has its own: the tests of one kind run side by side. */
type CleanUp = (() => Promise<unknown>)[];

const it = base.extend("cleanUp", ({ task: _task }, { onCleanup }): CleanUp => {
  const acts: CleanUp = [];
  onCleanup(async () => {
    for (const act of acts.splice(0).reverse()) await act();
  });
  return acts;
});

const startHttp = (cleanUp: CleanUp, name: string, era: Era, port = 0, how: "--http" | "--sse" = "--http") =>
  startHttpServer(cleanUp, name, ["--era", era], { port, how });

/** `again` brings a server back that has died: an HTTP server is not ours to start. */
interface Kind {
  readonly name: string;
  readonly era: Era;
  target(
    fixtureName: string,
    cleanUp: CleanUp,
  ): Promise<{ target: Target; again(): Promise<void>; openRequester?: OpenRequester }>;
}

const kindsOf = (era: Era): readonly Kind[] => [
  {
    name: `stdio, ${era}`,
    era,
    async target(name) {
      const target: Target = {
        kind: "stdio",
        command: process.execPath,
        args: [serverFile(name), "--era", era],
        env: {},
        cwd: undefined,
      };
      return { target, again: async () => {} };
    },
  },
  {
    name: `http, ${era}`,
    era,
    async target(name, cleanUp) {
      const { url } = await startHttp(cleanUp, name, era);
      const again = async () => void (await startHttp(cleanUp, name, era, Number(new URL(url).port)));
      return { target: { kind: "http", url, headers: {} }, again };
    },
  },
];

const oldSse: Kind = {
  name: "the old HTTP+SSE",
  era: "legacy",
  async target(name, cleanUp) {
    const { url } = await startHttp(cleanUp, name, "legacy", 0, "--sse");
    const again = async () => void (await startHttp(cleanUp, name, "legacy", Number(new URL(url).port), "--sse"));
    return { target: { kind: "sse", url, headers: {} }, again };
  },
};

const executorKind = (how: "dialled" | "dialled in", era: Era): Kind => ({
  name: `http through an executor that ${how === "dialled" ? "is dialled" : "dials in [exec-8]"}, ${era}`,
  era,
  async target(name, cleanUp) {
    const { url } = await startHttp(cleanUp, name, era);
    const again = async () => void (await startHttp(cleanUp, name, era, Number(new URL(url).port)));
    const via = await startVia(how);
    cleanUp.push(() => via.close());
    return { target: { kind: "http", url, headers: {}, via: OFFICE }, again, openRequester: via.openRequester };
  },
});

/** A gateway that shares the server through a broker. Resolves with what closes it. */
async function shareServer(
  cleanUp: CleanUp,
  broker: string,
  name: string,
  era: Era,
  stateDir: string,
): Promise<() => Promise<void>> {
  const mcpServers = { [name]: entry(name, ["--era", era]) };
  const share = { broker, as: "studio", token: "studio-token" };
  const machine = await startGateway({ mcpServers, share }, { stateDir, lasting: true });
  const close = () => machine.close({ drainMs: 0 });
  cleanUp.push(close);
  await machine.listen({ host: "127.0.0.1", port: 0 });
  await listed(machine, name);
  return close;
}

/** Behind a mailbox the server is the machine's to keep: nobody here brings one back that has died. */
const mailboxKind = (era: Era): Kind & { share(name: string, cleanUp: CleanUp): Promise<SharedMachine> } => ({
  name: `a mailbox, ${era}`,
  era,
  async share(name, cleanUp) {
    const broker = await TestBroker.open();
    cleanUp.push(() => broker.end());
    const stateDir = temporaryFolder("toolway-contract-");
    let close = await shareServer(cleanUp, broker.url, name, era, stateDir);
    const target: Target = {
      kind: "mailbox",
      mailbox: "studio",
      broker: broker.url,
      token: "worker-token",
      awayWaitMs: 60_000,
    };
    const comeBack = async () => {
      close = await shareServer(cleanUp, broker.url, name, era, stateDir);
    };
    return { target, again: async () => {}, goAway: () => close(), comeBack };
  },
  target(name, cleanUp) {
    return this.share(name, cleanUp);
  },
});

interface SharedMachine {
  readonly target: Target;
  again(): Promise<void>;
  goAway(): Promise<void>;
  comeBack(): Promise<void>;
}

/** What a config makes of an entry with a mailbox, besides its target. */
const OF_MAILBOX: Partial<ServerSpec> = { era: "modern", supervision: defaultSupervision("mailbox") };

/** Each has a reaper that knows its own children alone. */
let starts = 0;

async function start(cleanUp: CleanUp, kind: Kind, name: string, options: Partial<ServerSpec> = {}) {
  const { target, again, openRequester } = await kind.target(name, cleanUp);
  const reaper = new Reaper({ stateHash: hashStateDir(`contract ${process.pid} ${++starts}`), env: process.env });
  const spec: ServerSpec = {
    name,
    target,
    isolation: "shared",
    connectTimeoutMs: 60_000,
    callTimeoutMs: 60_000,
    ...SUPERVISED,
    ...(target.kind === "mailbox" ? OF_MAILBOX : {}),
    ...options,
  };
  let skippedMs = 0;
  const now = () => performance.now() + skippedMs;
  /** The time of the upstream goes on by so much at once, that of its server does not. */
  const skip = (ms: number) => {
    skippedMs += ms;
  };
  const notifications: { method: string; caller: Caller | undefined }[] = [];
  const states: string[] = [];
  const upstream: ServerDriver = new ServerDriver(
    spec,
    undefined,
    { clientInfo: { name: "test", version: "1" }, capabilities: EVERY_CAPABILITY },
    {
      now,
      random: Math.random,
      makeLink: linkMaker({ reaper, env: process.env, ...(openRequester === undefined ? {} : { openRequester }) }),
    },
    {
      onReady: () => {},
      onNotification: ({ method }, caller) => notifications.push({ method, caller }),
      onState: () => states.push(upstream.state),
    },
  );
  const ticker = setInterval(() => upstream.tick(now()), 50);
  cleanUp.push(async () => {
    clearInterval(ticker);
    await upstream.stop();
    await reaper.close();
  });
  return { upstream, notifications, states, again, skip };
}

const call = (upstream: ServerDriver, caller: Caller, tool: string, args?: JsonObject, token?: string) => {
  const one = new TestCall(caller, tool, args, token);
  upstream.send(one);
  return one;
};

const textOf = (answer: JsonObject) =>
  ((answer["result"] as JsonObject)["content"] as { text: string }[])[0]?.text as string;

const hasStarted = (upstream: ServerDriver, caller: Caller, label: string) =>
  vi.waitFor(async () => expect(textOf(await call(upstream, caller, "started").answered)).toContain(label), SOON);

const MAILBOXES = [mailboxKind("legacy"), mailboxKind("modern")];

const KINDS: readonly Kind[] = [
  ...kindsOf("legacy"),
  ...kindsOf("modern"),
  oldSse,
  executorKind("dialled", "legacy"),
  executorKind("dialled in", "legacy"),
  executorKind("dialled", "modern"),
  executorKind("dialled in", "modern"),
  ...MAILBOXES,
];

describe.concurrent.each(KINDS)("an upstream over $name", (kind) => {
  it("starts with the first call, and answers it under the asker's id", async ({ cleanUp }) => {
    const { upstream } = await start(cleanUp, kind, "slow");
    expect(upstream.state).toBe("idle");
    const answer = await call(upstream, new TestCaller("a"), "sleep", { ms: 1, label: "x" }).answered;
    expect(answer["id"]).toBe("mine");
    expect(JSON.parse(textOf(answer))).toEqual({ slept: 1, label: "x" });
    expect(upstream.state).toBe("ready");
  });

  it("answers many calls at once, each with its own [crossed-never]", async ({ cleanUp }) => {
    const { upstream } = await start(cleanUp, kind, "slow");
    const caller = new TestCaller("a");
    const calls = Array.from({ length: 60 }, (_, i) =>
      call(upstream, caller, "sleep", { ms: (i * 7) % 40, label: `c${i}` }),
    );
    const answers = await Promise.all(calls.map(({ answered }) => answered));
    expect(answers.map((answer) => JSON.parse(textOf(answer)).label)).toEqual(calls.map((_, i) => `c${i}`));
    expect(upstream.inFlight).toBe(0);
  });

  it("gives progress to the caller under the caller's token, and lets it extend the deadline", async ({ cleanUp }) => {
    const { upstream, skip } = await start(cleanUp, kind, "slow", { callTimeoutMs: 10_000 });
    const caller = new TestCaller("a");
    await call(upstream, caller, "started").answered;
    caller.onHeard = () => {
      if (caller.heard.length <= 4) skip(6_000);
    };
    const answer = await call(upstream, caller, "sleep", { ms: 600, everyMs: 100 }, '"my token"').answered;
    expect(answer).toHaveProperty("result");
    // It was answered when more than twice its time was over.
    expect(caller.heard.length).toBeGreaterThan(3);
    for (const { method, params } of caller.heard) {
      expect(method).toBe("notifications/progress");
      expect(params).toHaveProperty("progressToken", "my token");
    }
  });

  it("fails a call that takes too long, and that call alone", async ({ cleanUp }) => {
    const { upstream, skip } = await start(cleanUp, kind, "slow", { callTimeoutMs: 10_000 });
    const caller = new TestCaller("a");
    const late = call(upstream, caller, "sleep", { ms: 20_000, label: "late" });
    await hasStarted(upstream, caller, "late");
    skip(9_000);
    const good = call(upstream, caller, "sleep", { ms: 100, label: "good" });
    skip(1_000);
    expect(await late.answered).toMatchObject({
      error: { code: -31004, message: expect.stringContaining("10000 ms") },
    });
    expect(await good.answered).toHaveProperty("result");
    expect(upstream.state).toBe("ready");
    await vi.waitFor(async () => {
      const cancelled = JSON.parse(textOf(await call(upstream, caller, "cancelled").answered)) as { label: string }[];
      expect(cancelled.map(({ label }) => label)).toEqual(["late"]);
    }, SOON);
  });

  it("tells the server when a call is cancelled", async ({ cleanUp }) => {
    const { upstream } = await start(cleanUp, kind, "slow");
    const caller = new TestCaller("a");
    await call(upstream, caller, "started").answered;
    const gone = call(upstream, caller, "sleep", { ms: 20_000, label: "gone" });
    await hasStarted(upstream, caller, "gone");
    upstream.cancel(gone, "changed my mind");
    expect(await gone.answered).toMatchObject({ error: { code: -31008 } });
    await vi.waitFor(async () => {
      expect(textOf(await call(upstream, caller, "cancelled").answered)).toContain("gone");
    }, SOON);
  });

  it("says that the outcome is unknown when the server dies in a call, and the next call works [unknown-is-said]", async ({
    cleanUp,
  }) => {
    const { upstream, again } = await start(cleanUp, kind, "crash");
    const caller = new TestCaller("a");
    const before = JSON.parse(textOf(await call(upstream, caller, "pid").answered)) as { pid: number };
    const answer = await call(upstream, caller, "crash").answered;
    expect(answer).toMatchObject({ error: { code: -31003, message: expect.stringMatching(/unknown/i) } });
    await again();
    const after = JSON.parse(textOf(await call(upstream, caller, "pid").answered)) as { pid: number };
    expect(after.pid).not.toBe(before.pid);
  });

  it("carries a server's question to the caller whose call caused it, and the answer back", async ({ cleanUp }) => {
    const { upstream } = await start(cleanUp, kind, "asker");
    const caller = new TestCaller("a");
    caller.answer = { roots: [{ uri: "file:///tmp", name: "tmp" }] };
    const answer = await call(upstream, caller, "roots").answered;
    expect(caller.asked.map(({ method }) => method)).toEqual(["roots/list"]);
    expect(textOf(answer)).toContain("file:///tmp");
  });

  it("passes on a server's own error as it is", async ({ cleanUp }) => {
    const { upstream } = await start(cleanUp, kind, "slow");
    const odd = new TestCall(new TestCaller("a"), "x");
    odd.method = "no/such/method";
    odd.render = (id, changes) => requestText(id, "no/such/method", {}, changes);
    upstream.send(odd);
    expect(await odd.answered).toMatchObject({ id: "mine", error: { code: -32601 } });
  });

  it("answers what waits when it is stopped, and starts nothing again", async ({ cleanUp }) => {
    const { upstream } = await start(cleanUp, kind, "slow");
    const caller = new TestCaller("a");
    await call(upstream, caller, "started").answered;
    const open = call(upstream, caller, "sleep", { ms: 20_000 });
    await upstream.stop();
    expect(await open.answered).toHaveProperty("error");
    expect(await call(upstream, caller, "started").answered).toMatchObject({ error: { code: -31001 } });
  });
});

describe.concurrent.each(MAILBOXES)("an upstream over $name, and the machine behind it", (kind) => {
  it("is ready all the time while the machine starts a server again that has died", async ({ cleanUp }) => {
    const { upstream, states } = await start(cleanUp, kind, "crash");
    const caller = new TestCaller("a");
    await call(upstream, caller, "pid").answered;
    expect(states.at(-1)).toBe("ready");
    states.length = 0;
    expect(await call(upstream, caller, "crash").answered).toMatchObject({ error: { code: -31003 } });
    expect(await call(upstream, caller, "pid").answered).toHaveProperty("result");
    // No connection of ours was lost: there is nothing here to restart or to count.
    expect(states).toEqual([]);
  });

  it("keeps a call for a machine that goes away, and it runs there when that is back", async ({ cleanUp }) => {
    let machine: SharedMachine | undefined;
    const shared: Kind = {
      ...kind,
      async target(name) {
        machine = await kind.share(name, cleanUp);
        return machine;
      },
    };
    const { upstream, states } = await start(cleanUp, shared, "slow");
    const caller = new TestCaller("a");
    await call(upstream, caller, "started").answered;
    states.length = 0;
    await machine?.goAway();
    const kept = call(upstream, caller, "sleep", { ms: 1, label: "kept" });
    await machine?.comeBack();
    expect(JSON.parse(textOf(await kept.answered))).toEqual({ slept: 1, label: "kept" });
    const started = JSON.parse(textOf(await call(upstream, caller, "started").answered)) as unknown[];
    expect(started).toEqual(["kept"]);
    expect(states).toEqual([]);
  });
});

describe("a server that cannot be started", () => {
  it("is an error that says why and when it is tried again", async ({ cleanUp }) => {
    const kind: Kind = {
      name: "stdio",
      era: "legacy",
      target: async () => ({
        target: {
          kind: "stdio",
          command: process.execPath,
          args: [serverFile("crash"), "--at", "start"],
          env: {},
          cwd: undefined,
        },
        again: async () => {},
      }),
    };
    const { upstream } = await start(cleanUp, kind, "broken");
    const answer = await call(upstream, new TestCaller("a"), "pid").answered;
    expect(answer).toMatchObject({
      error: { code: -31001, message: expect.stringContaining("MISSING_KEY is not set") },
    });
    expect((answer["error"] as { message: string }).message).toContain("tried again");
  });
});
