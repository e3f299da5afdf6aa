import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { histories } from "../../../test/faults/length.js";
import type { MemberState } from "../../contracts/executors.js";
import { MAX_UNACKED_BYTES } from "../../sockets/limits.js";
import type { Socket } from "../../sockets/socket.js";
import { type AnswerHandler, ExecutorError, type ExecutorRequest, type RequestHandle } from "../wire/types.js";
import { ExecutorGroup, type GroupClient, type GroupOptions } from "./group.js";

interface Flight {
  readonly request: ExecutorRequest;
  readonly handler: AnswerHandler;
}

class FakeClient implements GroupClient {
  state: MemberState = "connecting";
  sessionId: string | undefined;
  readonly extended = true;
  lastError: Error | undefined;
  readonly flights: Flight[] = [];
  readonly sockets: Socket[] = [];
  readonly #onState: () => void;

  constructor(onState: () => void) {
    this.#onState = onState;
  }

  get inFlight(): number {
    return this.flights.length;
  }

  start(request: ExecutorRequest, handler: AnswerHandler): RequestHandle {
    const flight = { request, handler };
    this.flights.push(flight);
    return { pause() {}, resume() {}, abort: () => void this.flights.splice(this.flights.indexOf(flight), 1) };
  }

  adopt(socket: Socket): void {
    this.sockets.push(socket);
  }

  abandon(why: string): void {
    if (this.state === "lost") this.become("connecting", new Error(why));
  }

  async close(): Promise<void> {
    this.become("closed");
    while (this.flights.length > 0) this.fail(new ExecutorError("closed", "closed", { sent: true }));
  }

  become(state: MemberState, lastError?: Error): void {
    this.lastError = lastError;
    this.state = state;
    this.#onState();
  }

  finish(): void {
    this.flights.shift()?.handler.onEnd();
  }

  fail(error: ExecutorError): void {
    this.flights.shift()?.handler.onError(error);
  }
}

function rig(urls: readonly string[], more: Partial<GroupOptions> = {}) {
  const clients: FakeClient[] = [];
  const group = new ExecutorGroup({
    name: "office",
    makeClient: (_dial, onState) => {
      const client = new FakeClient(onState);
      clients.push(client);
      return client;
    },
    dial: () => Promise.reject(new Error("never")),
    wall: () => 0,
    ...more,
  });
  group.configure(urls, undefined);
  return { group, clients };
}

class Heard implements AnswerHandler {
  ends = 0;
  error: ExecutorError | undefined;
  onHead(): void {}
  onData(): void {}
  onEnd(): void {
    this.ends++;
  }
  onError(error: ExecutorError): void {
    this.ends++;
    this.error = error;
  }
}

const GET: ExecutorRequest = { method: "GET", url: "http://x/", headers: [] };
const URLS = ["ws://a", "ws://b", "ws://c"];
const turn = () => new Promise((resolve) => setImmediate(resolve));
const lostUnsent = () => new ExecutorError("disconnected", "lost", { sent: false });
const visitor = (sessionId: string | undefined, id = "p", machine: string | undefined = undefined) => ({
  sessionId,
  address: "10.0.0.1:5",
  machine,
  principal: { id, role: "executor" },
});
const socket = () => ({ destroy() {} }) as unknown as Socket;

afterEach(() => {
  vi.useRealTimers();
});

