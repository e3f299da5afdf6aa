import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { loadConfig } from "../config/load.js";
import { readTextFile } from "./text-file.js";

const folder = mkdtempSync(join(tmpdir(), "toolway-text-file-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("a file is read whole, in pieces that may cut a letter", () => {
  const text = `x${"ü".repeat(100_000)}`;
  writeFileSync(join(folder, "long"), text);
  expect(readTextFile(join(folder, "long"))).toBe(text);
  writeFileSync(join(folder, "empty"), "");
  expect(readTextFile(join(folder, "empty"))).toBe("");
});

it("no more is read than there may be, and a config that has no end says so [bounded]", () => {
  writeFileSync(join(folder, "five"), "12345");
  expect(readTextFile(join(folder, "five"), 5)).toBe("12345");
  expect(() => readTextFile(join(folder, "five"), 4)).toThrow(expect.objectContaining({ code: "EFBIG" }));
  expect(() => loadConfig("/dev/zero")).toThrow("/dev/zero: this file has more than 16 MiB, and no config has");
});

it("what the system says is told as ever", () => {
  for (const [path, code] of [
    [folder, "EISDIR"],
    [join(folder, "none"), "ENOENT"],
  ] as const) {
    expect(() => readTextFile(path)).toThrow(expect.objectContaining({ code }));
  }
});
