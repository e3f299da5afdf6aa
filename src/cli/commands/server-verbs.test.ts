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
    expect((await run(["stop", "git hub"])).out).toContain("Stopped git hub, until `toolway start 'git hub'`");
    fakeGateway({ "/status": server("ready") });
    expect(JSON.parse((await run(["start", "git hub", "--json"])).out)).toEqual({
      server: "git hub",
      state: "ready",
      tools: 3,
      quarantined: 0,
    });
    fakeGateway({ "/status": server("idle") });
    expect((await run(["start", "git hub"])).out).toContain("starts with its first call");
  });

  it("exit 1 when the server does not come up or no gateway runs, and 2 when there is none of that name [told-why]", async () => {
    fakeGateway({ "/status": server("backoff", { lastError: "It ended with code 1." }) });
    expect(await run(["reload", "git hub"])).toMatchObject({ code: 1, out: "" });
    expect((await run(["start", "git hub"])).err).toContain("git hub did not come up: It ended with code 1.");
    expect(await run(["start", "git hub", "--json"])).toMatchObject({ code: 1 });
    const unknown = await run(["stop", "githob"]);
    expect(unknown.code).toBe(2);
    expect(unknown.err).toContain("Did you mean git hub?");
    fakeGateway({ "/status": server("ejected", { lastError: "It ended" }) });
    expect((await run(["start", "git hub"])).err).toContain(
      "git hub was restarted too often, and is left alone: It ended.\n",
    );
    fakeGateway({}, {}, false);
    const { code, err } = await run(["stop", "git hub"]);
    expect(code).toBe(1);
    expect(err).toContain("No gateway runs for this config.");
    expect(await run(["stop"])).toMatchObject({ code: 2 });
  });

  it("tell of quarantined tools [status-true]", async () => {
    fakeGateway({ "/status": server("ready", { quarantined: 2 }) });
    const { out, err } = await run(["reload", "git hub"]);
    expect(out).toBe("Reloaded git hub: ready, with 3 tools.\n");
    expect(err).toBe(
      "git hub: 2 of 3 tools quarantined, hidden from agents: `toolway pins diff 'git hub'` shows why.\n",
    );
  });
});

describe("reload without a server", () => {
  const answer = (changes: string[], more: object = {}, servers: object[] = []) => ({
    changes,
    servers,
    config: { warnings: [], unusedPatterns: [], waitsForRestart: [], ...more },
  });

  it("reads the config again and says what changed [status-true]", async () => {
    const { requests } = fakeGateway({ "/reload": answer(["added wiki", "roles", "3 tools"]) });
    expect(await run(["reload"])).toEqual({
      code: 0,
      out: "Read the config again: added wiki; roles; 3 tools.\n",
      err: "",
    });
    expect(requests).toEqual([{ path: "/reload", body: {} }]);
    fakeGateway({ "/reload": answer([]) });
    expect((await run(["reload"])).out).toBe("Read the config again: nothing changed.\n");
  });

  it("says which entries cannot be used, and exits 1 where a server goes on by the one before [bad-entry-alone] [status-true]", async () => {
    const keptEntries = { notes: 'toolway.json:3:5: unknown key (did you mean "command"?)' };
    const wrong = { name: "gh", state: "misconfigured", lastError: "toolway.json:4:5: KEY is not set", quarantined: 0 };
    fakeGateway({ "/reload": answer([], { keptEntries }, [wrong]) });
    expect(await run(["reload"])).toEqual({
      code: 1,
      out: "Read the config again: nothing changed.\n",
      err:
        'notes: its new entry is not used, the one before goes on: toolway.json:3:5: unknown key (did you mean "command"?)\n' +
        "gh: misconfigured: toolway.json:4:5: KEY is not set\n",
    });
    const json = await run(["reload", "--json"]);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.out)).toMatchObject({ keptEntries, misconfigured: { gh: wrong.lastError } });
    fakeGateway({ "/reload": answer(["added gh"], {}, [wrong]) });
    expect(await run(["reload"])).toMatchObject({ code: 0 });
  });

  it("says what waits, what fits nothing and what is hidden, on stderr or as JSON [status-true]", async () => {
    const more = { waitsForRestart: ["listen"], unusedPatterns: ["a pattern fits nothing."] };
    fakeGateway({
      "/reload": answer(["roles"], more, [{ name: "notes", quarantined: 1, counts: { tools: 2 } }]),
    });
    expect((await run(["reload"])).err.split("\n")).toEqual([
      '"listen" in the config changed, and takes effect at the next start of the gateway.',
      "warning: a pattern fits nothing.",
      "notes: 1 of 2 tools quarantined, hidden from agents: `toolway pins diff notes` shows why.",
      "",
    ]);
    expect(JSON.parse((await run(["reload", "--json"])).out)).toEqual({
      changes: ["roles"],
      keptEntries: {},
      misconfigured: {},
      waitsForRestart: ["listen"],
      warnings: [],
      unusedPatterns: ["a pattern fits nothing."],
      quarantined: { notes: 1 },
    });
  });
});
