// `tools` and `inspect` from the words of the line to output and exit code, with a fake gateway.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { fakeGateway, leaveFolder, makeFolder, run, STATUS, TOOLS } from "../../../test/fixtures/fake-gateway.js";

beforeEach(makeFolder);

afterEach(leaveFolder);

describe("tools", () => {
  it("are listed in a table, or as JSON", async () => {
    fakeGateway();
    const { out } = await run(["tools"]);
    expect(out.split("\n")[1]).toBe("demo__add   demo    Adds two numbers. And more.");
    expect(JSON.parse((await run(["tools", "--json"])).out)).toEqual(TOOLS);
    expect(await run(["tools", "--server", "x"])).toMatchObject({ code: 2 });
    expect((await run(["tools", "--as", "ann", "--role", "dev"])).err).toContain("--as or --role, not both");
  });

  it("show what is hidden in their names, in a pipe too, and as JSON are as they are [terminal-inert]", async () => {
    const odd = [{ ...TOOLS[0], name: "demo__a\u001b[2J\u202e", description: "Adds\u202e." }];
    fakeGateway({ "/tools": { tools: odd } });
    const { out } = await run(["tools"]);
    for (const hidden of ["\u001b", "\u202e"]) expect(out).not.toContain(hidden);
    expect(out).toContain("demo__a\\u{001B}[2J\\u{202E}");
    expect(JSON.parse((await run(["tools", "--json"])).out)).toEqual(odd);
  });

  it("say that a role or a token is left none, and by what [told-why]", async () => {
    fakeGateway({ "/tools?role=reader": { tools: [] }, "/tools?as=ci": { tools: [] } });
    const left = (whom: string) => `No tool is left to ${whom}: "roles" and "menus" of the config say what is.\n`;
    expect((await run(["tools", "--role", "reader"])).err).toContain(left("the role reader"));
    expect((await run(["tools", "--as", "ci"])).err).toContain(left("ci"));
  });

  it("say which of them are quarantined", async () => {
    fakeGateway({ "/tools": { tools: [{ ...TOOLS[0], quarantined: "its description changed" }, TOOLS[1]] } });
    const { out, err } = await run(["tools"]);
    expect(out).toMatch(/demo__add +demo +quarantined: its description changed/);
    expect(err).toContain("toolway pins diff");
  });

  it("say whose tools are not known", async () => {
    const [demo] = STATUS.servers;
    const away = { ...demo, name: "away", counts: { tools: 0, prompts: 0, resources: 0, resourceTemplates: 0 } };
    fakeGateway({ "/status": { ...STATUS, servers: [demo, away] } });
    expect((await run(["tools"])).err).toContain("Not up, so that their tools are not known: away (down).");
    expect((await run(["tools", "--json"])).err).toBe("");
  });

  it("that are not there are blamed on servers that could have them, and on no others [status-true]", async () => {
    const [demo] = STATUS.servers;
    const away = { ...demo, name: "away", counts: { tools: 0, prompts: 0, resources: 0, resourceTemplates: 0 } };
    fakeGateway({
      "/status": { ...STATUS, servers: [demo, away] },
      "/tools/owners?tool=xyz": { servers: ["away"] },
      "/tools/owners?tool=demo__xyz": { servers: ["demo"] },
    });
    expect((await run(["call", "xyz"])).err).toContain("away");
    expect((await run(["call", "demo__xyz"])).err).not.toContain("away");
  });

  it("that a server alone could have which is not up are answered by how it is, and what to do [told-why]", async () => {
    const [demo] = STATUS.servers;
    const away = { ...demo, name: "away", counts: { tools: 0, prompts: 0, resources: 0, resourceTemplates: 0 } };
    const credential = { source: "a login", state: "missing", needsLogin: true };
    const expected: readonly [object, string, string][] = [
      [
        { state: "misconfigured", lastError: "KEY is not set" },
        "server away is misconfigured, and its tools are not known. KEY is not set.",
        "`toolway doctor --server away` says what to fix in its entry.",
      ],
      [
        { state: "backoff", lastError: "It exited.", nextTryInMs: 2_000 },
        "server away is down, and its tools are not known. It exited.",
        "`toolway doctor --server away` says what to fix. It is tried again in 2.0 s.",
      ],
      [
        { state: "ejected" },
        "server away is ejected, since it was restarted too often,",
        "`toolway reload away` tries it.",
      ],
      [{ state: "stopped" }, "server away is stopped,", "`toolway start away` starts it."],
      [{ state: "backoff", credential }, "server away needs a login,", "`toolway login away` logs in."],
    ];
    for (const [facts, what, next] of expected) {
      fakeGateway({
        "/status": { ...STATUS, servers: [demo, { ...away, lastError: undefined, ...facts }] },
        "/tools/owners?tool=away__x": { servers: ["away"] },
      });
      const { code, err } = await run(["call", "away__x"]);
      expect(code).toBe(1);
      expect(err).toContain(`away__x cannot be called: ${what}`);
      expect(err).toContain(next);
      expect(err).not.toContain("There is no tool");
    }
  });

  it("that are not there are waited for while a server that could have them starts, and it is said at once [status-true]", async () => {
    const [demo] = STATUS.servers;
    const slow = { ...demo, name: "slow", state: "starting", counts: { tools: 0 } };
    const owners = {
      "/tools/owners?tool=demo__xyz": { servers: ["demo"] },
      "/tools/owners?tool=xyz": { servers: ["slow"] },
    };
    // It starts for ever: whoever waited for it would not come back.
    fakeGateway({
      "/status": { ...STATUS, servers: [{ ...demo, state: "ready", listsFromBefore: false }, slow] },
      ...owners,
    });
    expect((await run(["call", "demo__xyz"])).err).not.toContain("slow");
    let asked = 0;
    fakeGateway({
      "/status": () => ({
        ...STATUS,
        servers: [demo, asked++ < 4 ? slow : { ...slow, state: "ready", listsFromBefore: false }],
      }),
      ...owners,
    });
    const { code, err } = await run(["call", "xyz"]);
    expect(code).toBe(2);
    expect(err.split("\n")[0]).toBe("xyz is not among the tools that are known; waiting for slow …");
    expect(err).toContain("There is no tool xyz.");
  });

  it("are those of a gateway of our own where none runs, which is closed again", async () => {
    const fake = fakeGateway({ "/status": { ...STATUS, servers: [] } }, {}, false);
    expect((await run(["tools"])).out).toContain("demo__add");
    expect(fake.closed).toEqual(["local"]);
  });

  it("wait for servers that start, and say so when it takes long", async () => {
    const [server] = STATUS.servers;
    let polls = 0;
    const status = (): unknown => ({ ...STATUS, servers: [{ ...server, state: polls++ < 6 ? "starting" : "ready" }] });
    fakeGateway({ "/status": status }, {}, false);
    const began = Date.now();
    // Half a second goes by with each look.
    const clock = vi.spyOn(Date, "now").mockImplementation(() => began + polls * 500);
    const { err, out } = await run(["tools"]).finally(() => clock.mockRestore());
    expect(err).toContain("waiting for demo");
    expect(out).toContain("demo__add");
  });
});

