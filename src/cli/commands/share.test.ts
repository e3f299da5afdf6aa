// What `share` and `join` say where the broker does not take them, with a fake gateway.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, run, STATUS } from "../../../test/fixtures/fake-gateway.js";
import { heldIo } from "../../../test/fixtures/held-io.js";
import { until } from "../../../test/fixtures/wait.js";
import { keepWorker } from "../../mailbox/pairing/kept-workers.js";
import { stateRootFor } from "../../runtime/state-dir.js";
import { failedProbe } from "../gateway/failed-probe.js";
import { type GatewayPort, replaceGatewayPort } from "../gateway/port.js";
import { runCli } from "../program.js";

beforeEach(makeFolder);

afterEach(leaveFolder);

const broker = ["--broker", "ws://127.0.0.1:7440"];

describe("share that the broker refuses [told-why]", () => {
  const refused = async (env: Record<string, string>) => {
    writeFileSync(join(folder, "mine.json"), '{"mcpServers":{}}');
    replaceGatewayPort({ ...fakeGateway().port, share: async () => ({ why: "The broker refused the token." }) });
    return run(["share", "mine.json", ...broker, "--as", "studio", "--state", "st"], { env });
  };

  it("names the command for the broker's machine, without this machine's config and state", async () => {
    const { code, err } = await refused({ TOOLWAY_TOKEN: "tw_wrong" });
    expect(code).toBe(1);
    expect(err).toContain("`toolway token create --id studio --role sharer` at the broker");
    expect(err).not.toContain("mine.json");
    expect(err).not.toContain("not set");
  });

  it.each([{}, { TOOLWAY_TOKEN: "" }])("says that there is no token in %j", async (env) => {
    expect((await refused(env)).err).toContain("TOOLWAY_TOKEN is not set.");
  });
});

describe("share whose gateway is in this process", () => {
  it("tells of its line by the log alone, and of a gateway elsewhere by itself", async () => {
    writeFileSync(join(folder, "mine.json"), '{"mcpServers":{}}');
    const told = async (isOwn: boolean) => {
      const share: GatewayPort["share"] = async (_source, { onLine, onOwn }) => {
        if (isOwn) onOwn?.();
        onLine({ kind: "state", state: "waiting", why: "nobody is there", nextInMs: 500 }, () => {});
        return "stopped";
      };
      replaceGatewayPort({ ...fakeGateway().port, share });
      return (await run(["share", "mine.json", ...broker, "--as", "studio", "--state", "st"])).err;
    };
    expect(await told(false)).toContain("nobody is there. Next try in 0.5 s.");
    expect(await told(true)).not.toContain("nobody is there");
  });
});

it("share says at once that it stops, while a call runs [told-why]", async () => {
  writeFileSync(join(folder, "mine.json"), '{"mcpServers":{}}');
  const stop = new AbortController();
  const { io, err } = heldIo({ cwd: folder, home: join(folder, "home"), isErrTTY: true, signal: stop.signal });
  let begun = false;
  let end = (): void => {};
  const share: GatewayPort["share"] = () => {
    begun = true;
    return new Promise((done) => {
      end = () => done("stopped");
    });
  };
  replaceGatewayPort({ ...fakeGateway().port, share });
  const ran = runCli(["share", "mine.json", ...broker, "--as", "studio", "--state", "st"], io);
  await until("it shares", () => begun);
  expect(err()).not.toContain("Stopping");
  stop.abort();
  await until("it says that it stops", () => err().includes("Stopping as soon as the calls in flight have ended"));
  end();
  expect(await ran).toBe(0);
  expect(err().split("Stopping")).toHaveLength(2);
});

