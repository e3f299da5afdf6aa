import { describe, expect, it, onTestFinished } from "vitest";
import { type Callback, listenForCallback, readPasted } from "./callback.js";

async function listening() {
  const callback = await listenForCallback(undefined);
  onTestFinished(() => callback.close());
  return callback;
}

describe("where a browser comes back to", () => {
  it("is 127.0.0.1 alone, takes the answer to its own login once, and shows nothing of it [login-guarded]", async () => {
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
    const shown = get("?state=mine&code=c0de<script>&iss=https%3A%2F%2Flogin.example");
    const answer = await answered;
    // The page waits for what comes of it.
    callback.tell(undefined);
    expect(await shown).toEqual([
      200,
      "<!doctype html><title>Toolway</title><p>Toolway has what it needs. You can close this page.</p>\n",
    ]);
    expect(answer).toEqual({
      state: "mine",
      code: "c0de<script>",
      iss: "https://login.example",
      error: undefined,
    });
    expect((await get("?state=mine&code=again"))[0]).toBe(400);
  });

  it.each<[string, (callback: Callback) => void, string]>([
    [
      "failed",
      (callback) => callback.tell('The login failed: "<b>https://evil.example</b>" is another\u202e'),
      "The login failed: &#34;&#60;b&#62;https://evil.example&#60;/b&#62;&#34; is another\\u{202E}.",
    ],
    ["is waited for by nobody", (callback) => callback.close(), "Nobody waits for this login any more."],
  ])("says on its page that the login %s", async (_, end, said) => {
    const callback = await listening();
    const answered = callback.answerTo("mine");
    const shown = fetch(`${callback.redirectUri}?state=mine&code=c`);
    await answered;
    end(callback);
    expect(await (await shown).text()).toContain(`<p>${said} You can close this page.</p>`);
  });

  it("is not for a page that a name leads here [login-guarded]", async () => {
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