describe("inspect", () => {
  const needy = {
    name: "demo__add",
    server: "demo",
    ownName: "add",
    description: "Adds two numbers.",
    inputSchema: { properties: { a: { type: "number", description: "The first." } }, required: ["a"] },
    annotations: { readOnlyHint: true },
  };
  const answers = {
    "/tools": { tools: [needy] },
    "/pins": { pins: [{ server: "demo", tool: "add", state: "pinned", hash: "HASH", firstSeen: "2026-01-01" }] },
    "/access?server=demo&tool=add": {
      access: [
        { role: "reader", allowed: true },
        { role: "(any other role)", allowed: false, rule: 'unlistedRoles is "deny"' },
      ],
    },
  };

  it("shows what a tool takes, a call to paste, what is claimed of it, its pin and who may call it", async () => {
    fakeGateway(answers);
    const { code, out } = await run(["inspect", "add"]);
    expect(code).toBe(0);
    expect(out).toBe(`demo__add
Adds two numbers.

add of server demo

PARAMETERS
  a  number  required  The first.

EXAMPLE
  toolway call demo__add --arg a=1

CLAIMS OF ITS SERVER
  readOnlyHint: true

PIN
  pinned, HASH, since 2026-01-01

MAY CALL IT
  reader: yes
  (any other role): no, unlistedRoles is "deny"
`);
  });

  it("says once why a tool is quarantined, with commands that can be typed [told-why]", async () => {
    const reason = "it changed: `toolway pins diff demo` shows how";
    const pins = [{ server: "demo", tool: "add", state: "changed", hash: "HASH", reason }];
    fakeGateway({ ...answers, "/tools": { tools: [{ ...needy, quarantined: reason }] }, "/pins": { pins } });
    const typed = { program: "npx toolway" };
    const { out } = await run(["inspect", "add"], typed);
    expect(out.match(/it changed: `npx toolway pins diff demo`/g)).toHaveLength(1);
    expect(out).toContain("PIN\n  changed, HASH\n");
    fakeGateway({ ...answers, "/pins": { pins: [{ ...pins[0], state: "refused", reason: "`toolway pins` says" }] } });
    expect((await run(["inspect", "add"], typed)).out).toContain("PIN\n  refused, HASH, `npx toolway pins` says\n");
  });

  it("says of a tool without a pin why it has none [told-why]", async () => {
    fakeGateway({ ...answers, "/pins": { pins: [], trusted: ["demo"] } });
    expect((await run(["inspect", "add"])).out).toContain("PIN\n  none: its server is trusted\n");
    fakeGateway({ ...answers, "/pins": { pins: [], trusted: [] } });
    expect((await run(["inspect", "add"])).out).toContain("PIN\n  none yet: its list was not read\n");
  });

  it("speaks of every role where the config names none", async () => {
    const access = [{ role: "(any other role)", allowed: true }];
    fakeGateway({ ...answers, "/access?server=demo&tool=add": { access } });
    expect((await run(["inspect", "add"])).out).toContain("MAY CALL IT\n  every role: yes\n");
  });

  it("prints all of it as JSON for scripts, and says what is near a name that is not there", async () => {
    fakeGateway(answers);
    const { out } = await run(["inspect", "demo__add", "--json"]);
    expect(JSON.parse(out)).toMatchObject({ ...needy, pin: { hash: "HASH" }, example: expect.any(String) });
    expect((await run(["inspect", "demo__ad"])).err).toContain("Did you mean demo__add?");
  });

  it("is what call goes by: it refuses what is missing or forbidden before anything is called", async () => {
    const inputSchema = { ...needy.inputSchema, additionalProperties: false };
    const gateway = fakeGateway({ ...answers, "/tools": { tools: [{ ...needy, inputSchema }] } });
    expect(await run(["call", "demo__add"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("needs a (number)"),
    });
    const wrong = await run(["call", "demo__add", "--arg", "a=1", "--arg", "aa=2"]);
    // A name of one letter is one typo from every other: what there is says more.
    expect(wrong).toMatchObject({ code: 2, err: expect.stringMatching(/no argument aa\.\n {2}It has a\.\n/) });
    expect(gateway.requests.map(({ path }) => path)).not.toContain("/call");
  });

  it("is what completes --arg", async () => {
    fakeGateway(answers);
    expect((await run(["__complete", "argument", "--", "call", "demo__add", "--arg"])).out).toBe("a=\n");
  });
});
