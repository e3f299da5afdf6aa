import { describe, expect, it } from "vitest";
import { type LiveCredential, withCredential } from "./credential-requester.js";
import type { ExchangeHandler, HttpExchange, Requester, RequestOptions } from "./requester.js";

/** A requester whose answers the test gives by hand. */
class HandRequester implements Requester {
  readonly sent: { readonly options: RequestOptions; readonly handler: ExchangeHandler; readonly did: string[] }[] = [];

  dispatch(options: RequestOptions, handler: ExchangeHandler): HttpExchange {
    const did: string[] = [];
    this.sent.push({ options, handler, did });
    return { pause: () => did.push("pause"), resume: () => did.push("resume"), abort: () => did.push("abort") };
  }

  async destroy(): Promise<void> {}
}

class HandCredential implements LiveCredential {
  current: string | undefined = "one";
  why: Error | undefined;
  decide: (isAnother: boolean) => void = () => {};
  token = () => this.current;
  refused = () =>
    new Promise<boolean>((resolve) => {
      this.decide = resolve;
    });
  stillRefused(): void {}
  accepted(): void {}
  refusal = () => this.why;
  readonly followers = new Set<() => void>();
  onOther(listener: () => void): () => void {
    this.followers.add(listener);
    return () => void this.followers.delete(listener);
  }
}

async function begin(pool: RequestOptions["pool"] = "calls") {
  const [requester, credential] = [new HandRequester(), new HandCredential()];
  const heard: string[] = [];
  const noted: string[] = [];
  const open = withCredential(credential, async () => requester);
  const target = { kind: "http", url: "http://x/", headers: {} } as const;
  const outer = await open(target, new URL(target.url), AbortSignal.timeout(60_000));
  const exchange = outer.dispatch(
    { method: "POST", pool, path: "/", headers: ["a", "b"], body: "{}" },
    {
      onCredential: (state, isAnother) => noted.push(`${state} ${isAnother}`),
      onHead: (status) => heard.push(`head ${status}`),
      onData: (chunk) => heard.push(`data ${chunk.length}`),
      onEnd: () => heard.push("end"),
      onError: (error, written) => heard.push(`error ${error.message} ${written}`),
    },
  );
  const decided = async (isAnother: boolean) => {
    credential.decide(isAnother);
    await new Promise((resolve) => setImmediate(resolve));
  };
  const first = requester.sent[0];
  if (first === undefined) throw new Error("Nothing was sent.");
  return { requester, credential, heard, noted, exchange, first, decided };
}

describe("a request with a credential", () => {
  it("that is refused goes out again with another one, and the refusal is told to nobody [token-unseen]", async () => {
    const { requester, credential, heard, noted, first, decided } = await begin();
    first.handler.onHead(401, {});
    // What waits for it is told: the time is not the server's.
    expect(noted).toEqual(["wanted true"]);
    first.handler.onData(Buffer.alloc(10));
    credential.current = "two";
    await decided(true);
    expect(first.did).toEqual(["abort"]);
    expect(requester.sent[1]?.options.headers).toEqual(["a", "b", "authorization", "Bearer two"]);
    requester.sent[1]?.handler.onHead(200, {});
    requester.sent[1]?.handler.onEnd();
    expect(heard).toEqual(["head 200", "end"]);
    expect(noted).toEqual(["wanted true", "there true"]);
  });

  it("that is refused again with the other one is told so: it goes out twice and no more [token-unseen]", async () => {
    const { requester, credential, heard, first, decided } = await begin();
    first.handler.onHead(401, {});
    credential.current = "two";
    await decided(true);
    requester.sent[1]?.handler.onHead(401, {});
    await decided(true);
    requester.sent[1]?.handler.onEnd();
    expect(requester.sent).toHaveLength(2);
    expect(heard).toEqual(["head 401", "end"]);
  });

  it("that is forbidden has its answer, unless that is for want of a scope: then it goes out again [token-unseen]", async () => {
    const challenge = { "www-authenticate": 'Bearer error="insufficient_scope", scope="write"' };
    const plain = await begin();
    plain.first.handler.onHead(403, { "www-authenticate": 'Bearer error="invalid_request"' });
    plain.first.handler.onData(Buffer.alloc(2));
    plain.first.handler.onEnd();
    await plain.decided(true);
    expect([plain.heard, plain.noted, plain.requester.sent.length]).toEqual([["head 403", "data 2", "end"], [], 1]);
    const lacking = await begin();
    lacking.first.handler.onHead(403, challenge);
    lacking.credential.current = "more";
    await lacking.decided(true);
    expect(lacking.requester.sent[1]?.options.headers.at(-1)).toBe("Bearer more");
  });

  it("that is refused with a long answer is told its beginning and an end, without a hole in between [bounded]", async () => {
    const { heard, first, decided } = await begin();
    first.handler.onHead(401, {});
    for (let i = 0; i < 3; i++) first.handler.onData(Buffer.alloc(30 * 1024));
    // Nobody reads the rest.
    expect(first.did).toEqual(["abort"]);
    await decided(false);
    const bytes = heard.filter((line) => line.startsWith("data")).reduce((sum, line) => sum + Number(line.slice(5)), 0);
    expect(bytes).toBe(64 * 1024);
    expect([heard[0], heard.at(-1)]).toEqual(["head 401", "end"]);
  });

  it("that is paused before its refusal and resumed during it goes on to its end", async () => {
    const { heard, exchange, first, decided } = await begin();
    exchange.pause();
    first.handler.onHead(401, {});
    exchange.resume();
    await decided(false);
    expect(first.did).toEqual(["pause", "resume"]);
    first.handler.onData(Buffer.alloc(3));
    first.handler.onEnd();
    expect(heard).toEqual(["head 401", "data 3", "end"]);
  });

  it("is told what its credential says of the refusal, in place of the server's answer", async () => {
    const { credential, heard, first, decided } = await begin();
    credential.why = new Error("there is none");
    first.handler.onHead(401, {});
    await decided(false);
    expect([heard, first.did]).toEqual([["error there is none false"], ["abort"]]);
  });
});

describe("a listening stream with a credential", () => {
  const STREAM = { "content-type": "text/event-stream; charset=utf-8" };

  it("ends for its link when the credential is another, which is the end of the one that was sent too [token-unseen]", async () => {
    const { credential, heard, first } = await begin("asides");
    expect(credential.followers.size).toBe(0);
    first.handler.onHead(200, STREAM);
    for (const tell of credential.followers) tell();
    expect([heard, first.did, credential.followers.size]).toEqual([["head 200", "end"], ["abort"], 0]);
  });

  it("is followed for no longer than it is open; calls and short answers are not [bounded]", async () => {
    const ends: ((one: Awaited<ReturnType<typeof begin>>) => void)[] = [
      ({ first }) => first.handler.onEnd(),
      ({ first }) => first.handler.onError(new Error("cut"), true),
      ({ exchange }) => exchange.abort(),
    ];
    for (const end of ends) {
      const one = await begin("asides");
      one.first.handler.onHead(200, STREAM);
      expect(one.credential.followers.size).toBe(1);
      end(one);
      expect(one.credential.followers.size).toBe(0);
    }
    const call = await begin("calls");
    call.first.handler.onHead(200, STREAM);
    const short = await begin("asides");
    short.first.handler.onHead(202, {});
    expect([call.credential.followers.size, short.credential.followers.size]).toEqual([0, 0]);
  });
});
