// The files of examples/scale: what can be tried of them without Docker and Kubernetes is.

import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { commands } from "../src/cli/commands/index.js";
import { readPlainLine } from "../src/cli/line/plain-line.js";
import { DEFAULT_DRAIN_MS } from "../src/config/config.js";
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

interface Container {
  readonly args: readonly string[];
  readonly env?: readonly { readonly name: string }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly lifecycle?: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

interface PodSpec {
  readonly containers: readonly Container[];
  readonly terminationGracePeriodSeconds?: number;
  readonly enableServiceLinks?: boolean;
  readonly volumes?: readonly { readonly name: string }[];
}

interface ComposeService {
  readonly command: readonly string[];
  readonly image: string;
  readonly stop_grace_period?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
}

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly serviceName?: string;
    readonly replicas?: number;
    readonly selector?: { readonly [key: string]: unknown };
    readonly ports?: readonly { readonly port: number; readonly targetPort: string }[];
    readonly template?: {
      readonly metadata?: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: PodSpec;
    };
  };
}

const manifests = () => yaml("kubernetes.yaml") as unknown as Manifest[];
const manifest = (kind: string, name: string) =>
  manifests().find((one) => one.kind === kind && one.metadata.name === name);

const configOf = (text: string) => parseConfig(text, { path: "/config/toolway.json", env: {}, home: "/x" });
const engineOf = (text: string) => configOf(text).engine;

/** What a line of the program is read as; it fails where the program would not take it. */
function lineOf(words: readonly string[]) {
  const line = readPlainLine(words, commands);
  if (line === undefined) throw new Error(`The program does not take "${words.join(" ")}".`);
  return { verb: line.command.metadata.name, input: line.input };
}

/** Variables that the config reads: whoever runs it is given them. */
const SECRETS = ["NATS_PASSWORD", "TOOLWAY_ENGINE_KEY"];

/** A bound that stands in one file of the source. */
function boundIn(file: string, name: string): number {
  const text = readFileSync(fileURLToPath(new URL(`../src/${file}`, import.meta.url)), "utf8");
  return Number(new RegExp(`const ${name} = ([\\d_]+);`).exec(text)?.[1]?.replaceAll("_", ""));
}
/** Of a stop: calls in flight, then all else. And of `toolway drain`, before that. */
const STOP_MS = DEFAULT_DRAIN_MS + boundIn("gateway/gateway.ts", "END_MS");
const HAND_OVER_MS = boundIn("cli/commands/drain.ts", "END_MS");

