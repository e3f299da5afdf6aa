// A command that is not there, in words: which one was meant, by what it means or by how it is spelt.

import { nearest } from "../../runtime/nearest.js";
import type { Command } from "./command.js";

/** What other programs call it. Only commands that there are get offered. */
const MEANT: Readonly<Record<string, readonly string[]>> = {
  servers: ["status", "list"],
  health: ["status"],
  info: ["status"],
  show: ["status", "inspect"],
  describe: ["inspect"],
  ls: ["list", "tools"],
  up: ["serve"],
  launch: ["serve"],
  gateway: ["serve"],
  restart: ["reload"],
  refresh: ["reload"],
  kill: ["stop", "down"],
  quit: ["down"],
  shutdown: ["down"],
  exec: ["call"],
  invoke: ["call"],
  check: ["doctor", "config check"],
  test: ["doctor"],
  diagnose: ["doctor"],
  validate: ["config check"],
  install: ["add"],
  delete: ["remove"],
  uninstall: ["remove"],
  rm: ["remove"],
  init: ["import"],
  accept: ["pins accept"],
  approve: ["pins accept"],
  diff: ["pins diff"],
  tokens: ["token list"],
  roles: ["config check"],
  menus: ["context", "tools"],
  budget: ["status"],
};

/** More than these are a list, which the help has. */
const MAX_OFFERED = 3;

/** Shorter beginnings fit too much. */
const MIN_BEGINNING = 2;

/** What is said of a line whose command there is not; undefined where its command is there, or it has none. */
export function unknownCommand(argv: readonly string[], commands: readonly Command[]): string | undefined {
  const names = commands.filter(({ metadata }) => metadata.hidden !== true).map(({ metadata }) => metadata.name);
  const known = commands.map(({ metadata }) => metadata.name.split(" "));
  const [first = "", second = ""] = argv;
  if (first === "" || first.startsWith("-")) return undefined;
  const ofFirst = known.filter(([word]) => word === first);
  if (ofFirst.length === 0) {
    const words = [...new Set(names.map((name) => name.split(" ")[0] ?? name))];
    return said(first, [...byMeaning(first).filter((name) => names.includes(name)), ...alike(first, words)]);
  }
  // A group has verbs and nothing else: whatever stands in the place of one was meant as one.
  const verbs = ofFirst.flatMap(([, verb]) => (verb === undefined ? [] : [verb]));
  if (verbs.length < ofFirst.length || second === "" || second.startsWith("-") || verbs.includes(second))
    return undefined;
  return said(
    `${first} ${second}`,
    alike(second, verbs).map((verb) => `${first} ${verb}`),
    `It has ${verbs.join(", ")}.`,
  );
}

function byMeaning(typed: string): readonly string[] {
  const word = typed.toLowerCase();
  return Object.hasOwn(MEANT, word) ? (MEANT[word] ?? []) : [];
}

function alike(typed: string, words: readonly string[]): string[] {
  const near = nearest(typed, words);
  const begun = typed.length < MIN_BEGINNING ? [] : words.filter((word) => word.startsWith(typed.toLowerCase()));
  return near === undefined ? begun : [...begun, near];
}

function said(typed: string, meant: readonly string[], instead = "`toolway --help` lists them."): string {
  const offered = [...new Set(meant)].slice(0, MAX_OFFERED);
  const hint = offered.length === 0 ? instead : `Did you mean ${offered.join(" or ")}?`;
  return `There is no command ${typed}.\n  ${hint}`;
}