describe("a group of executors", () => {
  it("gives each request to a ready one with the fewest, and tells each end once, whatever happens", async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("start" as const) }),
      fc.record({ kind: fc.constantFrom("finish", "fail", "lose"), at: fc.nat(2) }),
      fc.record({ kind: fc.constantFrom("ready", "lost", "connecting"), at: fc.nat(2) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { group, clients } = rig(URLS);
        const heard: Heard[] = [];
        for (const one of steps) {
          if (one.kind === "start") {
            const before = clients.map(({ inFlight }) => inFlight);
            const ready = clients.filter(({ state }) => state === "ready");
            const mayComeBack = clients.some(({ state }) => state === "lost");
            const least = Math.min(...ready.map(({ inFlight }) => inFlight));
            const handler = new Heard();
            heard.push(handler);
            group.start(GET, handler);
            expect(handler.ends).toBe(0);
            const chosen = clients.findIndex(({ inFlight }, i) => inFlight > (before[i] ?? 0));
            if (ready.length > 0) {
              expect(ready).toContain(clients[chosen]);
              expect(before[chosen]).toBe(least);
            } else {
              await turn();
              expect(chosen).toBe(-1);
              expect(handler.error?.code).toBe(mayComeBack ? undefined : "unavailable");
            }
            continue;
          }
          const client = clients["at" in one ? one.at : 0] as FakeClient;
          if (one.kind === "finish") client.finish();
          else if (one.kind === "fail") client.fail(new ExecutorError("failed", "x", { sent: true }));
          else if (one.kind === "lose") {
            client.fail(lostUnsent());
            await turn();
          } else client.become(one.kind as MemberState);
        }
        const open = clients.reduce((sum, { inFlight }) => sum + inFlight, 0);
        const waits = heard.filter(({ ends }) => ends === 0).length - open;
        const mayWait =
          clients.some(({ state }) => state === "lost") && !clients.some(({ state }) => state === "ready");
        if (mayWait) expect(waits).toBeGreaterThanOrEqual(0);
        else expect(waits).toBe(0);
        await group.close();
        await turn();
        expect(heard.every(({ ends }) => ends === 1)).toBe(true);
      }),
      { numRuns: histories(2_000) },
    );
  });

  it("hands what a lost one never had to another, and to nobody what it may have had", async () => {
    const { group, clients } = rig(URLS.slice(0, 2));
    const [a, b] = clients as [FakeClient, FakeClient];
    a.become("ready");
    const [unsent, sent] = [new Heard(), new Heard()];
    group.start({ ...GET, body: "again" }, unsent);
    group.start(GET, sent);
    b.become("ready");
    a.become("connecting", new Error("gone"));
    a.fail(lostUnsent());
    a.fail(new ExecutorError("disconnected", "lost", { sent: true }));
    await turn();
    expect(b.flights.map(({ request }) => request.body)).toEqual(["again"]);
    expect(sent.error).toMatchObject({ code: "disconnected", sent: true });
    b.finish();
    expect(unsent).toMatchObject({ ends: 1, error: undefined });
  });

  it("keeps requests for one that may come back, and gives them to whoever comes first", async () => {
    const { group, clients } = rig(URLS.slice(0, 2));
    const [a, b] = clients as [FakeClient, FakeClient];
    a.become("ready");
    a.become("lost", new Error("cut"));
    const [first, second, dropped] = [new Heard(), new Heard(), new Heard()];
    group.start({ ...GET, body: "1" }, first);
    group.start({ ...GET, body: "2" }, dropped).abort();
    b.become("ready");
    expect(b.flights.map(({ request }) => request.body)).toEqual(["1"]);
    b.finish();
    b.become("connecting", new Error("gone"));
    group.start(GET, second);
    await turn();
    expect(second.ends).toBe(0);
    a.become("connecting", new Error("it did not come back"));
    expect(second.error).toMatchObject({ code: "unavailable", sent: false });
    expect([first.ends, dropped.ends]).toEqual([1, 0]);
  });

  it("keeps no more than it may [bounded]", async () => {
    const { group, clients } = rig(["ws://a"]);
    clients[0]?.become("ready");
    clients[0]?.become("lost", new Error("cut"));
    const heard = Array.from({ length: 10 }, () => new Heard());
    for (const handler of heard) group.start({ ...GET, body: "x".repeat(1024 * 1024) }, handler);
    await turn();
    expect(heard.filter(({ ends }) => ends === 0)).toHaveLength(MAX_UNACKED_BYTES / (1024 * 1024));
    clients[0]?.become("ready");
    expect(clients[0]?.inFlight).toBe(MAX_UNACKED_BYTES / (1024 * 1024));
  });

  it("does not read a streamed body twice", async () => {
    const { group, clients } = rig(URLS.slice(0, 2));
    for (const client of clients) client.become("ready");
    const heard = new Heard();
    const body = (async function* () {
      yield Buffer.from("once");
    })();
    group.start({ ...GET, body }, heard);
    clients.find(({ inFlight }) => inFlight === 1)?.fail(lostUnsent());
    await turn();
    expect(heard.error?.code).toBe("disconnected");
  });

  it("gives up in the end where each one is lost", async () => {
    const { group, clients } = rig(["ws://a"]);
    clients[0]?.become("ready");
    const heard = new Heard();
    group.start(GET, heard);
    for (let i = 0; i < 10 && heard.ends === 0; i++) {
      clients[0]?.fail(lostUnsent());
      await turn();
    }
    expect(heard.error?.code).toBe("disconnected");
  });

  it("is waited for, and says what to do where none comes", async () => {
    const { group, clients } = rig([]);
    const waiting = group.ready(new AbortController().signal);
    group.adopt(socket(), visitor(undefined));
    clients[0]?.become("ready");
    await waiting;
    const { group: empty } = rig([]);
    const error = await empty.ready(AbortSignal.timeout(10)).catch((reason: ExecutorError) => reason);
    expect(error).toMatchObject({ code: "unavailable", sent: false });
    expect((error as ExecutorError).message).toContain("toolway executor --connect ws://GATEWAY/executors/office");
    const { group: dialled, clients: dials } = rig(["ws://a"]);
    dials[0]?.become("connecting", new Error("nothing listens there"));
    await expect(dialled.ready(AbortSignal.timeout(10))).rejects.toThrow(/nothing listens there\./);
  });

  it("tells whoever only wants to know of the first failure, once all that are dialled have failed [told-why]", async () => {
    const { group, clients } = rig(["ws://a", "ws://b"], { isImpatient: true });
    let told: unknown;
    const waiting = group.ready(new AbortController().signal).catch((reason: unknown) => {
      told = reason;
    });
    clients[0]?.become("connecting", new Error("refused the token (401)"));
    await turn();
    expect(told).toBeUndefined();
    clients[1]?.become("connecting", new Error("nothing listens there"));
    await waiting;
    expect(told).toMatchObject({ code: "unavailable", message: expect.stringContaining("401") });
  });

  it("goes on with the conversation that an executor names, if it is its own", () => {
    const { group, clients } = rig([]);
    group.adopt(socket(), visitor(undefined));
    const [first] = clients as [FakeClient];
    first.sessionId = "s-1";
    first.become("ready");
    first.become("lost", new Error("cut"));
    group.adopt(socket(), visitor("s-1", "somebody else"));
    expect(clients).toHaveLength(2);
    group.adopt(socket(), visitor("s-1"));
    expect(clients).toHaveLength(2);
    expect(first.sockets).toHaveLength(2);
    group.adopt(socket(), visitor("s-2"));
    expect(clients).toHaveLength(3);
  });

  it("does not wait for one whose machine dials in anew: it was restarted, and knows of nothing", () => {
    const { group, clients } = rig([]);
    for (const machine of ["box", "other-box"]) group.adopt(socket(), visitor(undefined, "p", machine));
    for (const client of clients) client.become("ready");
    for (const client of clients) client.become("lost", new Error("cut"));
    // One that still has a conversation is another one of that machine; and so is one with another token.
    group.adopt(socket(), visitor("s-9", "p", "box"));
    group.adopt(socket(), visitor(undefined, "q", "box"));
    for (const client of clients.slice(2)) client.become("ready");
    expect(clients.map(({ state }) => state).slice(0, 2)).toEqual(["lost", "lost"]);
    group.adopt(socket(), visitor(undefined, "p", "box"));
    // Until it can take requests, they wait for whoever comes.
    expect(clients[0]?.state).toBe("lost");
    clients[4]?.become("ready");
    expect(clients.map(({ state }) => state).slice(0, 2)).toEqual(["closed", "lost"]);
    expect(group.status().members.at(-1)?.where).toBe("10.0.0.1:5 (box)");
  });

  it("forgets one that dialled in and is lost for good, and closes those of a revoked token", () => {
    const { group, clients } = rig([]);
    group.adopt(socket(), visitor(undefined));
    group.adopt(socket(), visitor(undefined, "other"));
    for (const client of clients) client.become("ready");
    expect(group.status().members).toHaveLength(2);
    clients[0]?.become("connecting", new Error("too late"));
    expect(group.status()).toMatchObject({ ready: true, members: [{ state: "ready" }] });
    group.dropPrincipals(({ id }) => id === "other");
    expect(clients[1]?.state).toBe("closed");
    expect(group.status()).toMatchObject({ name: "office", ready: false, members: [] });
  });

  it("keeps what stays in the config, and lets what goes end what it is at", () => {
    const { group, clients } = rig(["ws://a", "ws://b"]);
    const [a, b] = clients as [FakeClient, FakeClient];
    for (const client of clients) client.become("ready");
    group.start(GET, new Heard());
    group.start(GET, new Heard());
    group.configure(["ws://b", "ws://c"], undefined);
    expect(clients).toHaveLength(3);
    expect([a.state, b.state]).toEqual(["ready", "ready"]);
    group.start(GET, new Heard());
    expect([a.inFlight, b.inFlight]).toEqual([1, 2]);
    a.finish();
    expect(a.state).toBe("closed");
    group.configure(["ws://b", "ws://c"], "another token");
    expect(clients).toHaveLength(5);
  });

  it("closes one that goes and whose requests do not end after 30 s, and tells them [bounded]", () => {
    vi.useFakeTimers();
    const { group, clients } = rig(["ws://a", "ws://b"]);
    for (const client of clients) client.become("ready");
    const endless = new Heard();
    group.start(GET, endless);
    group.configure(["ws://b"], undefined);
    const [gone] = clients as [FakeClient];
    vi.advanceTimersByTime(29_000);
    expect([gone.state, endless.ends]).toEqual(["ready", 0]);
    vi.advanceTimersByTime(2_000);
    expect([gone.state, endless.ends]).toEqual(["closed", 1]);
    expect(clients[1]?.state).toBe("ready");
  });
});

