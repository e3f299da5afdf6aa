import { createServer } from "node:http";
import { PassThrough } from "node:stream";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { freePort } from "../../../test/fixtures/free-port.js";
import { heldIo } from "../../../test/fixtures/held-io.js";
import { closeHttp, listenOnLoopback } from "../../../test/fixtures/loopback.js";
import { until } from "../../../test/fixtures/wait.js";
import { logIn } from "./log-in.js";

const ADDRESS = "https://login.example/authorize?x=1";

/** A gateway that begins a login, and says what it was brought. */
function begin(finish: () => object = () => ({ credential: { state: "known" } }), redirectPort?: number) {
  const stdin = new PassThrough();
  const held = heldIo({ stdin });
  const asked: [path: string, body: object][] = [];
  const client = {
    get: async () => ({ redirectPort }),
    post: async (path: string, body: object) => {
      asked.push([path, body]);
      return path.endsWith("/finish") ? finish() : { address: ADDRESS, state: "s" };
    },
  };
  const done = logIn(client, { server: "li near", noBrowser: true }, held.io);
  const redirectUri = () => (asked[0]?.[1] as { redirectUri: string } | undefined)?.redirectUri ?? "";
  return { done, asked, stdin, err: held.err, redirectUri };
}

describe("toolway login", () => {
  it("prints the address, comes back to a port of 127.0.0.1, and hands on what the browser brings", async () => {
    const { done, asked, err, redirectUri } = begin();
    await until("the address", () => err().includes(`${ADDRESS}\n`));
    expect(redirectUri()).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
    expect((await fetch(`${redirectUri()}?state=s&code=c`)).status).toBe(200);
    expect(await done).toEqual({ state: "known" });
    expect(asked.map(([path]) => path)).toEqual(["/servers/li%20near/login", "/servers/li%20near/login/finish"]);
    expect(asked[1]?.[1]).toEqual({ state: "s", code: "c", iss: undefined, error: undefined });
    // Nothing listens any more.
    await expect(fetch(redirectUri())).rejects.toThrow();
  });

  it("that fails at the gateway says so in the browser too [login-guarded]", async () => {
    const { done, err, redirectUri } = begin(() => {
      throw new Error("The login could not be finished: it came from another issuer");
    });
    const failed = expect(done).rejects.toThrow("another issuer");
    await until("the address", () => err().includes(`${ADDRESS}\n`));
    const page = await (await fetch(`${redirectUri()}?state=s&code=c&iss=https%3A%2F%2Fevil.example`)).text();
    expect(page).toContain("could not be finished: it came from another issuer. You can close this page.");
    await failed;
  });

  it("comes back to the port that the config names", async () => {
    const port = await freePort();
    const { done, stdin, err, redirectUri } = begin(undefined, port);
    await until("the address", () => err().includes(`${ADDRESS}\n`));
    expect(redirectUri()).toBe(`http://127.0.0.1:${port}/callback`);
    stdin.write("the-code\n");
    await done;
  });

  it("says what to do where the port that the config names is taken, and begins nothing", async () => {
    const other = createServer();
    onTestFinished(() => closeHttp(other));
    const port = await listenOnLoopback(other);
    const { done, asked } = begin(undefined, port);
    await expect(done).rejects.toMatchObject({
      message: `The port ${port} on 127.0.0.1 cannot be listened on: EADDRINUSE.`,
      hint: 'End what uses it, or change "redirectPort" in the config.',
    });
    expect(asked).toEqual([]);
  });

  it("takes a code that is pasted", async () => {
    const { done, asked, stdin, err } = begin();
    await until("the address", () => err().includes(ADDRESS));
    stdin.write("the-code\n");
    await done;
    expect(asked[1]?.[1]).toMatchObject({ state: "s", code: "the-code" });
  });

  it("is given up after five minutes, and nothing listens any more [bounded]", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const { done, err, redirectUri } = begin();
    let why = "";
    const ended = done.catch((error: Error) => {
      why = error.message;
    });
    // By no timer: those are played.
    while (!err().includes(ADDRESS)) await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    vi.advanceTimersByTime(5 * 60_000 - 1);
    expect((await fetch(`${redirectUri()}?state=other`)).status).toBe(400);
    vi.advanceTimersByTime(1);
    await ended;
    expect(why).toBe("Nobody logged in within five minutes.");
    vi.useRealTimers();
    await expect(fetch(redirectUri())).rejects.toThrow();
  });
});
