import { afterEach, describe, expect, it, vi } from "vitest";
import type { Listed, UpstreamCall } from "../../contracts/upstream.js";
import { resultBytes } from "../../protocol/reply.js";
import type { CallSender } from "../link/own-call.js";
import { ServerLists } from "./lists.js";
import { readList } from "./read.js";

const tool = (n: number) => ({ name: `tool ${n}`, inputSchema: { type: "object" } });

/** Answers with pages of so many tools each. */
function server(tools: number, page: number): CallSender & { asked: number } {
  return {
    asked: 0,
    send(call: UpstreamCall): void {
      this.asked++;
      const { params } = JSON.parse(call.render(1)) as { params?: { cursor?: string } };
      const from = Number(params?.cursor ?? 0);
      const listed = Array.from({ length: Math.min(page, tools - from) }, (_, n) => tool(from + n));
      const next = from + page < tools ? { nextCursor: String(from + page) } : {};
      queueMicrotask(() => call.reply(resultBytes(JSON.stringify({ tools: listed, ...next }))));
    },
    cancel(): void {},
  };
}

describe("a list", () => {
  it("is taken up to 5,000 entries, and one more to show that there are more [bounded]", async () => {
    for (const page of [15_000, 1_000]) {
      const many = server(15_000, page);
      const items = await readList(many, "tools", AbortSignal.timeout(60_000));
      expect(items).toHaveLength(5_001);
      expect(items[4_999]?.value).toEqual(tool(4_999));
      // Pages that are not taken are not asked for.
      expect(many.asked).toBe(page === 1_000 ? 6 : 1);
    }
    expect(await readList(server(5_000, 700), "tools", AbortSignal.timeout(60_000))).toHaveLength(5_000);
  });

  it("is taken in by slices, so that others have their turns meanwhile [one-bad-server]", async () => {
    let turns = 0;
    let done = false;
    const count = () => {
      turns++;
      if (!done) setImmediate(count);
    };
    setImmediate(count);
    await readList(server(5_000, 5_000), "tools", AbortSignal.timeout(60_000));
    done = true;
    expect(turns).toBeGreaterThan(40);
  });
});

describe("a list that keeps changing", () => {
  afterEach(() => void vi.useRealTimers());

  it("is read at growing distances, and soon again once it has been quiet [bounded]", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    const readAt: number[] = [];
    const begun = performance.now();
    const lists = new ServerLists({
      onBegin: () => {},
      onList: (_kind: unknown, _items: readonly Listed[]) => readAt.push(performance.now() - begun),
      onFailed: () => {},
      onFault: () => {},
    });
    const changing = server(1, 1);
    for (let ms = 0; ms < 60_000; ms += 100) {
      void lists.read(changing, "tools");
      await vi.advanceTimersByTimeAsync(100);
    }
    const gaps = readAt.slice(1).map((at, i) => Math.round((at - (readAt[i] ?? 0)) / 100) * 100);
    expect(gaps.slice(0, 5)).toEqual([200, 400, 800, 1600, 3200]);
    expect(readAt.length).toBeLessThan(15);
    await vi.advanceTimersByTimeAsync(30_000);
    const before = readAt.length;
    void lists.read(changing, "tools");
    await vi.advanceTimersByTimeAsync(10);
    expect(readAt.length).toBe(before + 1);
  });
});
