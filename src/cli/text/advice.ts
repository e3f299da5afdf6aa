// What to do about a server that did not come up: by where its fault arose, and for a program that ended by what it
// wrote. It is pure.

import { basename } from "node:path";
import type { MailboxTarget, ServerSpec, StdioTarget } from "../../contracts/server-spec.js";
import { errorLines } from "../../runtime/words/error-lines.js";
import { shellWord } from "../../runtime/words/shell-word.js";
import type { Probe } from "../gateway/port.js";
import { duration } from "./print.js";

/** How to get the programs that servers are usually started with. */
const INSTALL: Readonly<Record<string, string>> = {
  npx: "npx comes with Node: https://nodejs.org",
  npm: "npm comes with Node: https://nodejs.org",
  node: "install Node: https://nodejs.org",
  uvx: "uvx comes with uv: https://docs.astral.sh/uv/getting-started/installation/",
  uv: "install uv: https://docs.astral.sh/uv/getting-started/installation/",
  pipx: "install pipx: https://pipx.pypa.io",
  python: "install Python, or try python3 as the command",
  python3: "install Python: https://www.python.org",
  docker: "install Docker: https://docs.docker.com/get-docker/",
  podman: "install Podman: https://podman.io",
  bun: "install Bun: https://bun.sh",
  bunx: "bunx comes with Bun: https://bun.sh",
  deno: "install Deno: https://deno.com",
  go: "install Go: https://go.dev/dl/",
  java: "install a Java runtime, for instance https://adoptium.net",
};

/** Programs that fetch the server at its first start. */
const FETCHES = new Set(["npx", "npm", "pnpm", "yarn", "bunx", "uvx", "uv", "pipx", "docker", "podman", "deno", "go"]);

/** What servers write when they miss something, and what that means. The first that fits is told. */
const SAID: readonly (readonly [pattern: RegExp, advice: string])[] = [
  [
    /\bE404\b|404 Not Found - GET|is not in this registry|was not found in the package registry/,
    "The package does not exist under that name: check the args.",
  ],
  [/\bETARGET\b|No matching version found/, "The package has no such version: check the args."],
  [
    /could not determine executable to run/,
    "The package has no program to run: check its name in the args, or name the program after it.",
  ],
  [
    /ENOTFOUND|EAI_AGAIN|getaddrinfo|Temporary failure in name resolution/,
    "It could not reach the network: check the connection, or a proxy.",
  ],
  [
    /Cannot find (?:module|package)|ERR_MODULE_NOT_FOUND|ModuleNotFoundError|No module named/,
    "A module is missing: install the server's dependencies, or check the path in args.",
  ],
  [/Cannot connect to the Docker daemon|docker daemon running/i, "Docker does not run: start it."],
  [
    /Unable to find image|pull access denied|manifest unknown/,
    "Docker has no such image: check its name, or log in to its registry.",
  ],
  [/EADDRINUSE|address already in use/i, "It wants a port that is taken: another copy may be running."],
  [/EACCES|Permission denied|EPERM/, "It may not read or write something: see the path in what it wrote."],
  [
    /(missing|required|not set|must be set|provide|undefined|expected).{0,60}\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b.{0,60}(missing|required|not set|must be set|undefined|not found)/i,
    "It misses an environment variable: add it to the entry's `env`. Servers do not see the whole environment.",
  ],
  [
    /\b401\b|unauthori[sz]ed|invalid (api[ _-]?)?(key|token)/i,
    "It was refused by the service behind it: check the key or token in the entry's `env`.",
  ],
  [/unsupported engine|requires node|Unsupported Node/i, "It needs another version of Node."],
  [/^usage: |unrecognized arguments|unknown option/im, "It does not understand its arguments: check the args."],
];

/** Whether the first start of this server may take a download. */
export function mayDownload({ target }: ServerSpec): boolean {
  return target.kind === "stdio" && FETCHES.has(basename(target.command));
}

/** `spec` is as the config has it: `doctor` itself may have given it more time. */
export function adviceFor(spec: ServerSpec, probe: Probe): string[] {
  const found: string[] = [];
  if (probe.noise.count > 0) {
    found.push("It writes to stdout what is no message; those lines are skipped. Its logs belong on stderr.");
  }
  if (!probe.ok) found.push(fixFor(spec, probe));
  else if (probe.readyMs !== undefined && probe.readyMs > spec.connectTimeoutMs) {
    found.push(
      `A gateway waits ${duration(spec.connectTimeoutMs)} for it. If it downloaded something, it is quicker now; else raise "connectTimeoutMs".`,
    );
  }
  return found;
}

function fixFor(spec: ServerSpec, { error, stderr }: Probe): string {
  const { name, target } = spec;
  if (target.kind === "mailbox") return mailboxFix(target, error);
  if (target.kind !== "stdio") return httpFix(error).replace("login NAME`", `login ${shellWord(name)}\``);
  const program = basename(target.command);
  const install = INSTALL[program];
  if (error?.reason === "command-unknown" && install !== undefined) {
    return `${program} is not installed here: ${install}.`;
  }
  if (error?.remedy !== undefined) return error.remedy;
  if (error?.code !== "timeout" && target.args.some((arg) => arg.startsWith("~/"))) return TILDE;
  const text = errorLines(stderr).join("\n");
  const said = SAID.find(([pattern]) => pattern.test(text));
  if (said !== undefined) return said[1];
  if (error?.reason === "server-error") return error.code === "timeout" ? `${LIST_FAILS} ${ONLY_SLOW}` : LIST_FAILS;
  if (error?.code !== "timeout") return `Run it by hand to see what it says: ${commandLine(target)}`;
  return mayDownload(spec)
    ? 'If it was still downloading, ask again; else run it by hand, or raise "connectTimeoutMs".'
    : `Does it speak MCP on stdin and stdout? Run it by hand: ${commandLine(target)} ${ONLY_SLOW}`;
}

/** By hand it would work: there a shell puts the home folder in. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: this is a variable of the config
const TILDE = "An argument begins with ~/, and no shell is there to read it: write ${userHome}/ in its place.";

const ONLY_SLOW = 'If it is only slow, raise "connectTimeoutMs".';
const LIST_FAILS = "It comes up, and fails when it is asked for its tools: look at what it needs, or tell its maker.";

function mailboxFix({ broker }: MailboxTarget, error: Probe["error"]): string {
  if (error?.remedy !== undefined) return error.remedy;
  if (broker === undefined) return "Only the gateway itself reaches its own broker: `toolway status` says how it does.";
  return "Is the broker up at its address, and does that machine share its servers now?";
}

const OWN_LOG = "Its own log may say more; or open its url with curl to see who answers.";

function httpFix(error: Probe["error"]): string {
  if (error?.remedy !== undefined) return error.remedy;
  switch (error?.reason) {
    case "no-executor":
      return "Start that executor, or correct its url or token under `executors`.";
    case "executor-refuses":
      return "What an executor may reach is said where it runs: `toolway executor --allow RULE --dry-run URL` tries a rule.";
    case "overloaded":
      return "Try again later.";
    case "server-error":
      return OWN_LOG;
    case "not-http":
      return 'Check the port in "url", and whether it is http:// or https:// there.';
    default:
      return error?.code === "timeout"
        ? "Is it an MCP server, and is a firewall or a proxy between? Open its url with curl to see who answers."
        : OWN_LOG;
  }
}

/** Without the arguments: they may hold secrets. */
function commandLine({ command, args }: StdioTarget): string {
  return args.length === 0 ? `${command}.` : `${command} … (with the args of the config).`;
}
