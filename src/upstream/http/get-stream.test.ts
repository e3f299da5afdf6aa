import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ownHolder } from "../../runtime/memory/held-bytes.js";
import { GetStream } from "./get-stream.js";
import type { HttpDestination } from "./headers.js";
import type { ExchangeHandler, Requester } from "./requester.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const STREAM = { "content-type": "text/event-stream" };

/** The stream of a server that is played: `held` says whether all else has waited until it was open. */
function open(held = true) {
  let answers = 0;
  const exchanges: ExchangeHandler[] = [];
  const requester = {
    dispatch(_: unknown, handler: ExchangeHandler) {
      exchanges.push(handler);
      return { abort: () => {} };
    },
  };
  const stream = new GetStream({
    requester: requester as unknown as Requester,
    destination: { path: "/mcp" } as HttpDestination,
    getHeaders: () => [],
    inSession: true,
    onMessage: () => {},
    onListenAnswered: () => held && answers++ === 0,
    onListenSessionGone: () => {},
    onNoise: () => {},
    newHolder: ownHolder,
  });
  const latest = () => exchanges.at(-1) as ExchangeHandler;
  return { stream, exchanges, latest };
}

it("a stream that breaks and comes back has gaps in which announcements may be lost, one for each [menu-current]", () => {
  const { stream, exchanges, latest } = open();
  latest().onHead(200, STREAM);
  expect(stream.gaps).toBe(0);
  latest().onEnd();
  expect(stream.gaps, "a list that is asked for now may be old").toBe(1);
  vi.advanceTimersByTime(5_000);
  expect(exchanges).toHaveLength(2);
  latest().onHead(200, STREAM);
  expect(stream.gaps, "and what was read in between too").toBe(2);
  stream.stop();
});

it("a stream that comes back where it broke has lost nothing", () => {
  const { stream, latest } = open();
  latest().onHead(200, STREAM);
  latest().onData(Buffer.from("id: 7\nretry: 100\ndata:\n\n"));
  latest().onEnd();
  vi.advanceTimersByTime(5_000);
  latest().onHead(200, STREAM);
  expect(stream.gaps).toBe(0);
  stream.stop();
});

it("a stream that is answered when calls were made already may have missed what they changed [menu-current]", () => {
  const { stream, latest } = open(false);
  latest().onHead(200, STREAM);
  expect(stream.gaps).toBe(1);
  stream.stop();
});

it("a server that has no stream, or cannot be reached, has no gaps: it is known not to be heard", () => {
  const refused = open();
  refused.latest().onHead(405, {});
  refused.latest().onEnd();
  expect([refused.stream.gaps, refused.stream.isRefused]).toEqual([0, true]);
  const away = open();
  away.latest().onError(new Error("refused"), false);
  expect(away.stream.gaps).toBe(0);
  away.stream.stop();
});

it.each([401, 409])(
  "a stream that was open and is refused with %d is asked for again, ever less often [token-unseen] [bounded]",
  (status) => {
    const { stream, exchanges, latest } = open();
    latest().onHead(200, STREAM);
    latest().onEnd();
    const at: number[] = [];
    for (let ms = 0; ms < 240_000; ms += 500) {
      const before = exchanges.length;
      vi.advanceTimersByTime(500);
      if (exchanges.length === before) continue;
      at.push(ms);
      latest().onHead(status, {});
      latest().onEnd();
    }
    const waits = at.slice(1).map((ms, i) => ms - (at[i] ?? 0));
    expect(waits.slice(0, 4).every((ms, i) => ms >= 1_000 * 2 ** i)).toBe(true);
    expect(waits.at(-1)).toBeGreaterThanOrEqual(60_000);
    expect(stream.isRefused).toBe(false);
    stream.stop();
  },
);

it("a stream that is refused with 401 before it was ever open is not asked for again", () => {
  const { stream, exchanges, latest } = open();
  latest().onHead(401, {});
  latest().onEnd();
  vi.advanceTimersByTime(240_000);
  expect([exchanges.length, stream.isRefused]).toEqual([1, true]);
});
