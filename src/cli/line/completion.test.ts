// The scripts run in the shells themselves: bash is always there, zsh and fish where they are installed (CI has them).

import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commands, groups } from "../commands/index.js";
import { completionScript } from "./completion.js";

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];
/** Far above what a shell takes to start; one that waits for a key would wait for ever. */
const SHELL_MS = 60_000;

/** Names that a server may give itself or its tools, and that a shell would act on if it read them as words of its own. */
const HOSTILE = ["$(touch ran-1)", "`touch ran-2`", "x; touch ran-3", "'\"", "*", "$HOME"];

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "toolway-completion-"));
  // Stands in for the program: answers `__complete` and shows what it was asked.
  const program = join(folder, "toolway");
  writeFileSync(
    program,
    `#!/bin/sh\n[ "$2" = tool ] && printf 'demo__add\\ndemo__echo\\n'\n[ "$2" = server ] && echo demo\n[ "$2" = pinned ] && echo add\n[ "$2" = entry ] && echo docs\n[ "$2" = importable ] && echo gh\n[ "$2" = mailbox ] && cat ${folder}/hostile\n[ "$2" = token ] && echo ci\n[ "$2" = argument ] && printf 'a=\\nb=\\n'\necho "$@" >> ${folder}/asked\n`,
  );
  chmodSync(program, 0o755);
  writeFileSync(join(folder, "a-file.json"), "{}");
  writeFileSync(join(folder, "hostile"), HOSTILE.map((name) => `${name}\n`).join(""));
  for (const shell of SHELLS) {
    writeFileSync(join(folder, shell), completionScript(shell, commands, groups));
  }
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a shell offers when Tab is pressed at the end of the line, in no order. */
const complete: Record<Shell, (...words: string[]) => string[]> = {
  bash: (...words) => {
    const script = `
      source ${folder}/bash
      COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
      _toolway
      printf '%s\\n' "\${COMPREPLY[@]}"`;
    return offered("bash", ["--norc", "-c", script, "-", "toolway", ...words]);
  },
  // A zsh of its own at a pseudo-terminal, in which a key is pressed that does what Tab does, and says when it is done.
  // What it was given and holds to fit is noted.
  zsh: (...words) => {
    const noted = join(folder, "noted");
    const script = `
      zmodload zsh/zpty
      zpty z "zsh -f -i"
      zpty -w z 'PROMPT=; autoload -Uz compinit && compinit -u -D; source ${folder}/zsh'
      zpty -w z 'compadd() { local -a hits; builtin compadd -A hits "$@"; (( $#hits )) && print -rl -- $hits >> ${noted}; builtin compadd "$@" }'
      zpty -w z 'complete-it() { zle expand-or-complete; print completed-$((1 + 1)) }; zle -N complete-it; bindkey "^X" complete-it'
      zpty -w z 'print ready-$((1 + 1))'
      zpty -r -m z answer '*ready-2*'
      zpty -n -w z "$1"$'\\C-x'
      zpty -r -m z answer '*completed-2*'
      zpty -d z
      [[ -e ${noted} ]] && cat ${noted} && rm ${noted} || true`;
    return offered("zsh", ["-f", "-c", script, "-", ["toolway", ...words].join(" ")]);
  },
  fish: (...words) => {
    const script = `source ${folder}/fish; complete -C ${JSON.stringify(["toolway", ...words].join(" "))}`;
    return offered("fish", ["--no-config", "-c", script]).map((line) => line.split("\t")[0] ?? "");
  },
};

function offered(shell: Shell, args: readonly string[]): string[] {
  const env = { ...process.env, PATH: `${folder}:${process.env["PATH"]}` };
  const run = spawnSync(shell, args, { cwd: folder, encoding: "utf8", env, timeout: SHELL_MS });
  expect(run.stderr).toBe("");
  expect(run.status).toBe(0);
  return [...new Set(run.stdout.split("\n").filter((line) => line !== ""))].sort((a, b) => (a < b ? -1 : 1));
}

