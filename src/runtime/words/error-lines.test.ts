import { describe, expect, it } from "vitest";
import { errorLine, errorLines } from "./error-lines.js";

/** What programs wrote when they died, as they wrote it, and the line that says why. */
const WRITTEN: readonly (readonly [what: string, text: string, line: string])[] = [
  [
    "npm, of a package that does not exist",
    `npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/@nobody%2fno-server - Not found
npm error 404
npm error 404  '@nobody/no-server@*' is not in this registry.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git folder.
npm error A complete log of this run can be found in: /home/a/.npm/_logs/2026-debug-0.log`,
    "npm error 404 Not Found - GET https://registry.npmjs.org/@nobody%2fno-server - Not found",
  ],
  [
    "npm, of a version that does not exist",
    `npm error code ETARGET
npm error notarget No matching version found for left-pad@99.
npm error notarget In most cases you or one of your dependencies are requesting
npm error A complete log of this run can be found in: /home/a/.npm/_logs/2026-debug-0.log`,
    "npm error notarget No matching version found for left-pad@99.",
  ],
  [
    "an old npm without a network",
    `npm ERR! code EAI_AGAIN
npm ERR! syscall getaddrinfo
npm ERR! errno EAI_AGAIN
npm ERR! request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org`,
    "npm ERR! request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org",
  ],
  [
    "npx, of a package without a program",
    "npm error could not determine executable to run",
    "npm error could not determine executable to run",
  ],
  [
    "Node, of an error that nobody caught",
    `file:///srv/index.mjs:1
throw new Error("GITHUB_TOKEN is required")
      ^

Error: GITHUB_TOKEN is required
    at file:///srv/index.mjs:1:7
    at ModuleJob.run (node:internal/modules/esm/module_job:325:25)

Node.js v20.20.2`,
    "Error: GITHUB_TOKEN is required",
  ],
  [
    "Node, of a package that is missing",
    `node:internal/modules/esm/resolve:873
  throw new ERR_MODULE_NOT_FOUND(packageName, fileURLToPath(base), null);
        ^

Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x' imported from /srv/index.mjs
    at packageResolve (node:internal/modules/esm/resolve:873:9)
    at ModuleJob._link (node:internal/modules/esm/module_job:168:49) {
  code: 'ERR_MODULE_NOT_FOUND'
}

Node.js v22.1.0`,
    "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x' imported from /srv/index.mjs",
  ],
  [
    "Python",
    `Traceback (most recent call last):
  File "/srv/server.py", line 3, in <module>
    raise ValueError("no key")
ValueError: no key

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/server.py", line 5, in <module>
    import mcp
ModuleNotFoundError: No module named 'mcp'`,
    "ModuleNotFoundError: No module named 'mcp'",
  ],
  [
    "uv",
    `  × No solution found when resolving tool dependencies:
  ╰─▶ Because no-server was not found in the package registry and you require
      no-server, we can conclude that your requirements are unsatisfiable.`,
    "× No solution found when resolving tool dependencies:",
  ],
  [
    "Docker",
    `Unable to find image 'nobody/none:latest' locally
docker: Error response from daemon: pull access denied for nobody/none, repository does not exist.

Run 'docker run --help' for more information`,
    "docker: Error response from daemon: pull access denied for nobody/none, repository does not exist.",
  ],
  [
    "Go",
    "panic: no such file\n\ngoroutine 1 [running]:\nmain.main()\n\t/srv/main.go:4 +0x1d\nexit status 2",
    "panic: no such file",
  ],
  ["a server that says it in its own words", "Starting …\nPlease set the API key.\n", "Please set the API key."],
];

describe("the error in what a program wrote", () => {
  it.each(WRITTEN)("of %s is its own line, and not the last [told-why]", (_what, text, line) => {
    expect(errorLine(text.split("\n"))).toBe(line);
  });

  it("of npm has what it says of the package, and not what it says of every error", () => {
    const [, text = ""] = WRITTEN[0] ?? [];
    expect(errorLines(text.split("\n"))).toEqual([
      "npm error 404 Not Found - GET https://registry.npmjs.org/@nobody%2fno-server - Not found",
      "npm error 404  '@nobody/no-server@*' is not in this registry.",
    ]);
  });

  it("goes on with what belongs to it, without the frames of its stack", () => {
    const text = "Error: a\n    at b (c.js:1:2) {\n  code: 'X',\n  requireStack: []\n}\nNode.js v20.1.0";
    expect(errorLines(text.split("\n"))).toEqual(["Error: a", "  code: 'X',"]);
    expect(errorLines([])).toEqual([]);
  });

  it("takes little time, whatever is written [bounded]", () => {
    const lines = Array.from({ length: 50 }, (_, i) => `${"a".repeat(2_000)} ${": ".repeat(500)}${i}`);
    const started = performance.now();
    errorLines(lines);
    expect(performance.now() - started).toBeLessThan(1_000);
  });
});
