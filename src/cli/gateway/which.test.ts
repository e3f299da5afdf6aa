// Which gateway a verb is about: the rule by itself, then from the words of the line, with fake gateways.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, run, STATUS } from "../../../test/fixtures/fake-gateway.js";
import type { RunningGateway } from "../../control/registry.js";
import { realPath } from "../../runtime/state-dir.js";
import { UserError } from "../line/errors.js";
import type { GatewaySource } from "./port.js";
import { decide } from "./which.js";

const gateway = (config: string | undefined, stateDir: string): RunningGateway => ({
  pid: 4711,
  config,
  stateDir,
  endpoint: "http://127.0.0.1:7420/mcp",
  startedAt: new Date(0).toISOString(),
});
const demo = gateway(undefined, "/state/default");
const work = gateway("/work/toolway.json", "/state/work");
const work2 = gateway("/work/toolway.json", "/elsewhere/2");

describe("the gateway that is meant [right-gateway]", () => {
  const here = { config: undefined, stateNamed: false, stateDir: "/state/default", isUp: false, running: [] };

  it("is the one of the directory that was named, whatever else runs", () => {
    expect(decide({ ...here, stateNamed: true, running: [work, demo] })).toEqual({ kind: "own" });
  });

  it("is the demo where no config is found and nothing else runs", () => {
    expect(decide(here)).toEqual({ kind: "own" });
    expect(decide({ ...here, isUp: true, running: [demo] })).toEqual({ kind: "own" });
  });

  it("is unclear where no config is found and another runs, with the demo or without it", () => {
    expect(decide({ ...here, running: [work] })).toEqual({ kind: "unclear", candidates: [work] });
    expect(decide({ ...here, isUp: true, running: [demo, work] })).toEqual({
      kind: "unclear",
      candidates: [demo, work],
    });
  });

  it("is the only broker, where the verb is of use there and nothing else runs or is named", () => {
    const broker: RunningGateway = { ...gateway(undefined, "/state/broker"), builtIn: "broker" };
    const asked = { ...here, orBroker: true };
    expect(decide({ ...asked, running: [broker] })).toEqual({ kind: "other", gateway: broker });
    expect(decide({ ...here, running: [broker] })).toEqual({ kind: "unclear", candidates: [broker] });
    expect(decide({ ...asked, running: [broker, work] })).toEqual({ kind: "unclear", candidates: [broker, work] });
    expect(decide({ ...asked, config: "/work/toolway.json", running: [broker] })).toEqual({ kind: "own" });
  });

  it("is the one that runs for the config, wherever its state is; unclear where there are two", () => {
    const config = { ...here, config: "/work/toolway.json", stateDir: "/state/work" };
    expect(decide({ ...config, isUp: true, running: [work, demo] })).toEqual({ kind: "own" });
    expect(decide({ ...config, running: [demo] })).toEqual({ kind: "own" });
    expect(decide({ ...config, running: [demo, work2] })).toEqual({ kind: "other", gateway: work2 });
    const work3 = { ...work2, stateDir: "/elsewhere/3" };
    expect(decide({ ...config, running: [work2, work3] })).toEqual({ kind: "unclear", candidates: [work2, work3] });
  });
});

