// Makes docs/cli.md from the commands' data; reference.test.ts fails where the file differs.

import { argTerm, type Command, optionTerm } from "./command.js";

const OPENING = `# The command line

<!-- Made from the commands themselves: npx vitest run src/cli/line/reference.test.ts -u -->

\`npx toolway <command>\`, or \`toolway <command>\` where it is installed globally. Every command has \`--help\`.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | it was tried and failed: a server, a call, the gateway |
| 2 | a wrong command line or config; nothing was started |
| 130 | interrupted by Ctrl-C |

What a script reads goes to stdout; notes, warnings, errors and logs go to stderr. Colours appear on a terminal only,
and not when \`NO_COLOR\` is set. \`serve\` and \`executor\` end with 0 after Ctrl-C: that is how they are stopped.

**Which config.** The one that is named; else \`./toolway.json\`; else \`~/.config/toolway/toolway.json\`; else a
built-in demo. **Which gateway.** \`tools\`, \`call\`, \`status\`, \`pins\`, \`token\` and \`state\` talk to the gateway that
runs for that config, through its control socket, and start one for themselves where none runs. \`reload\`, \`stop\` and
\`start\` are for one that runs.

| environment variable | |
|---|---|
| \`TOOLWAY_TOKEN\` | the default token of \`serve\`, in place of one that it makes; the token of \`executor\`; at least 16 characters, kept in no file |
| \`TOOLWAY_LOG_LEVEL\` | what is logged: \`debug\`, \`info\` (default), \`warn\`, \`error\` |
| \`TOOLWAY_LOG_FORMAT\` | \`json\` for one JSON object a line; else text |
| \`TOOLWAY_DEBUG\` | if set, the stack of a fault is shown |
| \`XDG_STATE_HOME\` | where state directories are, in place of \`~/.local/state\` |
`;

export function cliReference(commands: readonly Command[]): string {
  const shown = commands.filter(({ metadata }) => metadata.hidden !== true);
  const list = shown.map(
    ({ metadata }) => `| [\`${metadata.name}\`](#${anchor(metadata.name)}) | ${metadata.summary} |`,
  );
  return [OPENING, ["| command | |", "|---|---|", ...list, ""].join("\n"), ...shown.map(section)].join("\n");
}

function section({ metadata, args, options, examples }: Command): string {
  const argTerms = Object.entries(args).map(([name, arg]) => argTerm(name, arg));
  const required = Object.values(options).flatMap((option) => (option.required ? [optionTerm(option)] : []));
  const optional = Object.keys(options).length > required.length ? ["[options]"] : [];
  const usage = ["toolway", metadata.name, ...argTerms, ...required, ...optional].join(" ");
  const lines = [`## ${metadata.name}`, "", metadata.description ?? metadata.summary, "", "```", usage, "```", ""];
  const rows = [
    ...Object.entries(args).map(([name, arg]) => `| \`${argTerm(name, arg)}\` | ${arg.description} |`),
    ...Object.values(options).map((option) => {
      const choices =
        option.choices === undefined ? "" : ` One of ${option.choices.map((word) => `\`${word}\``).join(", ")}.`;
      const repeat = option.repeat === true ? " May be repeated." : "";
      return `| \`${optionTerm(option)}\` | ${option.description}${choices}${repeat} |`;
    }),
  ];
  if (rows.length > 0) lines.push("| | |", "|---|---|", ...rows, "");
  if (examples.length > 0) {
    lines.push("```sh", ...examples.flatMap(({ line, note }) => [`# ${note}`, line]), "```", "");
  }
  return lines.join("\n");
}

function anchor(name: string): string {
  return name.replaceAll(" ", "-");
}
