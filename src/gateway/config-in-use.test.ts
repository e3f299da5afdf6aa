// Which entries are used when a config is read while another is in use.

import { expect, it } from "vitest";
import { resolveConfig } from "../config/load.js";
import { keepEntries } from "./config-in-use.js";

const read = (servers: object) => resolveConfig({ mcpServers: servers } as object, { wrongEntries: "keep", env: {} });
const namesOf = (of: readonly { name: string }[]) => of.map(({ name }) => name);

it("a server whose new entry is wrong keeps the old one and its place; one that had none is misconfigured [bad-entry-alone]", () => {
  const before = read({ a: { command: "x" }, b: { command: "y" }, c: { command: "z" } });
  const after = read({ a: { command: "x2" }, new: {}, b: { comand: "y2" }, c: { command: "z" } });
  const { config, kept } = keepEntries(after, before);
  expect(namesOf(config.servers)).toEqual(["a", "b", "c"]);
  expect(config.servers[0]?.target).toMatchObject({ command: "x2" });
  expect(config.servers[1]).toBe(before.servers[1]);
  expect(config.misconfigured).toMatchObject([{ name: "new", place: 1 }]);
  expect([...kept.keys()]).toEqual(["b"]);
  expect(kept.get("b")).toContain("mcpServers.b.comand: unknown key");
});

it("an entry that stays wrong keeps on being kept, and one that is right again is used", () => {
  const before = read({ b: { command: "y" } });
  const first = keepEntries(read({ b: {} }), before);
  const second = keepEntries(read({ b: { url: "ftp://x" } }), first.config);
  expect(second.config.servers[0]).toBe(before.servers[0]);
  const right = keepEntries(read({ b: { command: "new" } }), second.config);
  expect(right.kept.size).toBe(0);
  expect(right.config.servers[0]?.target).toMatchObject({ command: "new" });
});

it("an entry that is gone or switched off is not kept", () => {
  const before = read({ a: { command: "x" }, b: { command: "y" } });
  const { config, kept } = keepEntries(read({ a: { command: "x", disabled: true }, other: {} }), before);
  expect(config.servers).toEqual([]);
  expect(kept.size).toBe(0);
});
