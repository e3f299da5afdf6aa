import { describe, expect, it } from "vitest";
import type { Config } from "../config/config.js";
import { type ConfigInput, resolveConfig } from "../config/load.js";
import { changesOf, waitsForRestart } from "./applied.js";

const notes = { command: "notes" };

function config(more: object = {}, entry: object = {}): Config {
  return resolveConfig({ mcpServers: { notes: { ...notes, ...entry } }, ...more } as ConfigInput, { dir: "/" });
}

const NO_SERVER = { added: [], changed: [], removed: [] };

describe("what a reload changed [status-true]", () => {
  it("is told by the keys that are others, and tools by their number", () => {
    const before = config({ roles: { a: { deny: ["notes/x"] } } }, { tools: { x: { hide: true }, same: {} } });
    const after = config(
      { roles: { a: { deny: ["notes/y"] } }, limits: { depth: 64 } },
      {
        tools: { x: { name: "z" }, same: {}, more: { cache: true } },
        only: ["x"],
        budget: { calls: 1, windowMs: 1000 },
      },
    );
    const applied = { before, after, ...NO_SERVER };
    expect(changesOf(applied)).toEqual(["roles", "limits", "2 tools", "what is shown of notes", "budget of notes"]);
    expect(changesOf({ ...applied, added: ["wiki", "git"], removed: ["old"] }).slice(0, 2)).toEqual([
      "added wiki, git",
      "removed old",
    ]);
  });

  it("is nothing where the config says the same", () => {
    expect(changesOf({ before: config(), after: config(), ...NO_SERVER })).toEqual([]);
  });

  it("leaves out what waits for a restart, which is told for as long as it differs from the start", () => {
    const [started, other] = [config(), config({ listen: "127.0.0.1:1", pageSize: 7, tls: { cert: "a", key: "b" } })];
    expect(changesOf({ before: started, after: other, ...NO_SERVER })).toEqual([]);
    expect(waitsForRestart(started, other)).toEqual(["listen", "tls", "pageSize"]);
    expect(waitsForRestart(started, config())).toEqual([]);
  });
});
