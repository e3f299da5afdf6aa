import { expect, it, vi } from "vitest";
import type { DumpEntry } from "../../contracts/store.js";
import { Redactor } from "../../runtime/redact/redactor.js";
import { MemoryMap } from "../../store/memory-map.js";
import { MARK_MAP } from "./mark.js";
import { openSharedState, redactedDump, safeLine } from "./state.js";

async function* stored(...entries: DumpEntry[]): AsyncIterable<DumpEntry> {
  yield* entries;
}

it("what is dumped has no secret of a server's entry in it, and is else as it is kept [secrets-unseen]", async () => {
  const known = {
    intro: { instructions: "use hunter2hunter2" },
    lists: { tools: ['{"name":"hunter2hunter2"}', "a\tb"] },
  };
  const entries: DumpEntry[] = [
    { map: "known", key: "one", value: known },
    { map: "pins", key: "x", value: { server: "one", tool: "hunter2hunter2", at: 1, gone: null } },
    { map: "pins", key: "y", value: { server: "two", tool: "hunter2hunter2" } },
    { map: "tokens", key: "t", value: { id: "me" } },
  ];
  const redactor = new Redactor(["hunter2hunter2"]);
  const redact = (server: string, text: string) => (server === "one" ? redactor.redact(text) : text);
  const dumped: DumpEntry[] = [];
  for await (const entry of redactedDump(stored(...entries), redact)) dumped.push(entry);
  expect(dumped).toEqual([
    {
      map: "known",
      key: "one",
      value: { intro: { instructions: "use [redacted]" }, lists: { tools: ['{"name":"[redacted]"}', "a\tb"] } },
    },
    { map: "pins", key: "x", value: { server: "one", tool: "[redacted]", at: 1, gone: null } },
    entries[2],
    entries[3],
  ]);
});

it("a line with words of several servers has no secret of any of them, and stays one line [secrets-unseen]", () => {
  const entry = (name: string, key: string) => ({ name, target: { env: { API_KEY: key } } });
  const servers = [entry("one", "hunter2hunter2"), entry("two", "correct-horse-battery")];
  const line = safeLine(servers, 'tools "hunter2hunter2\nnote: forged" and "correct-horse-battery" \u202e');
  expect(line).toBe('tools "[redacted]\\u{000A}note: forged" and "[redacted]" \\u{202E}');
});

it("a mark that was set between the opening and the first look at it is told, and so is one that comes later [engine-move]", async () => {
  const maps = new Map<string, MemoryMap<unknown>>();
  const shared = (name: string) => {
    const map = maps.get(name) ?? new MemoryMap<unknown>(name);
    maps.set(name, map);
    return map;
  };
  const engine = { shared: { shared, map: shared }, self: "one", close: async () => {} };
  const opened = await openSharedState(undefined, { TOOLWAY_TOKEN: "t".repeat(32) }, async () => {
    return { engine: engine as never, key: new Uint8Array(32) };
  });
  const mark = { v: 1, state: "moved", at: 0, self: "the engine", other: "a disk", otherId: "x" };
  await shared(MARK_MAP).put("mark", mark);
  const told: string[] = [];
  opened.onMarked((why) => void told.push(why));
  await vi.waitFor(() => expect(told).toEqual([expect.stringContaining("was moved to a disk")]));
  await shared(MARK_MAP).put("mark", { ...mark, other: "another" });
  await vi.waitFor(() => expect(told).toEqual([told[0], expect.stringContaining("was moved to another")]));
  await opened.close();
});
