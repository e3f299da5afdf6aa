// The completion scripts of the shells, made from the commands' data: words and options stand in the script, so that
// only names of tools and servers need a process.

import type { Command, CommandOption, Completes } from "./command.js";

type Shell = "bash" | "zsh" | "fish";

/** What follows a command's words: `token` has verbs, `token create` has options. */
interface Node {
  /** `""` for `toolway` itself. */
  readonly path: string;
  readonly verbs: readonly { readonly word: string; readonly summary: string }[];
  readonly options: readonly CommandOption[];
  /** What the positional arguments take, in order. */
  readonly args: readonly (Completes | undefined)[];
  /** The last argument takes all further words, too. */
  readonly hasRest: boolean;
}

export function completionScript(
  shell: Shell,
  commands: readonly Command[],
  groups: Readonly<Record<string, string>>,
): string {
  const nodes = toNodes(
    commands.filter(({ metadata }) => metadata.hidden !== true),
    groups,
  );
  switch (shell) {
    case "bash":
      return bash(nodes);
    case "zsh":
      return zsh(nodes);
    case "fish":
      return fish(nodes);
  }
}

function toNodes(commands: readonly Command[], groups: Readonly<Record<string, string>>): Node[] {
  const inGroup = (group: string): Node["verbs"] =>
    commands
      .filter(({ metadata }) => metadata.name.startsWith(`${group} `))
      .map(({ metadata }) => ({ word: metadata.name.slice(group.length + 1), summary: metadata.summary }));
  const optionsOf = (group: string): Node["options"] => {
    const own = commands.find(({ metadata }) => metadata.isDefault === true && metadata.name.startsWith(`${group} `));
    return Object.values(own?.options ?? {});
  };
  const top = commands
    .filter(({ metadata }) => !metadata.name.includes(" "))
    .map(({ metadata }) => ({ word: metadata.name, summary: metadata.summary }));
  const groupWords = Object.entries(groups).map(([word, summary]) => ({ word, summary }));
  return [
    { path: "", verbs: [...top, ...groupWords], options: [], args: [], hasRest: false },
    // `toolway outbox` is `toolway outbox list`, and takes what that takes.
    ...groupWords.map(({ word }) => ({
      path: word,
      verbs: inGroup(word),
      options: optionsOf(word),
      args: [],
      hasRest: false,
    })),
    ...commands.map((command) => ({
      path: command.metadata.name,
      verbs: [],
      options: Object.values(command.options),
      args: Object.values(command.args).map(({ completes }) => completes),
      hasRest: Object.values(command.args).some(({ rest }) => rest !== undefined),
    })),
  ];
}

/** The pattern of a shell for the place of an argument among the others; `add` takes words without an end. */
function places(node: Node, index: number): string {
  // More than nine words are seldom typed with the key.
  return node.hasRest && index === node.args.length - 1 ? `[${index}-9]` : String(index);
}

function completesOf(option: CommandOption): Completes | undefined {
  return option.completes ?? option.choices;
}

/** All flags of a node, help included. */
function flags(node: Node): string[] {
  const own = node.options.map(({ flag }) => flag);
  return node.path === "" ? [...own, "--help", "--version"] : [...own, "--help"];
}

/** Flags that take the next word, so that it is not counted as an argument. */
function flagsWithValue(nodes: readonly Node[]): string[] {
  const found = nodes.flatMap(({ options }) => options.filter(({ value }) => value !== undefined));
  return [...new Set(found.flatMap(({ flag, short }) => (short === undefined ? [flag] : [flag, `-${short}`])))];
}

/** Lines of a shell `case`: which words lead from one path to the next. */
function steps(nodes: readonly Node[], set: (path: string) => string): string {
  return nodes
    .filter(({ path }) => path !== "")
    .map(({ path }) => {
      const words = path.split(" ");
      const before = words.slice(0, -1).join(" ");
      return `      "${before}|${words.at(-1)}") ${set(path)} ;;`;
    })
    .join("\n");
}

