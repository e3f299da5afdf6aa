import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { TestClock } from "../../test/fixtures/test-clock.js";
import { ownToolName } from "../contracts/names.js";
import type { CacheLimits } from "../contracts/settings.js";
import { renderReply, resultBytes } from "../protocol/reply.js";
import { type FreshReply, freshReply } from "./cacheable.js";
import { AgeClock, type Part, ResponseCache, type Wanted } from "./response-cache.js";

const LIMITS: CacheLimits = { maxBytes: 100_000, entriesPerTool: 3, maxTtlMs: 10_000 };

function fresh(text: string, ttlMs = 1000, scope = "public"): FreshReply {
  const reply = resultBytes(JSON.stringify({ text, ttlMs, cacheScope: scope }));
  const found = freshReply({ ...reply, era: "modern" }, false);
  if (found === undefined) throw new Error("not to be kept");
  return found;
}

function wanted(hash: string, owner = "ann", tool = "t", server = "s"): Wanted {
  return { server, tool: ownToolName(tool), hash, owner };
}

function resource(uri: string): Wanted {
  return { server: "s", tool: undefined, hash: uri, owner: "ann" };
}

function put(cache: ResponseCache, what: Wanted, reply: FreshReply, nowMs: number, uri?: string): void {
  cache.put(what, uri, reply, cache.generation(what.server), nowMs);
}

function read(cache: ResponseCache, what: Wanted, nowMs: number): { text: string; ttlMs: number } | undefined {
  const reply = cache.get(what, nowMs);
  if (reply === undefined) return undefined;
  return (JSON.parse(renderReply(reply, "1").toString()) as { result: { text: string; ttlMs: number } }).result;
}

