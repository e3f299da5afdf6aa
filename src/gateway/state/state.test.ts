import { expect, it } from "vitest";
import type { DumpEntry } from "../../contracts/store.js";
import { Redactor } from "../../runtime/redact/redactor.js";
import { redactedDump, safeLine } from "./state.js";

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
