// The files of examples/operate: they are shown in docs/operate.md as they are, and what can be tried of them is.

import { execFile, execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { commands } from "../src/cli/commands/index.js";
import { readPlainLine } from "../src/cli/line/plain-line.js";
import { DEFAULT_DRAIN_MS, DEFAULT_LIMITS } from "../src/config/config.js";
import { parseConfig } from "../src/config/load.js";
import { temporaryFolder } from "./fixtures/folders.js";
import { listenOnLoopback } from "./fixtures/loopback.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const example = (name: string) => read(`examples/operate/${name}`);
const has = (program: string) => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;

const LANGUAGES: Readonly<Record<string, string>> = {
  "toolway.json": "jsonc",
  "toolway.service": "ini",
  "toolway.user.service": "ini",
  "local.toolway.plist": "xml",
  Dockerfile: "dockerfile",
  "compose.yaml": "yaml",
  "nginx.conf": "nginx",
  Caddyfile: "caddyfile",
};

/** Each `<!-- file:… -->` is followed by that file. */
function withFiles(text: string): string {
  return text.replace(/<!-- file:(\S+) -->\n(?:\n?```[\s\S]*?\n```\n)?/g, (_, path: string) => {
    const name = path.split("/").at(-1) ?? "";
    return `<!-- file:${path} -->\n\n\`\`\`${LANGUAGES[name] ?? ""}\n${read(path).trimEnd()}\n\`\`\`\n`;
  });
}

/** For Prometheus and Grafana to read, and too long for people; test/e2e/rules.test.ts tries them. */
const FOR_PROGRAMS = new Set(["toolway.rules.yml", "grafana.json"]);

// Make it so: npx vitest run test/operate.test.ts -u
it("docs/operate.md shows the files as they are, and all of them [documents-true]", async () => {
  await expect(withFiles(read("docs/operate.md"))).toMatchFileSnapshot("../docs/operate.md");
  const shown = new Set([...read("docs/operate.md").matchAll(/<!-- file:(\S+) -->/g)].map(([, path = ""]) => path));
  const there = readdirSync(join(root, "examples/operate")).filter(
    (name) => !name.endsWith(".dockerignore") && !FOR_PROGRAMS.has(name),
  );
  expect(shown).toEqual(new Set(there.map((name) => `examples/operate/${name}`)));
});

it("the lines that start a gateway are ones that the program takes [documents-true]", () => {
  const plist = [...example("local.toolway.plist").matchAll(/<string>(.*)<\/string>/g)].map(([, text = ""]) => text);
  const lines = [
    ...(/^ExecStart=\S+ (.*)$/m.exec(example("toolway.service"))?.slice(1) ?? []),
    ...(/^ExecStart=\S+ toolway (.*)$/m.exec(example("toolway.user.service"))?.slice(1) ?? []),
    (JSON.parse(/^CMD (.*)$/m.exec(example("Dockerfile"))?.[1] ?? "[]") as string[]).join(" "),
    plist.slice(plist.indexOf("serve"), plist.indexOf("serve") + 2).join(" "),
  ];
  expect(lines).toHaveLength(4);
  for (const line of lines) {
    expect(readPlainLine(line.split(" "), commands)?.command.metadata.name, line).toBe("serve");
  }
});

it("the config is one, and has the name that the proxies pass on", () => {
  const config = parseConfig(example("toolway.json"), {
    path: "/x/toolway.json",
    env: { GITHUB_TOKEN: "x" },
    home: "/x",
  });
  expect(config.warnings).toEqual([]);
  expect(config.stateDir).toBe("/var/lib/toolway/state");
  for (const proxy of ["nginx.conf", "Caddyfile"]) expect(example(proxy)).toContain(config.allowedHosts[0]);
});

it("whoever kills the gateway waits until it is over, and proxies let its largest body through [drain]", () => {
  // The servers have 8 s after the calls.
  const seconds = DEFAULT_DRAIN_MS / 1000 + 8;
  const waits = {
    "toolway.service": /^TimeoutStopSec=(\d+)$/m,
    "toolway.user.service": /^TimeoutStopSec=(\d+)$/m,
    "local.toolway.plist": /ExitTimeOut<\/key>\s*<integer>(\d+)</,
    "compose.yaml": /stop_grace_period: (\d+)s/,
  };
  for (const [file, pattern] of Object.entries(waits)) {
    expect(Number(pattern.exec(example(file))?.[1]), file).toBeGreaterThan(seconds);
  }
  const mebibytes = DEFAULT_LIMITS.bodyBytes / 1024 / 1024;
  expect(example("nginx.conf")).toContain(`client_max_body_size ${mebibytes}m;`);
  expect(example("Caddyfile")).toContain(`max_size ${mebibytes}MiB`);
});

it("compose starts the image with what its own line needs: folders, port and token, for this machine alone", () => {
  const { services, volumes } = parse(example("compose.yaml"), { strict: true }) as {
    services: Record<string, Record<string, unknown>>;
    volumes: Record<string, unknown>;
  };
  const { toolway = {}, ...others } = services;
  expect(others).toEqual({});
  const [, config = "", , listen = "", , state = ""] = JSON.parse(
    /^CMD (.*)$/m.exec(example("Dockerfile"))?.[1] ?? "[]",
  ) as string[];
  const port = listen.split(":").at(-1);
  expect(toolway["ports"]).toEqual([`127.0.0.1:${port}:${port}`]);
  const mounts = (toolway["volumes"] as string[]).map((mount) => mount.split(":"));
  expect(mounts.map(([, there, mode]) => [there, mode])).toEqual([
    [dirname(config), "ro"],
    [state, undefined],
  ]);
  // Whatever is no path has to be declared as a volume.
  const named = mounts.map(([here = ""]) => here).filter((here) => !/^[./~]/.test(here));
  expect(Object.keys(volumes)).toEqual(named);
  expect(toolway["environment"]).toEqual({ TOOLWAY_TOKEN: expect.stringMatching(/^\$\{TOOLWAY_TOKEN:\?.+\}$/) });
  expect(toolway).toMatchObject({ init: true, read_only: true, cap_drop: ["ALL"], stop_grace_period: "35s" });
  // What npx downloads is started from the home of the image's user.
  expect(toolway["tmpfs"]).toContainEqual(expect.stringMatching(/^\/home\/node:(?=.*\bexec\b)(?=.*uid=1000)/));
});

it.skipIf(!has("systemd-analyze"))("systemd takes the units", () => {
  const folder = temporaryFolder("toolway-units-");
  const verify = (file: string, text: string, ...options: string[]) => {
    const path = join(folder, file);
    writeFileSync(path, text);
    mkdirSync(join(folder, "run"), { recursive: true });
    const env = { ...process.env, XDG_RUNTIME_DIR: join(folder, "run"), SYSTEMD_LOG_COLOR: "0" };
    const { status, stderr } = spawnSync("systemd-analyze", ["verify", ...options, path], { encoding: "utf8", env });
    // Other units of the machine are read too, and are not ours to judge.
    const ours = stderr.split("\n").filter((line) => line.includes(file) || line.includes("toolway"));
    return { status, ours };
  };
  // The program is not installed here.
  const installed = example("toolway.service").replace("/usr/local/bin/toolway", process.execPath);
  expect(verify("toolway.service", installed)).toEqual({ status: 0, ours: [] });
  expect(verify("toolway.service", installed.replace("KillMode=mixed", "KillMode=odd")).ours).not.toEqual([]);
  expect(verify("toolway.service", example("toolway.user.service"), "--user")).toEqual({ status: 0, ours: [] });
});

const plistReader = has("plutil")
  ? ["plutil", "-lint", "-s"]
  : ["python3", "-c", "import plistlib, sys; plistlib.load(open(sys.argv[1], 'rb'))"];

it.skipIf(!has(plistReader[0] ?? ""))("the agent of launchd is a property list", () => {
  const [program = "", ...args] = plistReader;
  execFileSync(program, [...args, join(root, "examples/operate/local.toolway.plist")], { stdio: "pipe" });
});

it("the image runs as no root, and its health check tells a gateway that is there from none", async () => {
  const text = example("Dockerfile");
  const last = text.slice(text.lastIndexOf("FROM "));
  expect(/^USER (.*)$/m.exec(last)?.[1]).toBe("node");
  const [program, ...args] = JSON.parse(/^ {2}CMD (\[.*\])$/m.exec(last)?.[1] ?? "[]") as string[];
  expect(program).toBe("node");
  let status = 200;
  const server = createServer((_request, response) => response.writeHead(status).end());
  const port = await listenOnLoopback(server);
  const check = (): Promise<number> =>
    new Promise((done) => {
      const line = args.map((arg) => arg.replace("7420", String(port)));
      execFile(process.execPath, line, (error) => done(Number(error?.code ?? 0)));
    });
  expect(await check()).toBe(0);
  status = 503;
  expect(await check()).toBe(1);
  await new Promise((done) => server.close(done));
  expect(await check()).toBe(1);
});