describe.each(SHELLS)("%s", (shell) => {
  const isInstalled = spawnSync(shell, ["-c", "true"]).error === undefined;
  const press = complete[shell];

  describe.runIf(isInstalled)("at the key", () => {
    it("offers the commands and groups", () => {
      const all = press("");
      expect(all).toEqual(expect.arrayContaining(["serve", "call", "token", "config", "state", "completion"]));
      expect(all).not.toContain("__complete");
      expect(press("s")).toEqual(["serve", "setup", "share", "start", "state", "status", "stdio", "stop"]);
    });

    it("offers the verbs of a group", () => {
      expect(press("token", "")).toEqual(["create", "header", "list", "redeem", "revoke", "rotate", "show"]);
      expect(press("token", "re")).toEqual(["redeem", "revoke"]);
    });

    it("offers the options of the command, and the words an option takes", () => {
      expect(press("serve", "--n")).toEqual(expect.arrayContaining(["--names", "--no-auth"]));
      expect(press("serve", "--nam")).toEqual(["--names"]);
      expect(press("token", "create", "--")).toEqual(
        expect.arrayContaining(["--id", "--role", "--expires", "--json", "--help"]),
      );
      expect(press("serve", "--names", "")).toEqual(["plain", "prefixed"]);
      expect(press("completion", "")).toEqual(["bash", "fish", "zsh"]);
      expect(press("import", "--from", "cu")).toEqual(["cursor"]);
      expect(press("add", "--no")).toEqual(["--no-check"]);
    });

    it("offers at a group by itself what the verb takes that it stands for, beside its verbs", () => {
      expect(press("outbox", "--")).toEqual(expect.arrayContaining(["--lanes", "--only", "--server", "--json"]));
      expect(press("outbox", "--only", "un")).toEqual(["unknown"]);
      expect(press("outbox", "--server", "")).toEqual(["demo"]);
      expect(press("outbox", "--lanes", "re")).toEqual(expect.arrayContaining(["release"]));
    });

    it("offers names of tools and servers from the gateway, and passes the line on", () => {
      writeFileSync(join(folder, "asked"), "");
      expect(press("call", "demo__a")).toEqual(["demo__add"]);
      expect(press("call", "--config", "x.json", "")).toEqual(["demo__add", "demo__echo"]);
      expect(press("tools", "--server", "")).toEqual(["demo"]);
      expect(press("pins", "")).toEqual(expect.arrayContaining(["accept", "diff", "list"]));
      expect(press("pins", "accept", "")).toEqual(["demo"]);
      expect(press("pins", "accept", "demo", "")).toEqual(["add"]);
      expect(press("stop", "")).toEqual(["demo"]);
      expect(press("remove", "")).toEqual(["docs"]);
      expect(press("import", "--only", "")).toEqual(["gh"]);
      expect(press("token", "revoke", "")).toEqual(["ci"]);
      expect(press("token", "rotate", "")).toEqual(["ci"]);
      expect(press("call", "demo__add", "--arg", "")).toEqual(["a=", "b="]);
      const asked = readFileSync(join(folder, "asked"), "utf8");
      expect(asked).toContain("__complete tool -- call --config x.json");
      expect(asked).toContain("__complete pinned -- pins accept demo");
    });

    it("runs nothing that stands in a name", () => {
      press("mailbox", "show", "");
      expect(readdirSync(folder).filter((name) => name.startsWith("ran"))).toEqual([]);
    });

    it("offers files where a file is meant, and not for the value of another option", () => {
      expect(press("serve", "a-f")).toEqual(["a-file.json"]);
      expect(press("serve", "--listen", "127.0.0.1:0", "a-f")).toEqual(["a-file.json"]);
      expect(press("serve", "--listen", "")).toEqual([]);
      expect(press("add", "--env", "A=b", "name", "a-f")).toEqual(["a-file.json"]);
      expect(press("add", "name", "node", "a-f")).toEqual(["a-file.json"]);
    });
  });

  it.runIf(shell === "bash")("offers a name as one word that the shell reads as that name", () => {
    const offers = press("mailbox", "show", "");
    expect(offers).toHaveLength(HOSTILE.length);
    const read = spawnSync("bash", ["--norc", "-c", `printf '%s\\n' ${offers.join(" ")}`], {
      cwd: folder,
      encoding: "utf8",
    });
    expect(new Set(read.stdout.trimEnd().split("\n"))).toEqual(new Set(HOSTILE));
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
