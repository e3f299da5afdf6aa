import type { Duplex } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { randomOf } from "../../../test/faults/random.js";
import { PeerNetwork } from "../../../test/fixtures/store/peer-network.js";
import type { HttpHeader } from "../wire/protocol.js";
import type { AnswerHandler, ExecutorError, ExecutorRequest, RequestHandle } from "../wire/types.js";
import { Frame, FrameReader, jsonFrame } from "./frames.js";
import { PassedClient } from "./passed-client.js";
import { servePassed } from "./serve-passed.js";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** What hears of an answer, and counts what it holds. */
class Heard implements AnswerHandler {
  status = 0;
  headers: readonly HttpHeader[] = [];
  readonly parts: Buffer[] = [];
  ended = 0;
  error: ExecutorError | undefined;
  isPaused = false;

  onHead(status: number, headers: readonly HttpHeader[]): void {
    this.status = status;
    this.headers = headers;
  }
  onData(chunk: Buffer): void {
    expect(this.isPaused).toBe(false);
    this.parts.push(Buffer.from(chunk));
  }
  onEnd(): void {
    this.ended++;
  }
  onError(error: ExecutorError): void {
    this.error = error;
  }
  get isOver(): boolean {
    return this.ended > 0 || this.error !== undefined;
  }
  get text(): string {
    return Buffer.concat(this.parts).toString();
  }
}

/** Answers with the body that came, in pieces, and stops when it is told to. */
class Echo {
  request: ExecutorRequest | undefined;
  aborted = 0;
  started = 0;
  sentBytes = 0;
  answer = "";

  readonly start = (request: ExecutorRequest, handler: AnswerHandler): RequestHandle => {
    this.request = request;
    this.started++;
    const answer = Buffer.from(this.answer === "" ? String(request.body ?? "") : this.answer);
    let isPaused = false;
    let at = -1;
    let isOver = false;
    const go = () => {
      while (!isPaused && !isOver) {
        if (at < 0) {
          at = 0;
          handler.onHead(200, [{ name: "x-echo", value: request.method }]);
        } else if (at < answer.length) {
          const piece = answer.subarray(at, at + 10_000);
          at += piece.length;
          this.sentBytes = at;
          handler.onData(piece);
        } else {
          isOver = true;
          handler.onEnd();
        }
      }
    };
    queueMicrotask(go);
    return {
      pause: () => {
        isPaused = true;
      },
      resume: () => {
        isPaused = false;
        go();
      },
      abort: () => {
        isOver = true;
        this.aborted++;
      },
    };
  };
}

function rig() {
  const net = new PeerNetwork(["a", "b"]);
  const echo = new Echo();
  const taken: Duplex[] = [];
  net.of("a").accept("executors", (stream) => {
    taken.push(stream);
    servePassed(stream, (name) => (name === "office" ? echo.start : undefined));
  });
  const client = (name: string) =>
    new PassedClient({ name, connect: () => net.of("b").connect("a", "executors"), onState: () => {} });
  return { net, echo, taken, client };
}

const REQUEST = { method: "POST", url: "http://wiki/", headers: [{ name: "x-a", value: "1" }] } as const;

async function over(heard: Heard): Promise<void> {
  for (let n = 0; n < 5_000 && !heard.isOver; n++) await turn();
}

beforeEach(() => vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => vi.useRealTimers());