describe("a group of executors at a gateway that stops", () => {
  const CALL: ExecutorRequest = { method: "POST", url: "http://x/", headers: [] };

  it("sends each away when it has no call under way, uses it until then, and says that another comes in its place [executor-elsewhere]", async () => {
    const { group, clients } = rig([], { makePassed: (_, onState) => new FakeClient(onState) });
    for (const id of ["s1", "s2"]) group.adopt(socket(), visitor(id));
    const [busy, quiet] = clients as [FakeClient, FakeClient];
    for (const client of clients) client.become("ready");
    const heard = new Heard();
    group.start(CALL, heard);
    const [at] = clients.filter(({ inFlight }) => inFlight === 1);
    const idle = at === busy ? quiet : busy;
    // A stream does not end by itself, and holds nobody up.
    idle.start(GET, new Heard());
    group.leave();
    await turn();
    expect([at?.state, idle.state, group.here]).toEqual(["ready", "closed", "ready"]);
    const more = new Heard();
    group.startHere(CALL, more);
    expect(at?.inFlight).toBe(2);
    at?.finish();
    at?.finish();
    await turn();
    expect([heard.error, more.error, at?.state, group.here]).toEqual([undefined, undefined, "closed", "stopping"]);
    // Whoever comes now is told to go elsewhere.
    const closed: number[] = [];
    group.adopt({ close: (code: number) => void closed.push(code) } as unknown as Socket, visitor("s3"));
    expect([closed, clients.length]).toEqual([[1001], 2]);
    // What is asked meanwhile waits for it to come back at another gateway.
    const waits = new Heard();
    group.start(CALL, waits);
    await turn();
    expect(waits.ends).toBe(0);
    group.giveUp();
    await turn();
    expect(waits.error).toMatchObject({ code: "unavailable", sent: false });
  });

  it("that is shut takes nothing of others, and is waited for while a call is under way [executor-elsewhere]", async () => {
    const { group, clients } = rig([]);
    group.adopt(socket(), visitor("s1"));
    const [client] = clients as [FakeClient];
    client.become("ready");
    group.start(CALL, new Heard());
    let isQuiet = false;
    const shut = group.shut().then(() => {
      isQuiet = true;
    });
    const passed = new Heard();
    group.startHere(CALL, passed);
    await turn();
    expect([passed.error?.code, passed.error?.sent, isQuiet, group.here]).toEqual([
      "unavailable",
      false,
      false,
      "stopping",
    ]);
    client.finish();
    await shut;
    expect(client.state).toBe("ready");
  });

  it("is followed by another elsewhere: what was refused there goes to that one, and waits for it [executor-elsewhere]", async () => {
    const passed = new Map<string, FakeClient>();
    const { group } = rig([], {
      makePassed: (gateway, onState) => {
        const client = new FakeClient(onState);
        passed.set(gateway, client);
        return client;
      },
    });
    group.setElsewhere(new Map([["a", "ready"]]));
    const heard = new Heard();
    group.start(CALL, heard);
    const refusedByA = () => {
      passed.get("a")?.become("lost");
      passed.get("a")?.fail(new ExecutorError("unavailable", "No executor.", { sent: false }));
    };
    refusedByA();
    await turn();
    expect(heard.ends).toBe(0);
    group.setElsewhere(new Map([["a", "stopping"]]));
    group.setElsewhere(new Map());
    await turn();
    expect(heard.ends).toBe(0);
    group.setElsewhere(new Map([["b", "ready"]]));
    await turn();
    expect(passed.get("b")?.inFlight).toBe(1);
    passed.get("b")?.finish();
    expect([heard.ends, heard.error]).toEqual([1, undefined]);
    await group.close();
  });
});
