// What .ci/run installs, and what it says of what it cannot: with programs on the PATH that only write down their calls.

import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const script = fileURLToPath(new URL("../.ci/run", import.meta.url));
/** What the script uses of the system, as it is here. */
const REAL = ["bash", "cat", "chmod", "dirname", "env", "mktemp", "rm"];
/** What sockets, streams and timers carry, on a Node that has differed in it before. */
const ON_NODE_24 = "scripts/test-on-node.mjs --node 24 --wire";
const TOOLS = ["zsh", "fish", "chromium", "nats-server", "nginx", "promtool"];

let path: string;
beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), "toolway-ci-"));
  for (const name of REAL) {
    symlinkSync(execFileSync("/bin/sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim(), join(path, name));
  }
});
afterEach(() => rmSync(path, { recursive: true, force: true }));

/** A machine whose root is asked for by `uid` 0, with these programs besides. */
function run(uid: number, programs: readonly string[], env: NodeJS.ProcessEnv) {
  const calls = join(path, "calls");
  const stub = (name: string, text: string) => {
    writeFileSync(join(path, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(path, name), 0o755);
  };
  stub("id", `echo ${uid}`);
  for (const name of ["node", "npm", ...programs]) stub(name, `echo "${name} $*" >> "${calls}"`);
  if (programs.includes("sudo")) stub("sudo", `shift; echo "sudo $*" >> "${calls}"; "$@"`);
  const { status, stderr } = spawnSync("bash", [script], { encoding: "utf8", env: { PATH: path, ...env } });
  const called = spawnSync("cat", [calls], { encoding: "utf8" }).stdout.split("\n");
  return { status, stderr, installs: called.filter((line) => line.includes(" install -qy")), called };
}

describe("what CI runs", () => {
  it("installs what is missing as root, and runs the tests", () => {
    const { status, installs, called } = run(0, ["apt-get", "dpkg-deb", "tar"], {});
    expect(status).toBe(0);
    expect(installs.map((line) => line.split(" ").slice(4).join(" "))).toEqual(["zsh fish", "chromium", "nats-server"]);
    // Of these the program alone: what their packages would start is not wanted.
    const alone = called.filter((line) => line.startsWith("apt-get download") || line.startsWith("tar"));
    expect(alone.map((line) => line.split(" ").at(-1))).toEqual([
      ...["nginx", "./usr/sbin/nginx"],
      ...["prometheus", "./usr/bin/promtool"],
    ]);
    expect(called.some((line) => line.startsWith("sudo"))).toBe(false);
    // All tests on the Node at hand, those of the wire on another, and the official suite; each line is a run of its own.
    const runs = ["npm install", "npm test", `node ${ON_NODE_24}`, "node scripts/conformance.mjs"];
    expect(called.filter((line) => runs.includes(line))).toEqual(runs);
  });

  it("installs by sudo where it is not root, and says in CI which tests are skipped for want of a tool all the same", () => {
    const { status, stderr, installs } = run(1000, ["apt-get", "dpkg-deb", "sudo", "tar"], { CI: "true" });
    expect(status).toBe(0);
    expect(installs.filter((line) => line.startsWith("sudo"))).toHaveLength(3);
    for (const tool of TOOLS) expect(stderr).toContain(`no ${tool}: the tests of`);
    // No program that is missing: the kernel, or the container that this runs in, forbids it.
    expect(stderr).toContain("no namespaces of the user's own: the tests of the audit log on a full disk");
    expect(stderr.split("NOT EVERYTHING IS TESTED")).toHaveLength(3);
  });

  it("says nothing to a developer without root, nor in CI where nothing is missing", () => {
    const developer = run(1000, ["apt-get"], {});
    expect(developer).toMatchObject({ status: 0, stderr: "", installs: [] });
    const all = ["apt-get", "unshare", ...TOOLS];
    expect(run(1000, all, { CI: "true" })).toMatchObject({ status: 0, stderr: "", installs: [] });
  });
});