describe("a verb away from the folder of a config", () => {
  beforeEach(makeFolder);
  afterEach(leaveFolder);

  it.each(["token show", "token create --id x --role y", "status", "tools", "call demo__add", "reload demo", "down"])(
    "names those that run, asks none of them, and exits 2: %s [right-gateway]",
    async (line) => {
      const fake = fakeGateway({}, { list: async () => [work, demo], defaultToken: async () => "tw_of_the_demo" });
      const { code, out, err } = await run(line.split(" "));
      expect({ code, out }).toEqual({ code: 2, out: "" });
      expect(err).toContain("--config /work/toolway.json  (process 4711, http://127.0.0.1:7420/mcp)");
      expect(err).toContain("--state /state/default  (the built-in demo, process 4711");
      expect(fake.requests).toEqual([]);
    },
  );

  it("names a broker by the address that its peers dial [right-gateway]", async () => {
    const broker: RunningGateway = {
      ...gateway(undefined, "/state/broker"),
      builtIn: "broker",
      endpoint: "http://127.0.0.1:7440/mcp",
    };
    fakeGateway({}, { list: async () => [broker, demo] });
    const named = "(a broker, process 4711, ws://127.0.0.1:7440)";
    expect((await run(["status"])).err).toContain(`--state /state/broker  ${named}`);
    expect((await run(["ps"])).out).toMatch(/4711 +\(broker\) +ws:\/\/127\.0\.0\.1:7440 /);
  });

  it("gives out no token of the demo that does not run [right-gateway]", async () => {
    fakeGateway({}, { defaultToken: async () => "tw_of_the_demo" }, false);
    const { code, out, err } = await run(["token", "show"]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain("No config is named here or found, and no gateway runs.");
    expect(err).toContain("--config FILE");
  });

  it("says which others run where none does for the config that was found", async () => {
    writeFileSync(join(folder, "toolway.json"), '{"mcpServers":{}}');
    fakeGateway({}, { list: async () => [work] }, false);
    const status = await run(["status"]);
    expect(status.err).toContain("No gateway runs for this config. Gateways that run:");
    expect(status.err).toContain("--config /work/toolway.json");
    expect((await run(["reload", "demo"])).err).toContain("--config /work/toolway.json");
    expect((await run(["down"])).err).toContain("No gateway runs for ./toolway.json.\n  Gateways that run:");
  });

  it("finds the gateway of the config with another state directory [right-gateway]", async () => {
    writeFileSync(join(folder, "toolway.json"), '{"mcpServers":{}}');
    const other = gateway(realPath(join(folder, "toolway.json")), "/elsewhere");
    const fake = fakeGateway({}, { list: async () => [demo, other] }, false);
    const { client } = await fake.port.connect({} as never, {} as never);
    fakeGateway(
      {},
      {
        ...fake.port,
        find: async ({ stateDir }) => (stateDir === "/elsewhere" ? client : undefined),
      },
    );
    expect(await run(["tools", "--json"])).toMatchObject({ code: 0, err: "" });
  });
});

describe("a start at an address that is taken", () => {
  beforeEach(makeFolder);
  afterEach(leaveFolder);

  const taken = Object.assign(new Error("listen EADDRINUSE"), { code: "EADDRINUSE", address: "127.0.0.1", port: 7420 });
  const start = () => Promise.reject(new UserError("Cannot listen on 127.0.0.1:7420.", { cause: taken }));
  const listed = (...running: RunningGateway[]) => fakeGateway({}, { start, list: async () => running }, false);

  it.each([["serve"], ["broker"], ["share --pair"]])(
    "names the gateway that listens there, and how it is stopped: %s [told-why]",
    async (verb) => {
      writeFileSync(join(folder, "mine.json"), '{"mcpServers":{}}');
      listed({ ...work, endpoint: "http://127.0.0.1:7421/mcp" }, demo);
      const words = verb === "serve" ? [verb, "mine.json"] : verb.split(" ");
      expect(await run(words)).toEqual({
        code: 1,
        out: "",
        err:
          "toolway: Port 7420 is taken: the built-in demo listens at http://127.0.0.1:7420/mcp, process 4711.\n" +
          "  `toolway down --state /state/default` stops it; or choose another port with --listen.\n",
      });
    },
  );

  it("says what is known where no gateway of the user's has it", async () => {
    listed({ ...work, endpoint: "http://127.0.0.1:7421/mcp" });
    expect((await run(["serve"])).err).toBe("toolway: Cannot listen on 127.0.0.1:7420.\n");
  });
});

describe("where the state of a config is", () => {
  beforeEach(makeFolder);
  afterEach(leaveFolder);

  const stateDirFor = async (...line: string[]): Promise<string> => {
    let asked: string | undefined;
    const defaultToken = async ({ stateDir }: GatewaySource) => {
      asked = stateDir;
      return "tw_x";
    };
    fakeGateway({}, { defaultToken }, false);
    await run(["token", "show", ...line]);
    return asked ?? "nowhere";
  };

  it('is what its "state" says, relative to the file, also while something else in it is wrong [state-moves]', async () => {
    const write = (text: string) => writeFileSync(join(folder, "toolway.json"), text);
    write('{ // kept here\n "state": "./.toolway", "mcpServers": {} }');
    expect(await stateDirFor()).toBe(join(folder, ".toolway"));
    write('{ "state": "~/kept", "mcpServers": { "a": { "comand": 7 } } }');
    expect(await stateDirFor()).toBe(join(folder, "home/kept"));
    expect(await stateDirFor("--state", "named")).toBe(join(folder, "named"));
    write('{ "mcpServers": { "state": { "command": "x", "args": ["\\"state\\""] } } }');
    expect(await stateDirFor()).toMatch(/home\/\.local\/state\/toolway\/toolway-[0-9a-f]{10}$/);
  });
});

describe("ps and down", () => {
  beforeEach(makeFolder);
  afterEach(leaveFolder);

  it("list what runs, for people and for scripts", async () => {
    fakeGateway({}, { list: async () => [demo, work, { ...work2, endpoint: undefined }] });
    const { code, out } = await run(["ps"]);
    expect(code).toBe(0);
    expect(out).toMatch(/4711 +\(built-in demo\) +http:\/\/127\.0\.0\.1:7420\/mcp +\d+ days +\/state\/default/);
    expect(out).toMatch(/4711 +\/work\/toolway\.json +\(stdio\) +\d+ days +\/elsewhere\/2/);
    expect(JSON.parse((await run(["ps", "--json"])).out)[0]).toEqual({
      pid: 4711,
      config: null,
      endpoint: "http://127.0.0.1:7420/mcp",
      startedAt: "1970-01-01T00:00:00.000Z",
      stateDir: "/state/default",
    });
    fakeGateway();
    expect(await run(["ps"])).toMatchObject({ code: 0, out: "No gateway runs. `toolway serve` starts one.\n" });
  });

  it("name no verb that would have nothing to show: where none runs, down says that alone [told-why]", async () => {
    fakeGateway({}, {}, false);
    expect(await run(["down"])).toEqual({ code: 1, out: "", err: "toolway: No gateway runs.\n" });
  });

  it("stop one, wait until nobody holds its directory, and say so", async () => {
    let looks = 0;
    const fake = fakeGateway({ "/down": { pid: 7, drainMs: 5 } }, { isHeld: async () => ++looks < 3 });
    expect(await run(["down", "--drain", "1.5"])).toEqual({
      code: 0,
      out: "Stopped the gateway at http://127.0.0.1:7420/mcp (process 7).\n",
      err: "",
    });
    expect(looks).toBe(3);
    expect(fake.requests).toContainEqual({ path: "/down", body: { drainMs: 1500 } });
    expect(await run(["down", "--drain", "x"])).toMatchObject({ code: 2 });
  });

  it("take another gateway in the same directory for the end of the one that was stopped", async () => {
    let asked = 0;
    const next = () => ({ ...STATUS, startedAt: new Date(asked++).toISOString() });
    fakeGateway({ "/down": { pid: 7, drainMs: 5 }, "/status": next }, { isHeld: async () => true });
    expect(await run(["down", "--json"])).toMatchObject({ code: 0, out: '{\n  "stopped": 7\n}\n' });
  });
});
