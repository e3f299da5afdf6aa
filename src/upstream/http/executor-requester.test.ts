import { createServer } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { listenOnLoopback } from "../../../test/fixtures/loopback.js";
import { SUPERVISED } from "../../../test/fixtures/spec.js";
import { OFFICE, startVia } from "../../../test/fixtures/via.js";
import {
  type AnswerHandler,
  ExecutorError,
  type ExecutorErrorCode,
  type ExecutorRequest,
  type RequestHandle,
} from "../../executor/wire/types.js";
import { Fault } from "../../protocol/errors.js";
import { readCard } from "../server-card.js";
import { ExecutorRequester, type ExecutorWay, requestersBy } from "./executor-requester.js";
import { type ExchangeHandler, MAX_CALLS_IN_FLIGHT, type RequestOptions, type ResponseHeaders } from "./requester.js";

class Way implements ExecutorWay {
  readonly name = OFFICE;
  readonly asked: { request: ExecutorRequest; handler: AnswerHandler; aborted: boolean }[] = [];
  why: ExecutorError | undefined;

  start(request: ExecutorRequest, handler: AnswerHandler): RequestHandle {
    const one = { request, handler, aborted: false };
    this.asked.push(one);
    return {
      pause() {},
      resume() {},
      abort() {
        one.aborted = true;
      },
    };
  }

  async ready(): Promise<void> {
    if (this.why !== undefined) throw this.why;
  }
}

class Heard implements ExchangeHandler {
  head: { status: number; headers: ResponseHeaders } | undefined;
  ended = 0;
  failure: { error: Error; written: boolean } | undefined;
  onHead(status: number, headers: ResponseHeaders): void {
    this.head = { status, headers };
  }
  onData(): void {}
  onEnd(): void {
    this.ended++;
  }
  onError(error: Error, written: boolean): void {
    this.failure = { error, written };
  }
}

const CALL: RequestOptions = { method: "POST", pool: "calls", path: "/mcp", headers: ["a", "1", "b", "2"], body: "{}" };
const URL_OF = new URL("http://ann:secret@wiki.internal/mcp?key=secret");

