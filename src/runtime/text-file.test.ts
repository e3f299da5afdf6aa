import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { loadConfig } from "../config/load.js";
import { readTextFile, readUtf8File } from "./text-file.js";

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

it("a file that is written again is refused where it is no UTF-8, with the first place that is none", () => {
  const path = join(folder, "again");
  const says = (bytes: Buffer) => {
    writeFileSync(path, bytes);
    try {
      return readUtf8File(path);
    } catch (error) {
      return (error as Error).message;
    }
  };
  const good = "\uFEFF{ \uFFFD ü \n}";
  expect(says(Buffer.from(good))).toBe(good);
  const bad = Buffer.concat([Buffer.from("\uFFFDü\n\uFFFD"), Buffer.from([0x65, 0xe9, 0x20])]);
  expect(says(bad)).toBe("it is not in UTF-8: byte 11, in line 2, is 0xE9");
  expect(says(Buffer.from([0x61, 0xc3]))).toBe("it is not in UTF-8: byte 2, in line 1, is 0xC3");
  for (const mark of ["\xff\xfe", "\xfe\xff"]) {
    expect(says(Buffer.from(`${mark}{\0`, "latin1"))).toBe("it is in UTF-16, not in UTF-8");
  }
});

it("what the system says is told as ever", () => {
  for (const [path, code] of [
    [folder, "EISDIR"],
    [join(folder, "none"), "ENOENT"],
  ] as const) {
    expect(() => readTextFile(path)).toThrow(expect.objectContaining({ code }));
  }
});
