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

  it("is never parsed as a whole: an entry at a time, whatever is around it [one-bad-server]", async () => {
    const many = server(15_000, 15_000);
    const parse = vi.spyOn(JSON, "parse");
    try {
      await readList(many, "tools", AbortSignal.timeout(60_000));
      const longest = Math.max(...parse.mock.calls.map(([text]) => text.length));
      expect(longest).toBeLessThan(1_000);
    } finally {
      parse.mockRestore();
    }
  });

  it.each([
    ["an entry that is no JSON", '{"tools":[{"name":"a"},{oops}]}', /not JSON/],
    ["no comma between two", '{"tools":[{"name":"a"} {"name":"b"}]}', /not JSON/],
    ["a comma too many", '{"tools":[{"name":"a"},]}', /not JSON/],
    ["nothing but commas", '{"tools":[,,]}', /not JSON/],
    ["another bracket at its end", '{"tools":[{"name":"a"}}}', /[Nn]ot JSON/],
    ["something behind it that is no JSON", '{"tools":[{"name":"a"}] oops}', /[Nn]ot JSON/],
    ["two of them", '{"tools":[],"tools":[]}', /Duplicate member/],
    ["an object in its place", '{"tools":{}}', /has no "tools" list/],
    ["too many values", `{"tools":[${"{},".repeat(2_000_000)}{}]}`, /has more than 2000000 values/],
    ["too much beside it", `{"tools":[],"x":[${"1,".repeat(200_000)}1]}`, /has more than 200000 values/],
  ])("is refused for %s [bounded]", async (_what, result, why) => {
    const sender: CallSender = { send: (call) => call.reply(resultBytes(result)), cancel: () => {} };
    await expect(readList(sender, "tools", AbortSignal.timeout(60_000))).rejects.toThrow(why);
  });

  it("has the others where one entry is too much to be parsed [bounded] [one-bad-server]", async () => {
    const large = `{"name":"large","x":[${"1,".repeat(200_001)}1]}`;
    const sender: CallSender = {
      send: (call) => call.reply(resultBytes(`{"tools": [ {"name":"a"} , ${large}, {"name":"b"} ] }`)),
      cancel: () => {},
    };
    const items = await readList(sender, "tools", AbortSignal.timeout(60_000));
    expect(items.map(({ value }) => value["name"])).toEqual(["a", undefined, "b"]);
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

describe("a list for which there is no room", () => {
  const described = (count: number, chars: number): CallSender => {
    const tools = Array.from({ length: count }, (_, n) => ({ ...tool(n), description: "é".repeat(chars / 2) }));
    return { send: (call) => call.reply(resultBytes(JSON.stringify({ tools }))), cancel: () => {} };
  };

  it("is refused where it has more than 8 MiB by itself, and the bound is named [bounded]", async () => {
    expect(await readList(described(4_000, 2_000), "tools", AbortSignal.timeout(60_000))).toHaveLength(4_000);
    await expect(readList(described(4_200, 2_000), "tools", AbortSignal.timeout(60_000))).rejects.toThrow(
      "The list that tools/list tells has more than 8388608 bytes, which is the limit for one.",
    );
    // Entries that are not taken do not count.
    expect(await readList(server(15_000, 15_000), "tools", AbortSignal.timeout(60_000))).toHaveLength(5_001);
  });

  it("is not told, its reason is a fault of the server, told once, and it is taken once there is room [bounded]", async () => {
    let refusal: string | undefined = "There is no room for it.";
    const told: string[] = [];
    const lists = new ServerLists({
      onBegin: () => {},
      refusal: (_, items) => (items.length > 1 ? refusal : undefined),
      onList: (kind, items) => void told.push(`${kind} ${items.length}`),
      onFailed: () => {},
      onFault: (kind, reason) => void told.push(`${kind}: ${reason}`),
    });
    await lists.read(server(1, 1), "tools");
    for (let n = 0; n < 2; n++) await lists.read(server(3, 3), "tools", true, true);
    expect(lists.fault).toBe("Its tools could not be read: There is no room for it.");
    refusal = undefined;
    await lists.read(server(3, 3), "tools", true, true);
    expect(told).toEqual(["tools 1", "tools: There is no room for it.", "tools 3"]);
    expect(lists.fault).toBeUndefined();
  });
});

describe("a list that keeps changing", () => {
  afterEach(() => void vi.useRealTimers());

  it("is read at growing distances, and soon again once it has been quiet [bounded]", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "hrtime", "performance"] });
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

  it("is read without a pause once the reading that was under way when somebody asked has ended [menu-current]", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "hrtime", "performance"] });
    const calls: UpstreamCall[] = [];
    const slow: CallSender = { send: (call) => void calls.push(call), cancel: () => {} };
    const lists = new ServerLists({ onBegin: () => {}, onList: () => {}, onFailed: () => {}, onFault: () => {} });
    const answer = async () => {
      calls.at(-1)?.reply(resultBytes('{"tools":[]}'));
      await vi.advanceTimersByTimeAsync(0);
    };
    // Its distances have grown: the next would be ten seconds.
    for (let nth = 1; nth <= 8; nth++) {
      void lists.read(slow, "tools");
      await vi.advanceTimersByTimeAsync(10_000);
      expect(calls).toHaveLength(nth);
      if (nth < 8) {
        void lists.read(slow, "tools");
        await answer();
      }
    }
    void lists.read(slow, "tools");
    void lists.read(slow, "tools", true, true);
    await answer();
    expect(calls).toHaveLength(9);
  });
});
