// What V8 made of a script is code that we run: it is read as it was written, or not at all.

import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { codePath, readCode, writeCode } from "./kept-code.js";

const CODE = Buffer.from("what V8 made of a script");

let home = "";
let path = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "toolway-code-"));
  path = codePath("gateway.cjs", 0xbeef, { XDG_STATE_HOME: home }, home);
  mkdirSync(join(home, "toolway"));
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

it("code is read as it was written, from a file and a folder that are nobody else's", () => {
  writeCode(path, CODE);
  expect(readCode(path)).toEqual(CODE);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
  expect(readdirSync(dirname(path))).toHaveLength(1);
});

it("other flags or another version of V8 have another file", () => {
  const env = { XDG_STATE_HOME: home };
  expect(codePath("gateway.cjs", 1, env, home)).not.toBe(codePath("gateway.cjs", 2, env, home));
});

it("code of which a single bit is another, or the end is missing, is none", () => {
  writeCode(path, CODE);
  const whole = readFileSync(path);
  for (const at of [0, 40, whole.length - 1]) {
    const damaged = Buffer.from(whole);
    damaged[at] = (damaged[at] ?? 0) ^ 1;
    writeFileSync(path, damaged);
    expect(readCode(path)).toBeUndefined();
  }
  for (const length of [0, 16, whole.length - 1]) {
    writeFileSync(path, whole.subarray(0, length));
    expect(readCode(path)).toBeUndefined();
  }
});

it.skipIf(process.platform === "win32")("code that others could have written is none", () => {
  writeCode(path, CODE);
  chmodSync(path, 0o620);
  expect(readCode(path)).toBeUndefined();
  chmodSync(path, 0o600);
  chmodSync(dirname(path), 0o770);
  expect(readCode(path)).toBeUndefined();
  chmodSync(dirname(path), 0o700);
  expect(readCode(path)).toEqual(CODE);
  symlinkSync(path, `${path}.link`);
  expect(readCode(`${path}.link`)).toBeUndefined();
});

it("where there is no place for it, nothing is written and nothing fails", () => {
  rmSync(join(home, "toolway"), { recursive: true });
  writeCode(path, CODE);
  expect(readdirSync(home)).toEqual([]);
  writeFileSync(join(home, "toolway"), "a file is in the way");
  writeCode(path, CODE);
  expect(readCode(path)).toBeUndefined();
});

it("of many versions the code that was written first goes [bounded]", () => {
  for (let version = 0; version < 100; version++) writeCode(`${path}.${version}`, CODE);
  expect(readdirSync(dirname(path)).length).toBeLessThanOrEqual(40);
  expect(readCode(`${path}.99`)).toEqual(CODE);
});
