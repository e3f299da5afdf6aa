import { Writable } from "node:stream";
import fc from "fast-check";
import { expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { commands } from "../commands/index.js";
import { parseLine } from "../parser.js";
import type { Io } from "./io.js";
import { readPlainLine } from "./plain-line.js";

const nowhere = () => new Writable({ write: (_chunk, _encoding, done) => done() });
const io = { stdout: nowhere(), stderr: nowhere(), env: {}, cwd: "/", home: "/" } as unknown as Io;

const flags = commands.flatMap(({ options }) => Object.values(options).map(({ flag }) => flag));
const choices = commands.flatMap(({ options }) => Object.values(options).flatMap(({ choices = [] }) => choices));
const word = fc.oneof(
  fc.constantFrom(...flags, ...choices, "--config", "--help", "-h", "-V", "--", "-", "", "a.json", "tool", "x=1", "{}"),
  fc.constantFrom(...flags).map((flag) => `${flag}=value`),
  fc.constantFrom(...flags).map((flag) => flag.slice(0, -1)),
);
const line = fc
  .tuple(fc.constantFrom(...commands.map(({ metadata }) => metadata.name)), fc.array(word, { maxLength: 5 }))
  .map(([name, words]) => [...name.split(" "), ...words]);

it("reads a line as the parser does, or leaves it to the parser", async () => {
  let read = 0;
  const check = fc.asyncProperty(line, async (argv) => {
    const plain = readPlainLine(argv, commands);
    if (plain === undefined) return;
    read++;
    expect(await parseLine(argv, io)).toEqual({ command: plain.command, input: plain.input });
  });
  await fc.assert(check, { numRuns: histories(2_000) });
  expect(read).toBeGreaterThan(histories(100));
});

it.each([
  ["serve"],
  ["serve a.json --listen 127.0.0.1:0 --json --no-auth"],
  ["serve --config a.json"],
  ["status --json"],
  ["call demo__add --arg a=2 --arg b=3"],
  ["token list"],
])("needs no parser for: %s", (text) => {
  expect(readPlainLine(text.split(" "), commands)).toBeDefined();
});

it.each([
  [""],
  ["help"],
  ["--version"],
  ["serve --help"],
  ["serve a b"],
  ["token"],
  ["serve --lissen 1"],
  ["serve -- a"],
])("leaves to the parser: %s", (text) => {
  expect(readPlainLine(text.split(" "), commands)).toBeUndefined();
});
