// What an executor says and does, frame by frame, to a client that knows the exec-server's wire and nothing else. The
// same for Codex's own and for ours: each test was first made to pass against the real one.

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { until } from "../fixtures/wait.js";
import { type Origin, startOrigin } from "./origin.js";
import { RawPeer } from "./raw-peer.js";
import { wireRequests } from "./wire-requests.js";
import { wireStreams } from "./wire-streams.js";

export interface StartedExecutor {
  readonly url: string;
  readonly token: string;
  stop(): Promise<void>;
}

/** What the parts of the suite work with; filled in before the first test. */
export interface Stage {
  readonly origin: Origin;
  readonly executor: StartedExecutor;
  /** Greeted; closed after the test. */
  peer(): Promise<RawPeer>;
  /** Not greeted. */
  silentPeer(): Promise<RawPeer>;
}

export function wireSuite(name: string, start: () => Promise<StartedExecutor>): void {
  describe(`${name}, frame by frame`, () => {
    let origin: Origin;
    let executor: StartedExecutor;
    const peers: RawPeer[] = [];
    const kept = (peer: RawPeer) => {
      peers.push(peer);
      return peer;
    };
    const stage: Stage = {
      get origin() {
        return origin;
      },
      get executor() {
        return executor;
      },
      peer: async () => kept(await RawPeer.ready(executor.url, executor.token)),
      silentPeer: async () => kept(await RawPeer.open(executor.url, executor.token)),
    };
    beforeAll(async () => {
      origin = await startOrigin();
      executor = await start();
    });
    afterEach(async () => {
      for (const peer of peers.splice(0)) await peer.close();
    });
    afterAll(async () => {
      await executor.stop();
      await origin.close();
    });

    describe("the upgrade", () => upgrades(stage));
    describe("the handshake", () => handshake(stage));
    describe("frames", () => frames(stage));
    describe("requests", () => wireRequests(stage));
    describe("streams", () => wireStreams(stage));
  });
}

function upgrades(stage: Stage): void {
  const statusFor = (headers: Record<string, string>) =>
    new Promise<number | undefined>((resolve) => {
      const ws = new WebSocket(stage.executor.url, { headers });
      ws.on("error", () => {});
      ws.on("open", () => {
        resolve(101);
        ws.terminate();
      });
      ws.on("unexpected-response", (_request, response) => {
        resolve(response.statusCode);
        response.destroy();
      });
    });
  const authorization = () => ({ authorization: `Bearer ${stage.executor.token}` });

  it("needs the token, as a bearer [exec-7] [exec-keep]", async () => {
    expect(await statusFor({})).toBe(401);
    expect(await statusFor({ authorization: "Bearer wrong" })).toBe(401);
    expect(await statusFor({ authorization: `Basic ${stage.executor.token}` })).toBe(401);
    expect(await statusFor(authorization())).toBe(101);
  });

  it("is not for web pages: with an Origin it is refused, token or not [exec-keep]", async () => {
    expect(await statusFor({ ...authorization(), origin: "http://localhost" })).toBe(403);
  });
}

