// `reload`, `stop` and `start` from the words of the line to output and exit code, with a fake gateway.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeGateway, leaveFolder, makeFolder, run } from "../../../test/fixtures/fake-gateway.js";

beforeEach(makeFolder);
afterEach(leaveFolder);

describe("reload, stop and start", () => {
  const server = (state: string, more: object = {}) => ({
    servers: [{ name: "git hub", state, listsFromBefore: false, counts: { tools: 3 }, ...more }],
  });

  it("ask the gateway that runs, and say what came of it", async () => {
    const states = ["ready", "starting", "ready"];
    const { requests } = fakeGateway({ "/status": () => server(states.shift() ?? "ready") });
    expect(await run(["reload", "git hub"])).toEqual({
      code: 0,
      out: "Reloaded git hub: ready, with 3 tools.\n",
      err: "",
    });
    expect(requests[1]).toEqual({ path: "/servers/git%20hub/reload", body: {} });
    const stopping = ["ready", "ready", "stopped"];
    fakeGateway({ "/status": () => server(stopping.shift() ?? "stopped") });
    expect((await run(["stop", "git hub"])).out).toContain("Stopped git hub, until `toolway start git hub`");
    fakeGateway({ "/status": server("ready") });
    expect(JSON.parse((await run(["start", "git hub", "--json"])).out)).toEqual({
      server: "git hub",
      state: "ready",
      tools: 3,
    });
    fakeGateway({ "/status": server("idle") });
    expect((await run(["start", "git hub"])).out).toContain("starts with its first call");
  });

  it("exit 1 when the server does not come up, when there is none of that name, or no gateway", async () => {
    fakeGateway({ "/status": server("backoff", { lastError: "It ended with code 1." }) });
    expect(await run(["reload", "git hub"])).toMatchObject({ code: 1, out: "" });
    expect((await run(["start", "git hub"])).err).toContain("git hub is backoff: It ended with code 1.");
    expect(await run(["start", "git hub", "--json"])).toMatchObject({ code: 1 });
    expect((await run(["stop", "githob"])).err).toContain("Did you mean git hub?");
    fakeGateway({}, {}, false);
    const { code, err } = await run(["stop", "git hub"]);
    expect(code).toBe(1);
    expect(err).toContain("No gateway runs for this config.");
    expect(await run(["stop"])).toMatchObject({ code: 2 });
  });
});
