// What a person at the terminal is asked for, what is shown of the answer, and where it goes.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterAll, beforeAll, expect, it } from "vitest";
import { fakeGateway } from "../../../test/fixtures/fake-gateway.js";
import { type HeldIo, heldIo } from "../../../test/fixtures/held-io.js";
import { until } from "../../../test/fixtures/wait.js";
import { answersIn } from "../../config/inputs/answers.js";
import type { Input } from "../../config/inputs/inputs.js";
import { canAsk } from "../line/ask.js";
import { Stopped } from "../line/io.js";
import { askForInputs } from "./ask-inputs.js";
import { replaceGatewayPort } from "./port.js";

const folder = mkdtempSync(join(tmpdir(), "toolway-ask-"));
beforeAll(() => void fakeGateway());
afterAll(() => replaceGatewayPort(undefined));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const input = (id: string, more: Partial<Input> = {}): Input => {
  return {
    id,
    variable: `INPUT_${id.toUpperCase()}`,
    description: undefined,
    isPassword: false,
    fallback: undefined,
    options: [],
    ...more,
  };
};

/** A person who types each of these when the question before it has been read. */
function person(...lines: readonly (readonly [seen: string, typed: string])[]): HeldIo {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const held = heldIo({ stdin, isErrTTY: true, home: folder });
  void (async () => {
    let from = 0;
    for (const [seen, typed] of lines) {
      await until(seen, () => held.err().indexOf(seen, from) >= 0);
      from = held.err().indexOf(seen, from) + seen.length;
      stdin.write(typed);
    }
  })();
  return held;
}

it("each input is asked for by what it is, and its answer kept; a password is not shown", async () => {
  const stateDir = join(folder, "each");
  const { io, out, err } = person(["API key [key]: ", "s3cret\r"], ["an input [project]: ", "p1\r"]);
  const inputs = [input("key", { description: "API key", isPassword: true }), input("project")];
  expect(await askForInputs(inputs, { stateDir }, io)).toBe(2);
  expect([...answersIn(stateDir)]).toEqual([
    ["key", "s3cret"],
    ["project", "p1"],
  ]);
  expect(err()).not.toContain("s3cret");
  expect(err()).toContain("p1");
  expect(err()).toContain("Kept, sealed, in ~/each.");
  expect(out()).toBe("");
});

it("an empty line and the end of the typing leave an input unanswered, and say what else answers it", async () => {
  const stateDir = join(folder, "empty");
  const { io, err } = person(["[a]: ", "\r"], ["[b]: ", "\u0004"]);
  expect(await askForInputs([input("a"), input("b")], { stateDir }, io)).toBe(0);
  expect(answersIn(stateDir).size).toBe(0);
  expect(err()).toContain("INPUT_A would answer it");
  expect(err()).toContain("INPUT_B would answer it");
});

it("of several options one is taken, after three tries none", async () => {
  const options = ["eu", "us"];
  const asked = "[r] (eu, us): ";
  const right = person([asked, "de\r"], [asked, "us\r"]);
  expect(await askForInputs([input("r", { options })], { stateDir: join(folder, "right") }, right.io)).toBe(1);
  expect(answersIn(join(folder, "right")).get("r")).toBe("us");
  const wrong = person([asked, "1\r"], [asked, "2\r"], [asked, "3\r"]);
  expect(await askForInputs([input("r", { options })], { stateDir: join(folder, "wrong") }, wrong.io)).toBe(0);
});

it("Ctrl-C at a question stops the verb, as the signal does", async () => {
  const { io } = person(["[a]: ", "\u0003"]);
  await expect(askForInputs([input("a")], { stateDir: join(folder, "stop") }, io)).rejects.toBeInstanceOf(Stopped);
});

it("an answer that is too long to be kept is told", async () => {
  const { io } = person(["[a]: ", `${"x".repeat(9_000)}\r`]);
  await expect(askForInputs([input("a")], { stateDir: join(folder, "long") }, io)).rejects.toThrow("could not be kept");
});

it("nobody is asked where nobody types or reads, and what a file says cannot steer the terminal", async () => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  expect(canAsk(heldIo({ stdin, isErrTTY: true }).io)).toBe(true);
  expect(canAsk(heldIo({ stdin, isErrTTY: false }).io)).toBe(false);
  expect(canAsk(heldIo({ isErrTTY: true }).io)).toBe(false);
  const { io, err } = person(["]: ", "\r"]);
  await askForInputs([input("a", { description: "\u001b]0;evil\u0007ask" })], { stateDir: join(folder, "steer") }, io);
  expect(err()).not.toContain("\u001b]0;");
});