describe("ResponseCache", () => {
  it("serves a reply until its time is over, with the time that is left", () => {
    const cache = new ResponseCache(LIMITS);
    put(cache, wanted("a"), fresh("one"), 50);
    expect(read(cache, wanted("a"), 50)).toMatchObject({ text: "one", ttlMs: 1000 });
    expect(read(cache, wanted("a"), 1049)).toMatchObject({ text: "one", ttlMs: 1 });
    expect(read(cache, wanted("a"), 1050)).toBeUndefined();
    expect(cache.statsOf("s")).toMatchObject({ hits: 2, entries: 0, bytes: 0 });
    expect(cache.bytes).toBe(0);
  });

  it("[host-8] gives a private reply to its owner alone, a public one to all", () => {
    const cache = new ResponseCache(LIMITS);
    put(cache, wanted("a", "ann"), fresh("hers", 1000, "private"), 0);
    put(cache, wanted("b", "ann"), fresh("all"), 0);
    expect(read(cache, wanted("a", "ann"), 1)?.text).toBe("hers");
    expect(read(cache, wanted("a", "bob"), 1)).toBeUndefined();
    expect(read(cache, wanted("b", "bob"), 1)?.text).toBe("all");
  });

  it("gives a reply to those for whom the newer answer is", () => {
    const cache = new ResponseCache(LIMITS);
    put(cache, wanted("a", "ann"), fresh("all"), 0);
    put(cache, wanted("a", "ann"), fresh("hers", 1000, "private"), 1);
    expect(read(cache, wanted("a", "bob"), 2)).toBeUndefined();
    expect(read(cache, wanted("a", "ann"), 2)?.text).toBe("hers");
    put(cache, wanted("a", "ann"), fresh("all again"), 3);
    expect(read(cache, wanted("a", "ann"), 4)?.text).toBe("all again");
    expect(cache.statsOf("s").entries).toBe(1);
  });

  it("[host-8] keeps nothing longer than the ceiling, but tells the server's own time", () => {
    const cache = new ResponseCache(LIMITS);
    put(cache, wanted("a"), fresh("one", 86_400_000), 0);
    expect(read(cache, wanted("a"), 9_999)?.ttlMs).toBe(86_390_001);
    expect(read(cache, wanted("a"), 10_000)).toBeUndefined();
  });

  it("drops first what was used least recently, of a tool by number and of all by bytes", () => {
    const cache = new ResponseCache(LIMITS);
    for (const hash of ["a", "b", "c"]) put(cache, wanted(hash), fresh(hash), 0);
    read(cache, wanted("a"), 1);
    put(cache, wanted("d"), fresh("d"), 2);
    expect(["a", "b", "c", "d"].map((hash) => read(cache, wanted(hash), 3)?.text)).toEqual(["a", undefined, "c", "d"]);
    const large = "x".repeat(60_000);
    put(cache, wanted("big", "ann", "u"), fresh(large), 4);
    put(cache, wanted("big", "ann", "u", "other"), fresh(large), 5);
    expect(cache.bytes).toBeLessThanOrEqual(LIMITS.maxBytes);
    expect(read(cache, wanted("big", "ann", "u"), 6)).toBeUndefined();
    expect(read(cache, wanted("big", "ann", "u", "other"), 6)?.text).toBe(large);
    put(cache, wanted("huge"), fresh("x".repeat(LIMITS.maxBytes)), 7);
    expect(read(cache, wanted("huge"), 8)).toBeUndefined();
  });

  it("forgets the part of a server that changed", () => {
    const all = () => {
      const cache = new ResponseCache({ ...LIMITS, entriesPerTool: 10 });
      put(cache, wanted("t"), fresh("t"), 0);
      put(cache, wanted("t", "ann", "t", "other"), fresh("t"), 0);
      for (const uri of ["file:///a", "file:///a/b", "file:///c"]) {
        put(cache, resource(uri), fresh(uri), 0, uri);
      }
      return cache;
    };
    const left = (part?: Part) => {
      const cache = all();
      cache.invalidate("s", part);
      expect(read(cache, wanted("t", "ann", "t", "other"), 1)?.text).toBe("t");
      const uris = ["file:///a", "file:///a/b", "file:///c"].filter((uri) => read(cache, resource(uri), 1));
      return [read(cache, wanted("t"), 1)?.text, ...uris];
    };
    expect(left()).toEqual([undefined]);
    expect(left("tools")).toEqual([undefined, "file:///a", "file:///a/b", "file:///c"]);
    expect(left("resources")).toEqual(["t"]);
    expect(left({ uri: "file:///a/b" })).toEqual(["t", "file:///c"]);
    expect(left({ uri: "file:///a" })).toEqual(["t", "file:///c"]);
  });

  it.each<[string, (cache: ResponseCache) => void]>([
    ["the server was invalidated", (cache) => cache.invalidate("s")],
    ["its resources were", (cache) => cache.invalidate("s", "resources")],
    ["the server went", (cache) => cache.forget("s")],
    [
      "the server went and came back",
      (cache) => {
        cache.forget("s");
        cache.generation("s");
      },
    ],
  ])("does not keep what was under way when %s", (_what, change) => {
    const cache = new ResponseCache(LIMITS);
    const generation = cache.generation("s");
    change(cache);
    cache.put(wanted("a"), undefined, fresh("old"), generation, 0);
    expect(read(cache, wanted("a"), 1)).toBeUndefined();
    expect(cache.bytes).toBe(0);
  });

  it("applies narrower limits at once", () => {
    const cache = new ResponseCache(LIMITS);
    for (const hash of ["a", "b", "c"]) put(cache, wanted(hash), fresh(hash, 5_000), 0);
    put(cache, wanted("u", "ann", "u"), fresh("u", 100), 0);
    cache.setLimits({ ...LIMITS, entriesPerTool: 2 });
    expect(cache.countOf("s", ownToolName("t"))).toBe(2);
    cache.setLimits({ ...LIMITS, maxTtlMs: 1000 });
    expect(cache.countOf("s", ownToolName("t"))).toBe(0);
    expect(read(cache, wanted("u", "ann", "u"), 50)?.text).toBe("u");
    cache.setLimits({ ...LIMITS, maxBytes: 1 });
    expect(cache.bytes).toBe(0);
  });

  it("holds a copy: a reply is often a small part of a large buffer", () => {
    const cache = new ResponseCache(LIMITS);
    const reply = fresh("one");
    put(cache, wanted("a"), reply, 0);
    reply.reply.bytes.fill(0);
    expect(read(cache, wanted("a"), 1)?.text).toBe("one");
  });
});

