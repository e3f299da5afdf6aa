import { describe, expect, it, onTestFinished } from "vitest";
import { listenForCallback, readPasted } from "./callback.js";

async function listening() {
  const callback = await listenForCallback(undefined);
  onTestFinished(() => callback.close());
  return callback;
}

describe("where a browser comes back to", () => {
  it("is 127.0.0.1 alone, takes the answer to its own login once, and shows nothing of it", async () => {
    const callback = await listening();
    expect(callback.redirectUri).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
    const get = async (query: string, init: RequestInit = {}) => {
      const answer = await fetch(`${callback.redirectUri}${query}`, init);
      return [answer.status, await answer.text()] as const;
    };
    // Before anybody asked, and whatever page sent the browser here.
    expect((await get("?state=mine&code=c"))[0]).toBe(400);
    const answered = callback.answerTo("mine");
    expect((await get("?state=other&code=c"))[0]).toBe(400);
    expect((await get("?code=c"))[0]).toBe(400);
    expect((await get("?state=mine&code=c", { method: "POST" }))[0]).toBe(404);
    expect((await fetch(callback.redirectUri.replace("/callback", "/?state=mine&code=c"))).status).toBe(404);
    const [status, page] = await get("?state=mine&code=c0de<script>&iss=https%3A%2F%2Flogin.example");
    expect([status, page.includes("c0de"), page.includes("close this page")]).toEqual([200, false, true]);
    expect(await answered).toEqual({
      state: "mine",
      code: "c0de<script>",
      iss: "https://login.example",
      error: undefined,
    });
    expect((await get("?state=mine&code=again"))[0]).toBe(400);
  });

  it("is not for a page that a name leads here", async () => {
    const { redirectUri, answerTo } = await listening();
    void answerTo("mine");
    const { port } = new URL(redirectUri);
    const { request } = await import("node:http");
    const status = await new Promise((done, failed) => {
      const path = "/callback?state=mine&code=c";
      request({ port, host: "127.0.0.1", path, headers: { host: `rebound.example:${port}` } }, (answer) => {
        answer.resume();
        done(answer.statusCode);
      })
        .on("error", failed)
        .end();
    });
    expect(status).toBe(404);
  });
});

it.each([
  [
    " http://127.0.0.1:1/callback?code=c%2F1&state=s&iss=https%3A%2F%2Fa \n",
    { state: "s", code: "c/1", iss: "https://a" },
  ],
  [
    "http://127.0.0.1:1/callback?error=access_denied&error_description=No&state=s",
    { state: "s", error: "access_denied: No" },
  ],
  ["4/0AbCd-ef", { state: "mine", code: "4/0AbCd-ef" }],
  ["ac:0123:xyz", { state: "mine", code: "ac:0123:xyz" }],
])("what a person pastes is the address that the browser ends at, or the code alone: %s", (line, answer) => {
  expect(readPasted(line, "mine")).toEqual({ code: undefined, iss: undefined, error: undefined, ...answer });
  expect(readPasted("  ", "mine")).toBeUndefined();
});