describe("the requester through an executor", () => {
  it("asks for what a link wants, and nothing of the URL's secrets is in it", () => {
    const way = new Way();
    const heard = new Heard();
    new ExecutorRequester(way, URL_OF).dispatch(CALL, heard);
    expect(way.asked[0]?.request).toEqual({
      method: "POST",
      url: "http://wiki.internal/mcp",
      headers: [
        { name: "a", value: "1" },
        { name: "b", value: "2" },
      ],
      body: "{}",
      redirect: "stop",
    });
    way.asked[0]?.handler.onHead(200, [
      { name: "Set-Cookie", value: "x" },
      { name: "set-cookie", value: "y" },
      { name: "__proto__", value: "z" },
    ]);
    expect(heard.head?.headers["set-cookie"]).toEqual(["x", "y"]);
    expect(heard.head?.headers["content-type"]).toBeUndefined();
  });

  it("keeps calls beyond the bound waiting in turn, and lets asides pass [bounded]", () => {
    const way = new Way();
    const requester = new ExecutorRequester(way, URL_OF);
    const handlers = Array.from({ length: MAX_CALLS_IN_FLIGHT + 3 }, () => new Heard());
    const exchanges = handlers.map((handler, i) => requester.dispatch({ ...CALL, path: `/${i}` }, handler));
    expect(way.asked).toHaveLength(MAX_CALLS_IN_FLIGHT);
    requester.dispatch({ ...CALL, pool: "asides", path: "/aside" }, new Heard());
    expect(way.asked.at(-1)?.request.url).toBe("http://wiki.internal/aside");

    // One that waits and is not wanted any more is never asked for.
    exchanges[MAX_CALLS_IN_FLIGHT]?.abort();
    way.asked[0]?.handler.onEnd();
    expect(handlers[0]?.ended).toBe(1);
    expect(way.asked.at(-1)?.request.url).toBe(`http://wiki.internal/${MAX_CALLS_IN_FLIGHT + 1}`);
    exchanges[1]?.abort();
    expect(way.asked[1]?.aborted).toBe(true);
    expect(way.asked.at(-1)?.request.url).toBe(`http://wiki.internal/${MAX_CALLS_IN_FLIGHT + 2}`);
    way.asked[2]?.handler.onError(new ExecutorError("failed", "x", { sent: true }));
    expect(way.asked).toHaveLength(MAX_CALLS_IN_FLIGHT + 3);
  });

  it("ends everything when it is destroyed, and takes nothing more", async () => {
    const way = new Way();
    const requester = new ExecutorRequester(way, URL_OF);
    const [open, late] = [new Heard(), new Heard()];
    requester.dispatch(CALL, open);
    await requester.destroy();
    expect(way.asked[0]?.aborted).toBe(true);
    expect(open.failure).toMatchObject({ written: true, error: { code: "closing" } });
    requester.dispatch(CALL, late);
    await Promise.resolve();
    expect(late.failure).toMatchObject({ written: false, error: { code: "closing" } });
    expect(way.asked).toHaveLength(1);
  });

  it("sends nothing of what waits when it is destroyed: it is known to be unsent", async () => {
    const way = new Way();
    const requester = new ExecutorRequester(way, URL_OF);
    const handlers = Array.from({ length: MAX_CALLS_IN_FLIGHT + 3 }, () => new Heard());
    for (const handler of handlers) requester.dispatch(CALL, handler);
    await requester.destroy();
    expect(way.asked).toHaveLength(MAX_CALLS_IN_FLIGHT);
    expect(handlers.filter(({ failure }) => failure?.written === true)).toHaveLength(MAX_CALLS_IN_FLIGHT);
    expect(handlers.filter(({ failure }) => failure?.written === false)).toHaveLength(3);
  });

  it.each<[ExecutorErrorCode, boolean, string | undefined, string, RegExp]>([
    ["unavailable", false, undefined, "unavailable", /^why$/],
    ["disconnected", true, undefined, "outcome-unknown", /to executor "office" broke .* unknown/],
    ["disconnected", false, undefined, "unavailable", /cannot be reached through executor "office": why/],
    [
      "failed",
      false,
      "ECONNREFUSED",
      "unavailable",
      /wiki.internal.* through executor "office": nothing listens there/,
    ],
    ["failed", true, "ECONNRESET", "outcome-unknown", /from executor "office" to http:\/\/wiki.internal.*ECONNRESET/],
    ["failed", false, "timeout", "unavailable", /through executor "office": why/],
    ["failed", true, "timeout", "outcome-unknown", /from executor "office" .*\(why\)/],
    ["failed", true, "ERROR", "outcome-unknown", /\(why\)/],
    ["failed", true, "HPE_INVALID_CONSTANT", "protocol", /not HTTP/],
    ["failed", true, "HPE_INVALID_EOF_STATE", "outcome-unknown", /unknown/],
    ["refused", false, "forbidden", "unavailable", /Executor "office" does not reach http:\/\/wiki.internal\/mcp: why/],
    ["overflow", true, undefined, "outcome-unknown", /unknown/],
    ["protocol", true, undefined, "protocol", /broke its protocol/],
    ["limit", false, undefined, "limit", /why/],
    // Its token was revoked, or the config names it no longer.
    ["closed", true, undefined, "outcome-unknown", /to executor "office" broke .* unknown/],
    ["closed", false, undefined, "unavailable", /cannot be reached through executor "office"/],
  ])("tells a failure (%s, sent: %s, %s) as %s [unknown-is-said]", (code, sent, networkCode, fault, message) => {
    const way = new Way();
    const heard = new Heard();
    new ExecutorRequester(way, URL_OF).dispatch(CALL, heard);
    way.asked[0]?.handler.onError(new ExecutorError(code, "why", { sent, networkCode }));
    expect(heard.failure).toMatchObject({ written: sent, error: { code: fault } });
    expect(heard.failure?.error.message).toMatch(message);
    expect(heard.failure?.error.message).not.toContain("secret");
  });

  it("is opened when there is an executor, and says which is missing", async () => {
    const way = new Way();
    const open = requestersBy((name) => (name === OFFICE ? way : undefined));
    const target = { kind: "http", url: "http://wiki.internal/mcp", headers: {}, via: OFFICE } as const;
    const { signal } = new AbortController();
    expect(await open(target, URL_OF, signal)).toBeInstanceOf(ExecutorRequester);
    await expect(open({ ...target, via: "lab" }, URL_OF, signal)).rejects.toThrow(/no executor "lab"/);
    way.why = new ExecutorError("unavailable", 'No executor "office" is connected.', { sent: false });
    await expect(open(target, URL_OF, signal)).rejects.toMatchObject({ code: "unavailable", message: way.why.message });
    const closing = new Fault("closing", "The attempt was given up.");
    await expect(open(target, URL_OF, AbortSignal.abort(closing))).rejects.toBe(closing);
  });
});

describe("a card", () => {
  const cleanUp: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const act of cleanUp.splice(0).reverse()) await act();
  });

  it("comes the way that calls go, and counts as none where the executor may not reach it", async () => {
    const http = createServer((_, res) => res.end('{"name":"wiki"}'));
    const port = await listenOnLoopback(http);
    cleanUp.push(async () => http.close());
    const target = { kind: "http", url: `http://127.0.0.1:${port}/mcp`, headers: {}, via: OFFICE } as const;
    const spec = {
      name: "wiki",
      target,
      isolation: "shared",
      connectTimeoutMs: 60_000,
      callTimeoutMs: 60_000,
      ...SUPERVISED,
    } as const;
    const allowed = await startVia("dialled");
    const forbidden = await startVia("dialled", ["10.0.0.1"]);
    cleanUp.push(
      () => allowed.close(),
      () => forbidden.close(),
    );
    expect(await readCard(spec, allowed.openRequester)).toEqual({ name: "wiki" });
    expect(await readCard({ ...spec, card: `${target.url}/card` }, allowed.openRequester)).toEqual({ name: "wiki" });
    expect(await readCard(spec, forbidden.openRequester)).toBeUndefined();
    expect(await readCard({ ...spec, card: `${target.url}/card` }, forbidden.openRequester)).toBeUndefined();
  });
});
