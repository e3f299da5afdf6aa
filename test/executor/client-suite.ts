// What the client does with any executor, ours or another's, a real HTTP server behind it.

import { buffer, text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ExecutorClient } from "../../src/executor/client/connect.js";
import { connectExecutor } from "../../src/executor/client/connect.js";
import type { ExecutorRequest } from "../../src/executor/wire/types.js";
import { type Origin, patterned, startOrigin } from "../codex/origin.js";

export interface SuiteExecutor {
  readonly url: string;
  readonly token: string;
  stop(): Promise<void>;
}

export function clientSuite(name: string, start: () => Promise<SuiteExecutor>): void {
  describe(`the client with ${name}`, () => {
    let executor: SuiteExecutor;
    let origin: Origin;
    let client: ExecutorClient;

    beforeAll(async () => {
      executor = await start();
      origin = await startOrigin();
      client = await connectExecutor({ url: executor.url, token: executor.token });
    });

    afterAll(async () => {
      await client?.close();
      await executor?.stop();
      await origin?.close();
    });

    const at = (path: string, more: Partial<ExecutorRequest> = {}): ExecutorRequest => ({
      method: "GET",
      url: `${origin.url}${path}`,
      headers: [],
      ...more,
    });

    it("is refused with a wrong token, and told what to do about it [exec-7]", async () => {
      await expect(connectExecutor({ url: executor.url, token: "wrong" })).rejects.toMatchObject({
        code: "unavailable",
        message: expect.stringMatching(/token/),
      });
    });

    it("brings whole answers with status, headers with repeats, and body [exec-keep]", async () => {
      const { status, headers, body } = await client.request(at("/headers"));
      expect([status, body.toString()]).toEqual([200, "headers"]);
      expect(headers).toContainEqual({ name: "x-upper", value: "Kept" });
      expect(headers.filter((header) => header.name === "set-cookie").map(({ value }) => value)).toEqual([
        "a=1",
        "b=2",
      ]);
      expect((await client.request(at("/status?code=503"))).status).toBe(503);
      expect((await client.request(at("/empty"))).body.length).toBe(0);
    });

    it("sends method, headers and body as they are [exec-keep]", async () => {
      const headers = [
        { name: "x-one", value: "1" },
        { name: "content-type", value: "text/plain" },
      ];
      await client.request(at("/fine", { method: "PUT", headers, body: "with a body" }));
      const seen = origin.seen.at(-1);
      expect([seen?.method, seen?.body.toString()]).toEqual(["PUT", "with a body"]);
      const sent = seen?.headers.map((header) => header.toLowerCase());
      expect(sent?.[(sent?.indexOf("x-one") ?? 0) + 1]).toBe("1");
    });

    it("brings every byte of a streamed answer in order to a reader that stops and goes on [exec-keep]", async () => {
      const size = 3_000_000;
      const { status, body } = await client.requestStream(at(`/bytes?n=${size}`));
      expect(status).toBe(200);
      const got = await buffer(body);
      expect(got.equals(patterned(size))).toBe(true);
      expect(client.inFlight).toBe(0);
    });

    it("has the head before the body comes [exec-keep]", async () => {
      const { body } = await client.requestStream(at("/open"));
      const first = await body[Symbol.asyncIterator]().next();
      expect(String(first.value)).toBe("first");
      body.destroy();
    });

    it("makes requests side by side: one that waits holds up nobody [exec-7]", async () => {
      const waiting = client.request(at("/wait"));
      await expect.poll(() => origin.seen.some(({ path }) => path === "/wait")).toBe(true);
      const others = await Promise.all(Array.from({ length: 20 }, () => client.request(at("/fine"))));
      expect(others.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
      origin.release();
      expect((await waiting).body.toString()).toBe("released");
    });

    it("reports a body that breaks off as an error, after what came [exec-keep]", async () => {
      const { body } = await client.requestStream(at("/short"));
      const chunks: string[] = [];
      const read = async () => {
        for await (const chunk of body) chunks.push(String(chunk));
      };
      await expect(read()).rejects.toMatchObject({ code: "failed" });
      expect(chunks.join("")).toBe("first");
      await expect(client.request(at("/short"))).rejects.toMatchObject({ code: "failed" });
    });

    it("tells failures and refusals apart [exec-keep]", async () => {
      const nobody = { method: "GET", url: "http://127.0.0.1:9/", headers: [] };
      await expect(client.request(nobody)).rejects.toMatchObject({ code: expect.stringMatching(/failed|refused/) });
      await expect(client.request(at("/reset"))).rejects.toMatchObject({ code: "failed", sent: true });
      const ftp = { method: "GET", url: "ftp://example.test/", headers: [] };
      await expect(client.request(ftp)).rejects.toMatchObject({ code: "refused", sent: false });
      await expect(client.request(at("/never", { timeoutMs: 100 }))).rejects.toMatchObject({ code: "failed" });
    });

    it("has redirects followed, or handed out as the answer [exec-keep]", async () => {
      const followed = await client.request(at("/redirect?to=/fine"));
      expect([followed.status, followed.body.toString()]).toEqual([200, "fine"]);
      const stopped = await client.request(at("/redirect?to=/fine", { redirect: "stop" }));
      expect(stopped.status).toBe(302);
      expect(stopped.headers).toContainEqual({ name: "location", value: "/fine" });
    });

    it("sends a request's body in pieces as they come [exec-5]", async () => {
      const whole = patterned(2_000_000);
      async function* pieces() {
        for (let from = 0; from < whole.length; from += 70_000) yield whole.subarray(from, from + 70_000);
      }
      const { status } = await client.request(at("/fine", { method: "POST", body: pieces() }));
      expect(status).toBe(200);
      expect(origin.seen.at(-1)?.body.equals(whole)).toBe(true);
    });

    it("stops a body that is dropped at the server too, where the executor can be told [exec-2]", async () => {
      const { body } = await client.requestStream(at("/open"));
      const before = origin.dropped.length;
      body.destroy();
      expect((await client.request(at("/fine"))).status).toBe(200);
      if (client.extended) await expect.poll(() => origin.dropped.length).toBeGreaterThan(before);
    });

    it("has a fetch that answers as the global one does [exec-keep]", async () => {
      const response = await client.fetch(`${origin.url}/gzip`);
      expect([response.status, response.ok, await response.text()]).toEqual([200, true, "packed"]);
      const posted = await client.fetch(new URL("/fine", origin.url), {
        method: "POST",
        body: new URLSearchParams({ a: "1" }),
      });
      expect(await posted.text()).toBe("fine");
      expect(origin.seen.at(-1)?.body.toString()).toBe("a=1");
      const manual = await client.fetch(`${origin.url}/redirect?to=/fine`, { redirect: "manual" });
      expect([manual.status, manual.headers.get("location")]).toEqual([302, "/fine"]);
      await manual.body?.cancel();
    });

    it("hears that an executor which ends takes its streams with it [exec-3]", async () => {
      const own = await start();
      const other = await connectExecutor({ url: own.url, token: own.token });
      const { body } = await other.requestStream(at("/open"));
      const read = text(body);
      const outcome = expect(read).rejects.toMatchObject({ code: "disconnected" });
      const whole = expect(other.request(at("/never"))).rejects.toMatchObject({ code: "disconnected" });
      await expect.poll(() => origin.seen.filter(({ path }) => path === "/never").length).toBeGreaterThan(1);
      await own.stop();
      await outcome;
      await whole;
      await other.close();
    });
  });
}
