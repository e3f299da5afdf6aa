// The scripts run in the shells themselves, where those are installed: bash always, zsh and fish for their syntax.

import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commands, groups } from "../commands/index.js";
import { completionScript } from "./completion.js";

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "toolway-completion-"));
  // Stands in for the program: answers `__complete` and shows what it was asked.
  const program = join(folder, "toolway");
  writeFileSync(
    program,
    `#!/bin/sh\n[ "$2" = tool ] && printf 'demo__add\\ndemo__echo\\n'\n[ "$2" = server ] && echo demo\n[ "$2" = pinned ] && echo add\necho "$@" >> ${folder}/asked\n`,
  );
  chmodSync(program, 0o755);
  writeFileSync(join(folder, "a-file.json"), "{}");
  for (const shell of ["bash", "zsh", "fish"] as const) {
    writeFileSync(join(folder, shell), completionScript(shell, commands, groups));
  }
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What bash offers when Tab is pressed at the end of the line. */
function complete(...words: string[]): string[] {
  const script = `
    source ${folder}/bash
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
    _toolway
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const run = spawnSync("bash", ["--norc", "-c", script, "-", join(folder, "toolway"), ...words], {
    cwd: folder,
    encoding: "utf8",
  });
  expect(run.stderr).toBe("");
  return run.stdout.split("\n").filter((line) => line !== "");
}

describe("bash", () => {
  it("offers the commands and groups", () => {
    const offered = complete("");
    expect(offered).toEqual(expect.arrayContaining(["serve", "call", "token", "config", "state", "completion"]));
    expect(offered).not.toContain("__complete");
    expect(complete("s")).toEqual(["serve", "stdio", "status", "stop", "start", "state"]);
  });

  it("offers the verbs of a group", () => {
    expect(complete("token", "")).toEqual(["create", "list", "show", "revoke"]);
    expect(complete("token", "re")).toEqual(["revoke"]);
  });

  it("offers the options of the command, and the words an option takes", () => {
    expect(complete("serve", "--n")).toEqual(["--no-auth", "--names"]);
    expect(complete("token", "create", "--")).toEqual(
      expect.arrayContaining(["--id", "--role", "--expires", "--json", "--help"]),
    );
    expect(complete("serve", "--names", "")).toEqual(["prefixed", "plain"]);
    expect(complete("completion", "")).toEqual(["bash", "zsh", "fish"]);
  });

  it("offers names of tools and servers from the gateway, and passes the line on", () => {
    expect(complete("call", "demo__a")).toEqual(["demo__add"]);
    expect(complete("call", "--config", "x.json", "")).toEqual(["demo__add", "demo__echo"]);
    expect(complete("tools", "--server", "")).toEqual(["demo"]);
    expect(complete("pins", "")).toEqual(["list", "diff", "accept"]);
    expect(complete("pins", "accept", "")).toEqual(["demo"]);
    expect(complete("pins", "accept", "demo", "")).toEqual(["add"]);
    expect(complete("stop", "")).toEqual(["demo"]);
    const asked = spawnSync("cat", [join(folder, "asked")], { encoding: "utf8" }).stdout;
    expect(asked).toContain("__complete tool -- call --config x.json");
    expect(asked).toContain("__complete pinned -- pins accept demo");
  });

  it("offers files where a file is meant, and not for the value of another option", () => {
    expect(complete("serve", "a-f")).toEqual(["a-file.json"]);
    expect(complete("serve", "--listen", "127.0.0.1:0", "a-f")).toEqual(["a-file.json"]);
    expect(complete("serve", "--listen", "")).toEqual([]);
  });
});

describe.each(["zsh", "fish"] as const)("%s", (shell) => {
  const installed = spawnSync(shell, ["-c", "true"]).error === undefined;

  it.runIf(installed)("can be read by the shell", () => {
    const run = spawnSync(shell, ["-n", join(folder, shell)], { encoding: "utf8" });
    expect(run.stderr).toBe("");
    expect(run.status).toBe(0);
  });

  it("knows every command and option", () => {
    const script = completionScript(shell, commands, groups);
    for (const { metadata, options } of commands.filter((command) => command.metadata.hidden !== true)) {
      expect(script).toContain(metadata.name.split(" ").at(-1));
      for (const key of Object.keys(options)) {
        expect(script).toContain(key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`));
      }
    }
  });
});