describe("ResponseCache against a model", () => {
  const hash = fc.constantFrom("h0", "h1", "h2", "h3", "h4", "h5");
  const owner = fc.constantFrom("ann", "bob", "eve");
  const tool = fc.constantFrom(...["t", "t", "t", "u"].map(ownToolName), undefined);
  const server = fc.constantFrom("s", "s", "s", "r");
  const what = fc.record({ server, tool, hash, owner });
  const step = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constant("put" as const),
        what,
        // Round numbers, so that times meet exactly.
        ttlMs: fc.integer({ min: 1, max: 6 }).map((n) => n * 50),
        scope: fc.constantFrom("public", "private"),
        size: fc.constantFrom(0, 10, 100, 1_500),
        /** As if it was sent before the last change. */
        late: fc.nat(3).map((n) => n === 0),
      }),
    },
    { weight: 8, arbitrary: fc.record({ do: fc.constant("get" as const), what }) },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: 0, max: 3 }).map((n) => n * 50) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant("invalidate" as const),
        server,
        part: fc.constantFrom(undefined, "tools" as const, "resources" as const, { uri: "h1" }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("forget" as const), server }) },
  );

  interface Modelled {
    readonly text: string;
    readonly what: Wanted;
    readonly scope: string;
    readonly untilMs: number;
  }

  /** As expect(), of which hundreds of thousands would take half a minute. */
  function check(holds: boolean, what: string): asserts holds {
    if (!holds) throw new Error(what);
  }

  it("[host-8] [bounded] never holds too many or too much, and never serves what is too old, out of date or another's", () => {
    const limits: CacheLimits = { maxBytes: 8_000, entriesPerTool: 3, maxTtlMs: 100 };
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const cache = new ResponseCache(limits);
        let nowMs = 0;
        let serial = 0;
        /** The last answer to each request of each owner, and whether a change made it worthless. */
        const answers: Modelled[] = [];
        const stale = new Set<Modelled>();
        const before = new Map<string, number>();
        const sent = new Map<string, number>();
        for (const one of steps) {
          if (one.do === "wait") nowMs += one.ms;
          else if (one.do === "forget" || one.do === "invalidate") {
            before.set(one.server, sent.get(one.server) ?? cache.generation(one.server));
            const part = one.do === "forget" ? undefined : one.part;
            if (one.do === "forget") cache.forget(one.server);
            else cache.invalidate(one.server, part);
            for (const answer of answers) {
              const { what } = answer;
              if (what.server !== one.server) continue;
              const isTool = what.tool !== undefined;
              const hit =
                part === undefined ||
                (part === "tools" ? isTool : !isTool && (part === "resources" || what.hash === part.uri));
              if (hit) stale.add(answer);
            }
          } else if (one.do === "put") {
            const text = `${++serial} ${"x".repeat(one.size)}`;
            const late = one.late ? before.get(one.what.server) : undefined;
            const generation = late ?? cache.generation(one.what.server);
            sent.set(one.what.server, cache.generation(one.what.server));
            const uri = one.what.tool === undefined ? one.what.hash : undefined;
            cache.put(one.what, uri, fresh(text, one.ttlMs, one.scope), generation, nowMs);
            const untilMs = nowMs + Math.min(one.ttlMs, limits.maxTtlMs);
            const answer = { text, what: one.what, scope: one.scope, untilMs };
            answers.push(answer);
            if (late !== undefined && late !== cache.generation(one.what.server)) stale.add(answer);
          } else {
            const found = read(cache, one.what, nowMs);
            if (found !== undefined) {
              const answer = answers.find(({ text }) => text === found.text);
              check(answer !== undefined, "nobody answered so");
              const { what: asked, scope, untilMs } = answer;
              check(asked.server === one.what.server && asked.tool === one.what.tool, "another tool's");
              check(asked.hash === one.what.hash, "another request's");
              check(scope === "public" || asked.owner === one.what.owner, "another owner's");
              check(nowMs < untilMs && found.ttlMs > 0, "expired");
              check(!stale.has(answer), "out of date");
            }
          }
          check(cache.bytes <= limits.maxBytes, "too many bytes");
          let bytes = 0;
          for (const name of ["s", "r"]) {
            const counts = [ownToolName("t"), ownToolName("u"), undefined].map((tool) => cache.countOf(name, tool));
            check(Math.max(...counts) <= limits.entriesPerTool, "too many entries");
            const stats = cache.statsOf(name);
            check(stats.entries === counts.reduce((sum, count) => sum + count, 0), "entries are miscounted");
            bytes += stats.bytes;
          }
          check(cache.bytes === bytes, "bytes are miscounted");
        }
      }),
      { numRuns: histories(2_000) },
    );
  });

  it("has a reply that fits when it is asked for at once", () => {
    fc.assert(
      fc.property(fc.array(what, { minLength: 1, maxLength: 10 }), (all) => {
        const cache = new ResponseCache(LIMITS);
        for (const [i, one] of all.entries()) {
          put(cache, one, fresh(String(i), 1000, i % 2 === 0 ? "public" : "private"), i);
          check(read(cache, one, i)?.text === String(i), "not there");
        }
      }),
      { numRuns: histories(2_000) },
    );
  });
});

describe("AgeClock", () => {
  it("goes on while the machine sleeps, and never back", () => {
    const clock = new TestClock();
    const age = new AgeClock(clock);
    expect(age.now()).toBe(0);
    clock.advance(100);
    clock.jumpWall(3);
    expect(age.now()).toBe(100);
    clock.jumpWall(3_600_000);
    expect(age.now()).toBe(100 + 3_600_003);
    clock.jumpWall(-86_400_000);
    expect(age.now()).toBe(100 + 3_600_003);
    clock.advance(50);
    clock.jumpWall(5_000);
    expect(age.now()).toBe(150 + 3_600_003 + 5_000);
  });
});