describe("join that the broker refuses [told-why]", () => {
  const refused = async (env: Record<string, string>, code = "unauthorized") => {
    const error = { code, message: "The broker refuses us.", remedy: 'Check "token" in its entry.' };
    replaceGatewayPort({ ...fakeGateway().port, probe: async () => failedProbe(error) });
    return run(["join", ...broker, "--from", "studio", "--state", "st", "--require"], { env });
  };

  it("says that TOOLWAY_TOKEN is not set, where it is not", async () => {
    for (const env of [{}, { TOOLWAY_TOKEN: "" }] as Record<string, string>[]) {
      const { code, err } = await refused(env);
      expect([code, err]).toEqual([1, expect.stringContaining("TOOLWAY_TOKEN is not set")]);
    }
  });

  it("names the token of the line and no entry of a config, where it is set", async () => {
    const { err } = await refused({ TOOLWAY_TOKEN: "tw_wrong" });
    expect(err).toContain("`toolway token list` at the broker");
    expect(err).not.toMatch(/its entry|not set|--state/);
  });

  it("leaves the remedy of any other fault as it is", async () => {
    expect((await refused({}, "unavailable")).err).toContain("its entry");
  });
});

it("names all that is missing at once, and --pair beside it [told-why]", async () => {
  for (const [verb, other] of [
    ["share", "--as ID"],
    ["join", "--from ID"],
  ] as const) {
    const { code, err } = await run([verb]);
    expect([code, err]).toEqual([
      2,
      expect.stringMatching(new RegExp(`--broker URL and ${other} are missing.*--pair`, "s")),
    ]);
    expect((await run([verb, ...broker])).err).toContain(`${other} is missing`);
  }
  const { code, err } = await run(["share", "--role", "r", "--listen", "127.0.0.1:0"]);
  expect([code, err]).toEqual([2, expect.stringMatching(/--role and --listen go with --pair, which is missing/)]);
});

it("join names the machines that are paired, where the one that is named is not [told-why]", async () => {
  const none = await run(["join", "--from", "nothere"]);
  expect([none.code, none.err]).toEqual([2, expect.stringMatching(/not paired with nothere\.\n +Nothing is paired/)]);
  for (const mailbox of ["studio", "attic"]) {
    const worker = { broker: "ws://127.0.0.1:7440/mailboxes", id: `w-${mailbox}`, token: "tw_x", mailbox };
    keepWorker(stateRootFor({}, join(folder, "home")), worker);
  }
  expect((await run(["join", "--from", "nothere"])).err).toContain("Paired here: attic, studio.");
  expect((await run(["join", "--from", "studoi"])).err).toContain("Did you mean studio? Paired here: attic, studio.");
});

it("join shows a token that was made in a terminal alone: a pipe leads to a log [secrets-unseen]", async () => {
  fakeGateway();
  const joined = (isTTY: boolean) => {
    const stop = new AbortController();
    const ran = run(["join", ...broker, "--from", "studio", "--listen", "127.0.0.1:0"], { isTTY, signal: stop.signal });
    setImmediate(() => stop.abort());
    return ran;
  };
  expect((await joined(true)).out).toContain("tw_secret");
  const { out } = await joined(false);
  expect(out).not.toContain("tw_secret");
  expect(out).toMatch(/made just now; .*token show --state \/state prints it/);
});

it("a broker that other machines reach without TLS says so [told-truly]", async () => {
  fakeGateway();
  const started = (listen: string) => {
    const stop = new AbortController();
    const ran = run(["broker", "--listen", listen], { signal: stop.signal });
    setImmediate(() => stop.abort());
    return ran;
  };
  expect((await started("0.0.0.0:7440")).err).toContain(
    "without TLS: tokens and messages cross the network unencrypted",
  );
  expect((await started("127.0.0.1:7440")).err).toBe("");
});

it("a broker is shown at the address that peers dial, and not as an endpoint of agents [status-true]", async () => {
  const [pid, stateDir, startedAt] = [7, "/state/broker", new Date(0).toISOString()];
  const endpoint = "http://127.0.0.1:7440/mcp";
  const gateway = { pid, config: undefined, builtIn: "broker" as const, stateDir, endpoint, startedAt };
  const mailboxes = { inUse: 0, waiting: 0, leased: 0, dead: 0, connections: 0, oldest: undefined, mailboxes: [] };
  fakeGateway({ "/status": { ...STATUS, servers: [], endpoint, mailboxes } }, { list: async () => [gateway] });
  expect((await run(["ps"])).out).toMatch(/\(broker\) +ws:\/\/127\.0\.0\.1:7440 /);
  const { out } = await run(["status"]);
  expect(out).toMatch(/^broker +ws:\/\/127\.0\.0\.1:7440$/m);
  expect(out).not.toContain("/mcp");
});