describe("a request that is passed to the gateway which has the executor", () => {
  it("comes there as it was made, and its answer back, byte for byte [executor-elsewhere]", async () => {
    const { echo, client, net, taken } = rig();
    const body = "0123456789".repeat(60_000);
    const heard = new Heard();
    const office = client("office");
    office.start({ ...REQUEST, body, redirect: "stop", timeoutMs: 9 }, heard);
    expect(office.inFlight).toBe(1);
    await over(heard);
    expect(heard.error).toBeUndefined();
    expect(echo.request).toMatchObject({ ...REQUEST, redirect: "stop", timeoutMs: 9 });
    expect([heard.status, heard.headers, heard.text === body, heard.ended]).toEqual([
      200,
      [{ name: "x-echo", value: "POST" }],
      true,
      1,
    ]);
    expect([office.inFlight, echo.aborted]).toEqual([0, 0]);
    await turn();
    expect(taken.every(({ destroyed }) => destroyed)).toBe(true);
    for (const name of ["a", "b"]) net.of(name).close();
  });

  it("is answered no faster than it is read, and taken back where nobody reads any more [executor-elsewhere] [bounded]", async () => {
    const { echo, client, net } = rig();
    echo.answer = "x".repeat(4_000_000);
    const heard = new Heard();
    const handle = client("office").start(REQUEST, heard);
    handle.pause();
    heard.isPaused = true;
    for (let n = 0; n < 200; n++) await turn();
    expect(echo.sentBytes).toBeGreaterThan(0);
    expect(echo.sentBytes).toBeLessThan(400_000);
    heard.isPaused = false;
    handle.resume();
    await over(heard);
    expect(heard.text === echo.answer).toBe(true);
    const left = new Heard();
    const another = client("office").start(REQUEST, left);
    another.pause();
    while (echo.started < 2) await turn();
    another.abort();
    for (let n = 0; n < 20; n++) await turn();
    expect([echo.aborted, left.isOver]).toEqual([1, false]);
    net.of("a").close();
  });

  it("tells in the executor's words why it failed, and that nothing was sent where that is so [executor-elsewhere]", async () => {
    const { client, net, echo } = rig();
    const unknown = new Heard();
    client("nobody").start(REQUEST, unknown);
    await over(unknown);
    expect(unknown.error).toMatchObject({ code: "unavailable", sent: false });
    echo.start({ ...REQUEST }, unknown);
    net.ends.delete("a");
    const away = new Heard();
    client("office").start(REQUEST, away);
    await over(away);
    expect(away.error).toMatchObject({ code: "disconnected", sent: false });
    const pieces = new Heard();
    client("office").start({ ...REQUEST, body: (async function* () {})() }, pieces);
    await over(pieces);
    expect(pieces.error).toMatchObject({ code: "limit", sent: false });
  });

  it("has no hole, whatever is lost: all of it came, or it is told that the outcome is unknown [executor-elsewhere]", async () => {
    let broken = 0;
    for (let seed = 1; seed <= histories(150); seed++) {
      const random = randomOf(seed);
      const { net, echo, client } = rig();
      let left = Math.floor(random() * 25);
      let isLost = false;
      net.lose = () => {
        if (isLost || left-- > 0) return false;
        isLost = true;
        return true;
      };
      echo.answer = "0123456789".repeat(Math.floor(random() * 20_000) + 1);
      const heard = new Heard();
      client("office").start({ ...REQUEST, body: "b".repeat(Math.floor(random() * 100_000)) }, heard);
      for (let n = 0; n < 400 && !heard.isOver; n++) {
        await turn();
        if (n % 20 === 19) vi.advanceTimersByTime(4_000);
      }
      expect(heard.isOver, `seed ${seed}`).toBe(true);
      expect(echo.answer.startsWith(heard.text), `seed ${seed}`).toBe(true);
      if (heard.ended === 1) expect(heard.text === echo.answer, `seed ${seed}`).toBe(true);
      else {
        broken++;
        expect(heard.error, `seed ${seed}`).toMatchObject({ code: "disconnected", sent: true });
      }
      for (const name of ["a", "b"]) net.of(name).close();
    }
    expect(broken).toBeGreaterThan(histories(20));
  });
});

it("frames are read however they are cut, and what is none is refused", () => {
  const whole = Buffer.concat([
    jsonFrame(Frame.head, { a: "ä" }),
    Buffer.from([Frame.data, 0, 0, 0, 3, 1, 2, 3, 3, 0, 0, 0, 0]),
  ]);
  for (let size = 1; size <= whole.length; size++) {
    const told: unknown[] = [];
    const reader = new FrameReader({
      onJson: (_, value) => told.push(value),
      onData: (piece) => told.push(...piece),
      onEnd: () => told.push("end"),
    });
    for (let at = 0; at < whole.length; at += size) reader.push(whole.subarray(at, at + size));
    expect(told).toEqual([{ a: "ä" }, 1, 2, 3, "end"]);
  }
  const reader = new FrameReader({ onJson() {}, onData() {}, onEnd() {} });
  expect(() => reader.push(Buffer.from([9, 0, 0, 0, 0]))).toThrow("no part of a request");
  expect(() =>
    new FrameReader({ onJson() {}, onData() {}, onEnd() {} }).push(Buffer.from([1, 255, 0, 0, 0])),
  ).toThrow();
});
