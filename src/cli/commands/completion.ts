// `toolway completion`: the script that makes a shell complete our commands.

import { type Command, defineCommand } from "../line/command.js";
import { Exit, usageError } from "../line/errors.js";

const SHELLS = ["bash", "zsh", "fish"] as const;

interface Completed {
  readonly commands: readonly Command[];
  readonly groups: Readonly<Record<string, string>>;
}

/** It is one of the commands that it completes: it gets them when it runs. */
export function completionOf(all: () => Completed): Command {
  return defineCommand({
    metadata: {
      name: "completion",
      summary: "Prints the completion script of a shell.",
      description: "Prints the completion script of bash, zsh or fish. Names of tools come from the running gateway.",
    },
    args: { shell: { required: true, description: "bash, zsh or fish.", completes: SHELLS } },
    options: {},
    examples: [
      { line: "source <(toolway completion bash)", note: "in ~/.bashrc" },
      { line: "source <(toolway completion zsh)", note: "in ~/.zshrc, after compinit" },
      { line: "toolway completion fish > ~/.config/fish/completions/toolway.fish", note: "once" },
    ],
    async handler(input, io) {
      const shell = SHELLS.find((known) => known === input.shell);
      if (shell === undefined)
        throw usageError(`There is no completion for ${input.shell}.`, `It is one of ${SHELLS.join(", ")}.`);
      const { completionScript } = await import("../line/completion-scripts.js");
      const { commands, groups } = all();
      io.stdout.write(completionScript(shell, commands, groups));
      return Exit.ok;
    },
  });
}
