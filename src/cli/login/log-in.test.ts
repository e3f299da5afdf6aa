import { PassThrough } from "node:stream";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { heldIo } from "../../../test/fixtures/held-io.js";
import { until } from "../../../test/fixtures/wait.js";
import { logIn } from "./log-in.js";

const ADDRESS = "https://login.example/authorize?x=1";

/** A gateway that begins a login, and says what it was brought. */
function begin(finish: () => object = () => ({ credential: { state: "known" } })) {
  const stdin = new PassThrough();
  const held = heldIo({ stdin });
  const asked: [path: string, body: object][] = [];
  const client = {
    get: async () => ({}),
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
