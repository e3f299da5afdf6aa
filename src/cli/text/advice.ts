// What to do about a server that did not come up: read from how it failed and from what it wrote. Pure, but for `has`,
// which says whether a program is on the PATH.

import type { ServerSpec } from "../../contracts/server-spec.js";
import type { Probe } from "../gateway/port.js";

type Has = (program: string) => boolean;

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

/** What servers write when they miss something, and what that means. The first that fits is told. */
const SAID: readonly (readonly [pattern: RegExp, advice: string])[] = [
  [
    /\bE404\b|404 Not Found - GET|is not in this registry/,
    "The package does not exist under that name: check the args.",
  ],
  [
    /ENOTFOUND|EAI_AGAIN|getaddrinfo|Temporary failure in name resolution/,
    "It could not reach the network: check the connection, or a proxy.",
  ],
  [
    /Cannot find module|ERR_MODULE_NOT_FOUND|ModuleNotFoundError|No module named/,
    "A module is missing: install the server's dependencies, or check the path in args.",
  ],
  [/Cannot connect to the Docker daemon|docker daemon running/i, "Docker does not run: start it."],
  [
    /Unable to find image|pull access denied|manifest unknown/,
    "Docker has no such image: check its name, or log in to its registry.",
  ],
  [/EADDRINUSE|address already in use/i, "It wants a port that is taken: another copy may be running."],
  [/EACCES|Permission denied|EPERM/, "It may not read or write something: see the path in its last lines."],
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

export function adviceFor(spec: ServerSpec, probe: Probe, has: Has): string[] {
  const found: string[] = [];
  if (probe.noise.count > 0) {
    found.push("It writes to stdout what is no message; those lines are skipped. Its logs belong on stderr.");
  }
  if (probe.ok) return found;
  const message = probe.error?.message ?? "";
  const { target } = spec;
  if (target.kind === "stdio") {
    const program = target.command.split(/[/\\]/).at(-1) ?? target.command;
    const missing = /not found|ENOENT|not on the PATH/i.test(message) && !has(target.command);
    if (missing && INSTALL[program] !== undefined) found.push(`${program} is not installed here: ${INSTALL[program]}.`);
    else if (missing && /\s/.test(program)) {
      // Other clients take a whole line; here no shell reads it.
      found.push(`"command" is the program alone: put what follows it into "args", word by word.`);
    } else if (missing) found.push(`There is no program ${program} on the PATH: install it, or write its full path.`);
    const text = probe.stderr.join("\n");
    const said = SAID.find(([pattern]) => pattern.test(text));
    if (said !== undefined) found.push(said[1]);
    if (!missing && said === undefined) {
      if (probe.error?.code === "timeout") {
        found.push(`It did not answer in time. A first start may download: try again, or raise "connectTimeoutMs".`);
      } else found.push(`Run it by hand to see what it says: ${commandLine(target.command, target.args.length)}`);
    }
  } else {
    found.push(executorAdvice(message) ?? httpAdvice(probe.error?.code, message));
  }
  return found;
}

/** Where the way to the server failed, not the server. */
function executorAdvice(message: string): string | undefined {
  if (/^Executor .* dials in to the gateway/.test(message)) {
    return "Start the gateway (`toolway serve`) and the executor, and ask again: the gateway that runs is then asked.";
  }
  if (/^No executor /.test(message)) return "Start that executor, or correct its url or token under `executors`.";
  if (/^Executor .* does not reach /.test(message)) {
    return "What an executor may reach is said where it runs: `toolway executor --allow RULE --dry-run URL` tries a rule.";
  }
  return undefined;
}

function httpAdvice(code: string | undefined, message: string): string {
  if (code === "unauthorized" || /\b40[13]\b/.test(message)) {
    return `It wants credentials: add them to the entry, for instance "headers": {"Authorization": "Bearer \${MY_TOKEN}"}.`;
  }
  if (/nothing listens|ECONNREFUSED/.test(message)) return "Start that server, or correct the port in its url.";
  if (/does not resolve|ENOTFOUND|EAI_AGAIN/.test(message)) return "Check the host name in its url, and the network.";
  if (/certificate|TLS|CERT/.test(message)) return "Check https or http in its url, and its certificate.";
  if (/\b40[45]\b/.test(message)) return "The path is wrong: servers mostly answer at /mcp, older ones at /sse.";
  if (code === "timeout") return "It did not answer in time: is there a firewall or a proxy between?";
  return "Open its url with curl to see who answers.";
}

/** Without the arguments: they may hold secrets. */
function commandLine(command: string, args: number): string {
  return args === 0 ? command : `${command} … (with the args of the config)`;
}