function handshake(stage: Stage): void {
  const REQUEST = { method: "GET", url: "http://127.0.0.1:1/", headers: [], requestId: "r", streamResponse: false };

  it("comes before everything else [exec-keep]", async () => {
    const peer = await stage.silentPeer();
    expect((await peer.call("http/request", REQUEST)).error?.code).toBe(-32600);
    expect((await peer.call("initialize", {})).error?.code).toBe(-32602);
    const { result } = await peer.call("initialize", { clientName: "raw" });
    expect(result.sessionId).toEqual(expect.any(String));
    expect((await peer.call("http/request", REQUEST)).error?.code).toBe(-32600);
    peer.send({ method: "initialized", params: {} });
    // Nothing listens there: it was tried.
    expect((await peer.call("http/request", REQUEST)).error?.code).toBe(-32603);
    expect((await peer.call("initialize", { clientName: "raw" })).error?.code).toBe(-32600);
    expect(peer.isClosed).toBe(false);
  });

  it("takes members that it does not know, and null for no session [exec-keep]", async () => {
    const peer = await stage.silentPeer();
    const { result } = await peer.call("initialize", { clientName: "x", resumeSessionId: null, somebodys: { own: 1 } });
    expect(result.sessionId).toEqual(expect.any(String));
  });

  it("gives each client a session of its own [exec-keep]", async () => {
    const ids = new Set<string>();
    for (let n = 0; n < 3; n++) {
      const peer = await stage.silentPeer();
      ids.add((await peer.call("initialize", { clientName: "raw" })).result.sessionId);
    }
    expect(ids.size).toBe(3);
  });

  it("refuses a session that nobody knows, and takes the client anew on the same socket [exec-keep]", async () => {
    const peer = await stage.silentPeer();
    const resume = { clientName: "raw", resumeSessionId: "6f1c1f0e-1111-4222-8333-444455556666" };
    const refused = await peer.call("initialize", resume);
    expect(refused.error?.code).toBe(-32600);
    expect(refused.error?.message).toContain("unknown session id");
    expect((await peer.call("initialize", { clientName: "raw" })).result.sessionId).toEqual(expect.any(String));
  });

  it("goes on with a session whose socket was lost [exec-keep]", async () => {
    const first = await stage.silentPeer();
    const { sessionId } = (await first.call("initialize", { clientName: "raw" })).result;
    first.send({ method: "initialized", params: {} });
    expect((await first.call("nope")).error?.code).toBe(-32601);
    await first.close();
    // Until the executor has noticed, the session still has its old socket.
    const resume = { clientName: "raw", resumeSessionId: sessionId };
    await expect
      .poll(async () => {
        const peer = await stage.silentPeer();
        const { result } = await peer.call("initialize", resume);
        if (result === undefined) return undefined;
        peer.send({ method: "initialized", params: {} });
        const url = `${stage.origin.url}/fine`;
        return [result.sessionId, (await peer.call("http/request", { ...REQUEST, url })).result?.status];
      })
      .toEqual([sessionId, 200]);
  });
}

function frames(stage: Stage): void {
  it("have no jsonrpc member, and ids come back as they were [exec-keep]", async () => {
    const peer = await stage.peer();
    for (const id of ["text", "", 0, -7, 9_007_199_254_740_991]) {
      const answer = await peer.call("nope", {}, id);
      expect(answer).toEqual({ id, error: { code: -32601, message: expect.any(String) } });
    }
  });

  it("may ask for anything: what is unknown is answered so [exec-keep]", async () => {
    const peer = await stage.silentPeer();
    expect((await peer.call("nope")).error?.code).toBe(-32601);
    await peer.call("initialize", { clientName: "raw" });
    peer.send({ method: "initialized" });
    expect((await peer.call("nope", null)).error?.code).toBe(-32601);
    // What Codex asks besides. Refused or not: answered.
    for (const method of ["fs/getMetadata", "environment/info", "environmentConfig/read"]) {
      await peer.call(method, { path: "file:///nope/.git", sandbox: null });
    }
    expect(peer.isClosed).toBe(false);
  });

  it("may be binary, or in pieces; pings are answered [exec-keep]", async () => {
    const peer = await stage.peer();
    peer.ws.send(Buffer.from('{"id":"binary","method":"nope"}'), { binary: true });
    expect((await peer.answer("binary")).error?.code).toBe(-32601);
    peer.ws.send('{"id":"pieces",', { fin: false });
    peer.ws.send('"method":"nope"}', { fin: true });
    expect((await peer.answer("pieces")).error?.code).toBe(-32601);
    const pong = new Promise<string>((resolve) => peer.ws.once("pong", (data) => resolve(data.toString())));
    peer.ws.ping("there?");
    expect(await pong).toBe("there?");
  });

  const BROKEN = [
    "{",
    "[]",
    "1",
    '{"id":true,"method":"nope"}',
    '{"id":1.5,"method":"nope"}',
    '{"id":null,"method":"nope"}',
    '[{"id":1,"method":"nope"}]',
  ];
  it.each(BROKEN)("get an error where they are none, and the connection stays: %s [exec-keep]", async (broken) => {
    const peer = await stage.peer();
    const before = peer.frames.length;
    peer.send(broken);
    const answer = await until("an answer", () => peer.frames[before]);
    expect(answer.error?.code).toBe(-32600);
    expect((await peer.call("nope")).error?.code).toBe(-32601);
  });

  it("that say initialized a second time are passed over, and the connection stays [exec-keep]", async () => {
    const peer = await stage.peer();
    peer.send({ method: "initialized", params: {} });
    expect((await peer.call("nope")).error?.code).toBe(-32601);
  });
}
