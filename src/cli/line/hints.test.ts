import { describe, expect, it } from "vitest";
import { heldIo } from "../../../test/fixtures/held-io.js";
import { commands } from "../commands/index.js";
import { hintsFor, programName } from "./hints.js";
import { type PlainLine, readPlainLine } from "./plain-line.js";

const typed = (...argv: string[]): PlainLine => readPlainLine(argv, commands) as PlainLine;

const hint = (line: PlainLine, text: string, program = "toolway"): string =>
  hintsFor(line, commands, heldIo({ cwd: "/work", home: "/home/me", program }).io).text(text);

describe("commands that a text names [told-why]", () => {
  it("are called as the program was: by npx where it was run so, by its name where it is installed", () => {
    expect(programName("/usr/local/bin/toolway", {})).toBe("toolway");
    expect(programName("/p/node_modules/.bin/toolway", { npm_command: "exec" })).toBe("npx toolway");
    expect(programName("/p/dist/cli/main.js", { npm_command: "run-script" })).toBe("npx toolway");
    expect(programName("/p/dist/cli/main.js", {})).toBe("npx toolway");
    expect(hint(typed("status"), "`toolway doctor` says what to fix.", "npx toolway")).toBe(
      "`npx toolway doctor` says what to fix.",
    );
  });

  it("mean the same gateway: with the config and the state that the line named", () => {
    const line = typed("status", "--config", "my own.json", "--state", "st");
    expect(hint(line, "`toolway doctor` says it, `toolway pins diff a` how.")).toBe(
      "`toolway doctor --config './my own.json' --state ./st` says it, " +
        "`toolway pins diff a --config './my own.json' --state ./st` how.",
    );
    expect(hint(typed("doctor", "/home/me/x.json"), "`toolway serve` starts one.")).toBe(
      "`toolway serve --config ~/x.json` starts one.",
    );
    expect(hint(typed("doctor"), "`toolway serve` starts one.")).toBe("`toolway serve` starts one.");
  });

  it("stay as they are where they name a config, have none, or are none of ours", () => {
    const line = typed("status", "--config", "x.json");
    for (const text of [
      "`toolway status --config y.json`",
      "`toolway down --state /elsewhere`",
      "`toolway import --write`",
      "`toolway executor --connect ws://a/executors/b --allow c`",
      "`npm install`, toolway serve",
    ]) {
      expect(hint(line, text)).toBe(text);
    }
  });

  it("stay as they are where they are for the broker's machine, which has neither our config nor our state", () => {
    const line = typed("share", "x.json", "--broker", "ws://127.0.0.1:1", "--as", "a", "--state", "st");
    const text = "Make one with `toolway token create --id a --role sharer` at the broker.";
    expect(hint(line, text, "npx toolway")).toBe(text);
    expect(hint(line, "`toolway status` has it.")).toBe("`toolway status --config ./x.json --state ./st` has it.");
  });

  it("have the config before the words of a command that takes all the rest", () => {
    expect(hint(typed("list", "--config", "x.json"), "`toolway add NAME COMMAND…` adds one.")).toBe(
      "`toolway add --config ./x.json NAME COMMAND…` adds one.",
    );
  });

  it("are whole where a name in them has a backtick or a space: a line to paste is made of its words", () => {
    const { command } = hintsFor(typed("inspect", "a", "--config", "x.json"), commands, heldIo({ cwd: "/work" }).io);
    expect(command("call a --arg 'b=`c` d'")).toBe("toolway call a --arg 'b=`c` d' --config ./x.json");
  });
});