it("the compose file and the manifests are YAML, and name each other as they are called [documents-true]", () => {
  const [compose] = yaml("compose.yaml") as { services: Record<string, ComposeService> }[];
  const services = ["nats-0", "nats-1", "nats-2", "gateway-0", "gateway-1", "balancer", "doctor"];
  expect(Object.keys(compose?.services ?? {})).toEqual(services);
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

it("the gateways of the compose file are two of one config, behind a balancer that asks whether they are ready [documents-true]", () => {
  const [{ services, volumes }] = yaml("compose.yaml") as unknown as [
    { services: Record<string, ComposeService>; volumes: Record<string, unknown> },
  ];
  const gateways = ["gateway-0", "gateway-1"];
  const states = gateways.map((name) => {
    const service = services[name];
    const { verb, input } = lineOf(service?.command ?? []);
    expect(verb).toBe("serve");
    expect(input["listen"]).toBe("0.0.0.0:7420");
    expect(Object.keys(service?.environment ?? {})).toEqual(SECRETS);
    expect(Number.parseInt(service?.stop_grace_period ?? "", 10) * 1_000).toBeGreaterThan(STOP_MS);
    const [config, state] = service?.volumes ?? [];
    expect(config).toBe(`./toolway.json:${input["config"]}:ro`);
    expect(state?.endsWith(`:${input["state"]}`)).toBe(true);
    return state?.split(":")[0] ?? "";
  });
  expect(new Set(states).size).toBe(2);
  for (const state of states) expect(volumes).toHaveProperty(state);

  const text = read("haproxy.cfg");
  expect(services["balancer"]?.volumes).toEqual(["./haproxy.cfg:/usr/local/etc/haproxy/haproxy.cfg:ro"]);
  expect([...text.matchAll(/^ {2}server (\S+) (\S+)$/gm)].map(([, , at]) => at)).toEqual(
    gateways.map((name) => `${name}:7420`),
  );
  const [, bound] = /^ {2}bind :(\d+)$/m.exec(text) ?? [];
  expect(services["balancer"]?.ports?.[0]?.split(":").at(-1)).toBe(bound);
  expect(text).toMatch(/^ {2}http-check send meth GET uri \/readyz /m);

  // How one is upgraded stands above them.
  const [, drain] = /exec gateway-0 toolway (.*)$/m.exec(read("compose.yaml")) ?? [];
  const { verb, input } = lineOf(drain?.split(" ") ?? []);
  const served = lineOf(services["gateway-0"]?.command ?? []).input;
  expect([verb, input["gateway"], input["config"], input["state"]]).toEqual([
    "drain",
    "this",
    served["config"],
    served["state"],
  ]);
});

it("the gateways of the manifests are behind a service, say when they are ready, and hand over before they stop [documents-true]", () => {
  const deployment = manifest("Deployment", "toolway-gateway");
  const pod = deployment?.spec?.template;
  const [container] = pod?.spec.containers ?? [];
  if (pod === undefined || container === undefined) throw new Error("There is no gateway.");
  expect(deployment?.spec?.replicas).toBeGreaterThan(1);
  const served = lineOf(container.args);
  expect(served.verb).toBe("serve");
  const [port] = container.ports ?? [];
  expect(served.input["listen"]).toBe(`0.0.0.0:${port?.containerPort}`);
  expect(container.env?.map(({ name }) => name)).toEqual(SECRETS);
  expect(container.readinessProbe?.httpGet).toEqual({ path: "/readyz", port: port?.name });
  expect(container.livenessProbe?.httpGet).toEqual({ path: "/healthz", port: port?.name });

  const service = manifest("Service", "toolway-gateway");
  expect(service?.spec?.selector).toEqual(pod.metadata?.labels);
  expect(service?.spec?.ports?.[0]?.targetPort).toBe(port?.name);
  expect(deployment?.spec?.selector).toEqual({ matchLabels: pod.metadata?.labels });
  expect(manifest("PodDisruptionBudget", "toolway-gateway")?.spec?.selector).toEqual({
    matchLabels: pod.metadata?.labels,
  });
  const config = manifest("ConfigMap", "toolway-config")?.data?.["toolway.json"] ?? "";
  expect(configOf(config).allowedHosts).toContain(service?.metadata.name);
  // Else the service's variables would begin as those of Toolway do.
  expect(pod.spec.enableServiceLinks).toBe(false);

  const [, , script = ""] = container.lifecycle?.preStop.exec.command ?? [];
  const [, sleep = "", line = ""] = /^sleep (\d+); exec toolway (.*)$/.exec(script) ?? [];
  const { verb, input } = lineOf(line.split(" "));
  expect([verb, input["gateway"]]).toEqual(["drain", "this"]);
  for (const option of ["config", "state"]) expect(input[option]).toBe(served.input[option]);
  const graceMs = (pod.spec.terminationGracePeriodSeconds ?? 0) * 1_000;
  expect(graceMs).toBeGreaterThan(Number(sleep) * 1_000 + HAND_OVER_MS + STOP_MS);

  const mounted = container.volumeMounts.map(({ name }) => name);
  expect(pod.spec.volumes?.map(({ name }) => name)).toEqual(mounted);
  // A volume belongs to root, and a state directory to whoever runs the gateway.
  const at = container.volumeMounts.find(({ name }) => name === "state")?.mountPath;
  expect(String(served.input["state"])).toMatch(new RegExp(`^${at}/.`));
});

it("HAProxy takes the balancer's config", (context) => {
  if (spawnSync("haproxy", ["-v"]).status !== 0) return context.skip("no haproxy is installed here");
  const { status, stderr } = spawnSync("haproxy", ["-c", "-f", join(folder, "haproxy.cfg")], { encoding: "utf8" });
  expect(status, stderr).toBe(0);
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
