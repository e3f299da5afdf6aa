// The files of examples/scale: what can be tried of them without Docker and Kubernetes is.

import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { commands } from "../src/cli/commands/index.js";
import { readPlainLine } from "../src/cli/line/plain-line.js";
import { parseConfig } from "../src/config/load.js";
import { temporaryFolder } from "./fixtures/folders.js";
import { NO_NATS, natsPrograms } from "./fixtures/nats.js";

const folder = fileURLToPath(new URL("../examples/scale", import.meta.url));
const read = (name: string) => readFileSync(join(folder, name), "utf8");

function yaml(name: string): Record<string, unknown>[] {
  return parseAllDocuments(read(name), { strict: true, merge: true }).map((one) => {
    expect([...one.errors, ...one.warnings], name).toEqual([]);
    return one.toJS() as Record<string, unknown>;
  });
}

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly serviceName?: string;
    readonly replicas?: number;
    readonly template?: { readonly spec: { readonly containers: readonly { readonly args: readonly string[] }[] } };
  };
}

const manifests = () => yaml("kubernetes.yaml") as unknown as Manifest[];
const manifest = (kind: string, name: string) =>
  manifests().find((one) => one.kind === kind && one.metadata.name === name);

function engineOf(text: string) {
  return parseConfig(text, { path: "/config/toolway.json", env: {}, home: "/x" }).engine;
}

it("the compose file and the manifests are YAML, and name each other as they are called [documents-true]", () => {
  const [compose] = yaml("compose.yaml") as { services: Record<string, { command: string[]; image: string }> }[];
  expect(Object.keys(compose?.services ?? {})).toEqual(["nats-0", "nats-1", "nats-2", "doctor"]);
  const nodes = engineOf(read("toolway.json"))?.nodes.map(({ host }) => host);
  expect(nodes).toEqual(["nats-0", "nats-1", "nats-2"]);
  for (const node of nodes ?? []) expect(read("nats.conf")).toContain(`nats://${node}:6222`);
  expect(manifests().every(({ apiVersion, kind, metadata }) => apiVersion && kind && metadata.name)).toBe(true);
  const set = manifest("StatefulSet", "toolway-nats");
  expect(set?.spec?.replicas).toBe(3);
  expect(manifest("Service", set?.spec?.serviceName ?? "")).toBeDefined();
  const engine = engineOf(manifest("ConfigMap", "toolway-config")?.data?.["toolway.json"] ?? "");
  expect(engine?.nodes.map(({ host }) => host)).toEqual(
    [0, 1, 2].map((n) => `toolway-nats-${n}.${set?.spec?.serviceName}`),
  );
  const lines = [
    compose?.services["doctor"]?.command,
    manifest("Job", "toolway-engine-doctor")?.spec?.template?.spec.containers[0]?.args,
  ];
  for (const line of lines) expect(readPlainLine(line ?? [], commands)?.command.metadata.name).toBe("doctor");
});

it("nats-server takes both of the configs [documents-true]", (context) => {
  const [program] = natsPrograms;
  if (program === undefined) return context.skip(NO_NATS);
  const place = temporaryFolder("toolway-scale-");
  const check = (text: string) => {
    const path = join(place, "nats.conf");
    // What the oldest server that Toolway takes does not know yet.
    const known = program.version.startsWith("2.9.") ? text.replace(/^\s*sync_interval: always\n/m, "") : text;
    writeFileSync(path, known.replaceAll("/data", place));
    const env = { ...process.env, NATS_NAME: "nats-0", NATS_PASSWORD: "a-long-random-text" };
    return spawnSync(program.path, ["-c", path, "-t"], { encoding: "utf8", env });
  };
  const inCluster = manifest("ConfigMap", "toolway-nats")?.data?.["nats.conf"] ?? "";
  for (const text of [read("nats.conf"), inCluster]) {
    expect(text).toContain("sync_interval: always");
    const { status, stderr } = check(text);
    expect(status, stderr).toBe(0);
    expect(check(text.replace("store_dir", "store_dri")).status).not.toBe(0);
  }
});

const docker = spawnSync("docker", ["compose", "version"]).status === 0;

it.skipIf(!docker)("Docker takes the compose file", () => {
  const env = { ...process.env, NATS_PASSWORD: "x", TOOLWAY_ENGINE_KEY: "x" };
  execFileSync("docker", ["compose", "--profile", "doctor", "config", "--quiet"], { cwd: folder, env, stdio: "pipe" });
});
