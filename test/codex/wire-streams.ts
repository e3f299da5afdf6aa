// Part of the wire suite: `http/request` whose answer comes as deltas.

import { expect, it } from "vitest";
import { patterned } from "./origin.js";
import type { RawFrame } from "./raw-peer.js";
import type { Stage } from "./wire-suite.js";

/** The largest piece that one delta brings. */
const LARGEST_DELTA = 1024 * 1024;

export function wireStreams(stage: Stage): void {
  const to = (path: string, requestId: string, more: object = {}) => ({
    method: "GET",
    url: `${stage.origin.url}${path}`,
    headers: [],
    requestId,
    streamResponse: true,
    ...more,
  });

  it("begin with the head, without a body; then come deltas from 1 on, and an empty last one [exec-keep]", async () => {
    const peer = await stage.peer();
    const head = await peer.call("http/request", to("/bytes?n=3000000", "s"));
    expect(head.result).toEqual({ status: 200, headers: expect.any(Array), bodyBase64: "" });
    const deltas = await peer.ended("s");
    expect(peer.frames.indexOf(head)).toBeLessThan(peer.frames.indexOf(deltas[0] as RawFrame));
    expect(deltas.map(({ params }) => params.seq)).toEqual(deltas.map((_, i) => i + 1));
    expect(bytesOf(deltas).equals(patterned(3_000_000))).toBe(true);
    expect(Math.max(...deltas.map((delta) => bytesOf([delta]).length))).toBeLessThanOrEqual(LARGEST_DELTA);
    expect(deltas.slice(0, -1).every(({ params }) => params.done === false && params.deltaBase64 !== "")).toBe(true);
    expect(deltas.at(-1)?.params).toMatchObject({ requestId: "s", deltaBase64: "", done: true });
    expect(deltas.every(({ params }) => (params.error ?? null) === null)).toBe(true);
    // A message of the seed's shape and no other.
    const { error: _, ...members } = deltas[0]?.params ?? {};
    expect(Object.keys(members)).toEqual(["requestId", "seq", "deltaBase64", "done"]);
  });

  it.each(["/empty", "/bytes?n=0"])("are one empty delta where there is nothing: %s [exec-keep]", async (path) => {
    const peer = await stage.peer();
    await peer.call("http/request", to(path, "s"));
    const deltas = await peer.ended("s");
    expect(deltas.map(({ params }) => [params.seq, params.deltaBase64, params.done])).toEqual([[1, "", true]]);
  });

  const BROKEN: readonly (readonly [string, string, object])[] = [
    ["cut, chunked", "/cut", {}],
    ["cut, of known length", "/short", {}],
    ["too late", "/open", { timeoutMs: 2_000 }],
  ];
  it.each(BROKEN)(
    "end with an error where they break, never as if they were whole: %s [exec-keep]",
    async (_, path, more) => {
      const peer = await stage.peer();
      expect((await peer.call("http/request", to(path, "s", more))).result.status).toBe(200);
      const deltas = await peer.ended("s");
      expect(bytesOf(deltas).toString()).toBe("first");
      expect(deltas.at(-1)?.params.error).toEqual(expect.stringMatching(/./));
    },
  );

  it("have no deltas where they fail before the head [exec-keep]", async () => {
    const peer = await stage.peer();
    const late = await peer.call("http/request", to("/never", "late", { timeoutMs: 200 }));
    expect(late.error?.code).toBe(-32603);
    const gone = await peer.call("http/request", to("", "gone", { url: "http://127.0.0.1:1/" }));
    expect(gone.error?.code).toBe(-32603);
    await peer.call("http/request", to("/fine", "next"));
    await peer.ended("next");
    expect([...peer.deltas("late"), ...peer.deltas("gone")]).toEqual([]);
    // Their ids are free again.
    expect((await peer.call("http/request", to("/fine", "late"))).result.status).toBe(200);
  });

  it("have ids of their own while they last [exec-keep]", async () => {
    const peer = await stage.peer();
    await peer.call("http/request", to("/open", "same"));
    expect((await peer.call("http/request", to("/fine", "same"))).error?.code).toBe(-32602);
    // What is not streamed does not need the id.
    const whole = await peer.call("http/request", to("/fine", "same", { streamResponse: false }));
    expect(whole.result.bodyBase64).toBe(Buffer.from("fine").toString("base64"));
    await peer.call("http/request", to("/fine", "again"));
    await peer.ended("again");
    await expect.poll(async () => (await peer.call("http/request", to("/fine", "again"))).result?.status).toBe(200);
  });

  it("do not hold up others where nobody ends them [exec-7] [exec-keep]", async () => {
    const peer = await stage.peer();
    for (let n = 0; n < 100; n++)
      peer.send({ id: `open-${n}`, method: "http/request", params: to("/open", `open-${n}`) });
    for (let n = 0; n < 100; n++) expect((await peer.answer(`open-${n}`)).result.status).toBe(200);
    await peer.call("http/request", to("/bytes?n=100000", "quick"));
    expect(bytesOf(await peer.ended("quick")).equals(patterned(100_000))).toBe(true);
  });

  it("end with their connection, and its session brings nothing of them back [exec-keep]", async () => {
    const peer = await stage.peer();
    const before = stage.origin.dropped.length;
    await peer.call("http/request", to("/open", "s"));
    await peer.close();
    await expect.poll(() => stage.origin.dropped.slice(before)).toContain("/open");
  });
}

function bytesOf(deltas: readonly RawFrame[]): Buffer {
  return Buffer.concat(deltas.map(({ params }) => Buffer.from(params.deltaBase64, "base64")));
}