function bash(nodes: readonly Node[]): string {
  // No mapfile: macOS comes with bash 3.2.
  const files = (kind: "-f" | "-d"): string =>
    `compopt -o filenames 2>/dev/null; local IFS=$'\\n'; COMPREPLY=($(compgen ${kind} -- "$cur"))`;
  const offer = (completes: Completes | undefined): string => {
    if (completes === undefined) return "COMPREPLY=()";
    if (completes === "file") return files("-f");
    if (completes === "folder") return files("-d");
    if (typeof completes !== "string") return `COMPREPLY=($(compgen -W "${completes.join(" ")}" -- "$cur"))`;
    // What follows `key=` belongs to the same word.
    const joined = completes === "argument" ? "compopt -o nospace 2>/dev/null; " : "";
    return `${joined}_toolway_names ${completes}`;
  };
  const values = nodes.flatMap((node) =>
    node.options
      .filter(({ value }) => value !== undefined)
      .map((option) => `    "${node.path}|${option.flag}") ${offer(completesOf(option))}; return ;;`),
  );
  const args = nodes.flatMap((node) =>
    node.args.map((completes, i) => `    "${node.path}|"${places(node, i)}) ${offer(completes)} ;;`),
  );
  const verbs = nodes
    .filter((node) => node.verbs.length > 0)
    .map((node) => `    "${node.path}|0") ${offer(node.verbs.map(({ word }) => word))} ;;`);
  const options = nodes.map((node) => `      "${node.path}") ${offer(flags(node))} ;;`);
  // Names are of servers' making. `compgen -W` would expand them, and so run what stands in `$(…)`; each is quoted here, too,
  // since bash puts what is offered onto the line as it is.
  return `# bash completion of toolway: source <(toolway completion bash)
_toolway_names() {
  local name quoted
  while IFS= read -r name; do
    printf -v quoted '%q' "$name"
    if [[ -n "$name" && ( "$name" == "$cur"* || "$quoted" == "$cur"* ) ]]; then COMPREPLY+=("$quoted"); fi
  done < <("\${COMP_WORDS[0]}" __complete "$1" -- "\${COMP_WORDS[@]:1}" 2>/dev/null)
}
_toolway() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" path="" args=0 i word
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    case "$word" in
      ${flagsWithValue(nodes).join("|")}) ((i++)); continue ;;
      -?*) continue ;;
    esac
    case "$path|$word" in
${steps(nodes, (path) => `path="${path}"; args=0`)}
      *) ((args++)) ;;
    esac
  done
  case "$path|$prev" in
${values.join("\n")}
  esac
  if [[ "$cur" == -* ]]; then
    case "$path" in
${options.join("\n")}
    esac
    return
  fi
  case "$path|$args" in
${[...verbs, ...args].join("\n")}
  esac
}
complete -F _toolway toolway
`;
}

function zsh(nodes: readonly Node[]): string {
  const offer = (completes: Completes | undefined): string => {
    if (completes === "file") return "_files";
    if (completes === "folder") return "_files -/";
    if (completes === undefined) return "return 1";
    if (typeof completes !== "string") return `compadd -- ${completes.join(" ")}`;
    const joined = completes === "argument" ? "-S '' " : "";
    return `compadd ${joined}-- \${(f)"$($words[1] __complete ${completes} -- \${words[2,-1]} 2>/dev/null)"}`;
  };
  const values = nodes.flatMap((node) =>
    node.options
      .filter(({ value }) => value !== undefined)
      .map((option) => `    "${node.path}|${option.flag}") ${offer(completesOf(option))}; return ;;`),
  );
  const args = nodes.flatMap((node) =>
    node.args.map((completes, i) => `    "${node.path}|"${places(node, i)}) ${offer(completes)} ;;`),
  );
  const described = (pairs: readonly (readonly [string, string])[]): string =>
    pairs.map(([word, text]) => zshQuote(`${word.replaceAll(":", "\\:")}:${text}`)).join(" ");
  const verbs = nodes
    .filter((node) => node.verbs.length > 0)
    .map((node) => {
      const pairs = node.verbs.map(({ word, summary }) => [word, summary] as const);
      return `    "${node.path}|0") items=(${described(pairs)}); _describe command items ;;`;
    });
  const options = nodes.map((node) => {
    const pairs = node.options.map(({ flag, description }) => [flag, description] as const);
    const all = [...pairs, ["--help", "Shows the help."] as const];
    return `      "${node.path}") items=(${described(all)}); _describe -o option items ;;`;
  });
  return `#compdef toolway
# zsh completion of toolway: source <(toolway completion zsh), after compinit
_toolway() {
  local cur="\${words[CURRENT]}" prev="\${words[CURRENT-1]}" at="" args=0 i word
  local -a items
  for ((i = 2; i < CURRENT; i++)); do
    word="\${words[i]}"
    case "$word" in
      ${flagsWithValue(nodes).join("|")}) ((i++)); continue ;;
      -?*) continue ;;
    esac
    case "$at|$word" in
${steps(nodes, (path) => `at="${path}"; args=0`)}
      *) ((args++)) ;;
    esac
  done
  case "$at|$prev" in
${values.join("\n")}
  esac
  if [[ "$cur" == -* ]]; then
    case "$at" in
${options.join("\n")}
    esac
    return
  fi
  case "$at|$args" in
${[...verbs, ...args].join("\n")}
  esac
}
if [[ "$funcstack[1]" == "_toolway" ]]; then _toolway "$@"; else compdef _toolway toolway; fi
`;
}

function zshQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function fish(nodes: readonly Node[]): string {
  const offer = (completes: Completes | undefined): string => {
    if (completes === "file") return "-rF";
    if (completes === "folder") return "-xa '(__fish_complete_directories)'";
    if (completes === undefined) return "-x";
    if (typeof completes !== "string") return `-xa ${fishQuote(completes.join(" "))}`;
    return `-xa '(toolway __complete ${completes} -- (commandline -opc)[2..] 2>/dev/null)'`;
  };
  const lines = nodes.flatMap((node) => {
    const here = `-n ${fishQuote(`__toolway_at ${fishQuoteWord(node.path)}`)}`;
    const nth = (i: number) => `-n ${fishQuote(`__toolway_at ${fishQuoteWord(node.path)} '${places(node, i)}'`)}`;
    const verbs = node.verbs.map(
      ({ word, summary }) => `complete -c toolway ${here} -xa ${fishQuote(word)} -d ${fishQuote(summary)}`,
    );
    const options = node.options.map((option) => {
      const takes = option.value === undefined ? "" : ` ${offer(completesOf(option))}`;
      return `complete -c toolway ${here} -l ${option.flag.slice(2)}${takes} -d ${fishQuote(option.description)}`;
    });
    const args = node.args.flatMap((completes, i) =>
      completes === undefined ? [] : [`complete -c toolway ${nth(i)} ${offer(completes)}`],
    );
    return [...verbs, ...options, ...args];
  });
  return `# fish completion of toolway: toolway completion fish > ~/.config/fish/completions/toolway.fish
function __toolway_at
  set -l at ""
  set -l args 0
  set -l skip 0
  for word in (commandline -opc)[2..]
    if test $skip = 1
      set skip 0
      continue
    end
    switch $word
      case ${flagsWithValue(nodes).join(" ")}
        set skip 1
        continue
      case '-*'
        continue
    end
    switch "$at|$word"
${nodes
  .filter(({ path }) => path !== "")
  .map(({ path }) => {
    const words = path.split(" ");
    return `      case ${fishQuote(`${words.slice(0, -1).join(" ")}|${words.at(-1)}`)}\n        set at ${fishQuote(path)}\n        set args 0`;
  })
  .join("\n")}
      case '*'
        set args (math $args + 1)
    end
  end
  test "$at" = "$argv[1]"; and begin; not set -q argv[2]; or string match -rq -- "^$argv[2]"'$' $args; end
end
complete -c toolway -f
complete -c toolway -l help -d 'Shows the help.'
complete -c toolway -n "__toolway_at ''" -l version -d 'Prints the version.'
${lines.join("\n")}
`;
}

function fishQuote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

/** Inside a quoted condition: an argument of its own. */
function fishQuoteWord(text: string): string {
  return `"${text}"`;
}
