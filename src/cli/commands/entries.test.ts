// The verbs that edit a config, in process, with a fake gateway.

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, probe, run } from "../../../test/fixtures/fake-gateway.js";
import { keepAnswer } from "../../config/inputs/answers.js";

const FILE = `{
  // what the team uses
  "mcpServers": {
    "docs": { "url": "https://docs.example/mcp", "headers": { "Authorization": "Bearer canary" } }, // read-only
    "files": { "command": "npx", "args": ["-y", "files", "--api-key", "canary"], "disabled": true },
    "gh": { "command": "gh", "env": { "TOKEN": "\${GH_TOKEN}" } },
  },
}
`;

beforeEach(() => {
  makeFolder();
  fakeGateway({}, {}, false);
  writeFileSync(join(folder, "toolway.json"), FILE);
});
afterEach(leaveFolder);

const text = () => readFileSync(join(folder, "toolway.json"), "utf8");

describe("a config that is not what it seems", () => {
  const bytes = () => readFileSync(join(folder, "toolway.json"));
  const edits = [["add x --no-check npx x"], ["remove gh"], ["import --write"]];

  beforeEach(() => {
    mkdirSync(join(folder, ".cursor"));
    writeFileSync(join(folder, ".cursor/mcp.json"), '{"mcpServers":{"new":{"command":"new"}}}');
  });

  it.each(edits)("in another encoding is left as it is, with the place: %s [config-kept]", async (line = "") => {
    const latin = Buffer.from(FILE.replace("the team", "l'équipe"), "latin1");
    writeFileSync(join(folder, "toolway.json"), latin);
    const { code, out, err } = await run(line.split(" "));
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(
      /toolway\.json was left as it is, since it is not in UTF-8: byte 15, in line 2, is 0xE9\.\n {2}Save it/,
    );
    expect(bytes().equals(latin)).toBe(true);
    const wide = Buffer.from(`\uFEFF${FILE}`, "utf16le");
    writeFileSync(join(folder, "toolway.json"), wide);
    expect(await run(line.split(" "))).toMatchObject({
      code: 2,
      err: expect.stringContaining("it is in UTF-16, not in UTF-8."),
    });
    expect(bytes().equals(wide)).toBe(true);
  });

  it.each(edits)("with a byte order mark keeps it: %s [config-kept]", async (line = "") => {
    writeFileSync(join(folder, "toolway.json"), `\uFEFF${FILE}`);
    expect(await run(line.split(" "))).toMatchObject({ code: 0 });
    expect(text()).not.toBe(`\uFEFF${FILE}`);
    expect(text()).toMatch(/^\uFEFF\{\n {2}\/\/ what the team uses\n/);
    expect(await run(["list"], { env: { GH_TOKEN: "x" } })).toMatchObject({ code: 0, err: "" });
  });
});

describe("list", () => {
  it("shows every server of the file, what is missing, and no key [secrets-unseen]", async () => {
    const { code, out, err } = await run(["list"]);
    expect(code).toBe(0);
    expect(err).toBe("`toolway config check` says where, and what to do.\n");
    expect(out).toMatch(/docs +http +on +https:\/\/docs\.example\/mcp\n/);
    expect(out).toMatch(/files +stdio +off +npx -y files --api-key \[redacted\]\n/);
    expect(out).toMatch(/gh +stdio +misconfigured +gh\n/);
    expect(out).toContain("3 servers in ./toolway.json.\ngh is misconfigured: ");
    expect(out).toContain("GH_TOKEN is not set");
    expect(JSON.parse((await run(["list", "--json"], { env: { GH_TOKEN: "x" } })).out)).toMatchObject({
      config: join(folder, "toolway.json"),
      servers: [
        { name: "docs", kind: "http", disabled: false, entry: { headers: { Authorization: "(hidden)" } } },
        { name: "files", disabled: true },
        { name: "gh", entry: { command: "gh" } },
      ],
    });
  });

  it("names no kind of an entry that has neither a command nor an address", async () => {
    writeFileSync(join(folder, "toolway.json"), '{"mcpServers":{"typo":{"comand":"x"}}}');
    expect((await run(["list"])).out).toMatch(/typo +- +misconfigured/);
  });

  it("counts an input as answered that was answered once, as a gateway does [status-true]", async () => {
    const servers = { wants: { command: "x", env: { A: "${input:my-key}" } } };
    writeFileSync(join(folder, "toolway.json"), JSON.stringify({ state: "kept", servers }));
    expect((await run(["list"])).out).toMatch(/wants +stdio +misconfigured/);
    keepAnswer(join(folder, "kept"), "my-key", "s3cret");
    const { out } = await run(["list"]);
    expect(out).toMatch(/wants +stdio +on +x\n/);
    expect(out).not.toContain("s3cret");
  });

  it("calls no server on where the file as a whole cannot be used, and says what is wrong [status-true]", async () => {
    writeFileSync(join(folder, "toolway.json"), '{"mcpServers":{"a":{"command":"x"}},"listen":7}');
    const { code, out, err } = await run(["list"]);
    expect(code).toBe(2);
    expect(out).toMatch(/a +stdio +unusable +x\n/);
    expect(err).toContain("none of its servers runs:\n");
    expect(err).toMatch(/toolway\.json:1:46: listen: /);
    const json = await run(["list", "--json"]);
    expect(json.code).toBe(2);
    expect(JSON.parse(json.out)).toMatchObject({ servers: [{ name: "a" }], mistakes: [{ key: "listen" }] });
  });

  it("says what to do without a config", async () => {
    const { code, err } = await run(["list"], { cwd: join(folder, "home") });
    expect(code).toBe(2);
    expect(err).toContain("toolway add NAME COMMAND…");
  });
});

describe("remove", () => {
  it("takes one entry out, and leaves the rest of the file as it was [config-kept]", async () => {
    chmodSync(join(folder, "toolway.json"), 0o640);
    expect(await run(["remove", "files"])).toEqual({ code: 0, out: "Removed files from ./toolway.json.\n", err: "" });
    expect(text()).toBe(
      FILE.split("\n")
        .filter((line) => !line.includes('"files"'))
        .join("\n"),
    );
    expect(statSync(join(folder, "toolway.json")).mode & 0o777).toBe(0o640);
    fakeGateway();
    expect((await run(["remove", "gh"])).out).toContain("The gateway that runs for it stops the server by itself.");
    expect(JSON.parse((await run(["remove", "docs", "--json"])).out)).toEqual({
      config: join(folder, "toolway.json"),
      removed: "docs",
      gateway: true,
    });
    expect(text()).toContain("// what the team uses");
  });

  it("keeps a link a link [config-kept]", async () => {
    symlinkSync("toolway.json", join(folder, "link.json"));
    await run(["remove", "gh", "--config", "link.json"]);
    expect(lstatSync(join(folder, "link.json")).isSymbolicLink()).toBe(true);
    expect(text()).not.toContain('"gh"');
  });

  it("names the nearest where there is none of that name, and refuses what is not JSON", async () => {
    expect(await run(["remove", "doc"])).toMatchObject({
      code: 2,
      err: "toolway: ./toolway.json has no server doc.\n  Did you mean docs?\n",
    });
    writeFileSync(join(folder, "toolway.json"), "{ oops");
    expect((await run(["remove", "docs"])).err).toContain("toolway.json:1:3: not valid JSON");
    expect(text()).toBe("{ oops");
  });
});

describe("add", () => {
  const json = (file = "toolway.json") => JSON.parse(readFileSync(join(folder, file), "utf8"));
  beforeEach(() => rmSync(join(folder, "toolway.json")));

  it("makes a file that is its owner's alone, after the server was tried [config-kept]", async () => {
    const tried: unknown[] = [];
    const trying = async ({ target }: { readonly target: unknown }) => {
      tried.push(target);
      return probe({});
    };
    fakeGateway({}, { probe: trying }, false);
    const { code, out } = await run(["add", "files", "npx", "-y", "@a/files", "/srv"]);
    expect(code).toBe(0);
    expect(out).toBe("Made ./toolway.json with files: 2 tools, ready in 120 ms.\nNext: `toolway serve`.\n");
    expect(json()).toEqual({ mcpServers: { files: { command: "npx", args: ["-y", "@a/files", "/srv"] } } });
    expect(tried).toMatchObject([{ kind: "stdio", command: "npx", args: ["-y", "@a/files", "/srv"] }]);
    expect(statSync(join(folder, "toolway.json")).mode & 0o777).toBe(0o600);
  });

  it("adds to a file, keeps the rest of it, and says that a running gateway sees it [config-kept]", async () => {
    writeFileSync(join(folder, "toolway.json"), FILE);
    fakeGateway();
    const line = ["add", "web", "https://web.example/mcp", "--header", "Authorization: Bearer ${WEB}", "--json"];
    const { code, out } = await run(line, { env: { WEB: "x" } });
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      name: "web",
      added: true,
      check: { ok: true },
      secrets: [],
      gateway: true,
    });
    const lines = FILE.split("\n");
    const added = [
      '    "web": {',
      '      "url": "https://web.example/mcp",',
      '      "headers": {',
      '        "Authorization": "Bearer ${WEB}"',
      "      }",
      "    },",
    ];
    expect(text()).toBe([...lines.slice(0, 6), ...added, ...lines.slice(6)].join("\n"));
    expect((await run(["add", "x", "y"])).out).toContain("The gateway that runs for it starts the server by itself.");
  });

  it("writes nothing when the server does not work, and says why; --no-check writes it [told-truly]", async () => {
    const failed = probe({
      ok: false,
      error: { code: "unavailable", reason: undefined, message: "It ended.", remedy: undefined },
      stderr: ["no such thing"],
    });
    fakeGateway({}, { probe: async () => failed }, false);
    const { code, err } = await run(["add", "bad", "prog", "--flag"]);
    expect(code).toBe(1);
    expect(err).toContain("It ended.");
    expect(err).toContain("no such thing");
    expect(err).toContain("bad was not added to ./toolway.json, since it does not work.");
    expect(err).toContain("--no-check");
    expect(existsSync(join(folder, "toolway.json"))).toBe(false);
    expect(await run(["add", "bad", "prog", "--json"])).toMatchObject({ code: 1 });
    const { out } = await run(["add", "bad", "prog", "--flag", "--no-check"]);
    expect(out).toContain("Made ./toolway.json with bad, without a check.");
    expect(json()).toEqual({ mcpServers: { bad: { command: "prog", args: ["--flag"] } } });
  });

  it("says of one that wants a login how it gets in, since there is none before it is in the config [told-why]", async () => {
    const error = {
      code: "unauthorized",
      reason: "oauth",
      message: "It wants a login by OAuth.",
      remedy: undefined,
    } as const;
    fakeGateway({}, { probe: async () => probe({ ok: false, error }) }, false);
    const { code, err } = await run(["add", "linear", "https://linear.example/mcp"]);
    expect(code).toBe(1);
    expect(err).toContain('with --no-check, write "auth": "oauth" into its entry, and then `toolway login linear`.\n');
  });

  it("says which keys stand in the file, and keeps those out of it that are named alone [secrets-unseen]", async () => {
    const { out } = await run(["add", "a", "prog", "--env", "API_KEY=canary", "--env", "OTHER_TOKEN"], {
      env: { OTHER_TOKEN: "x" },
    });
    expect(out).toContain("Keys stand in ./toolway.json as they are: env.API_KEY.");
    expect(out).not.toContain("canary");
    expect(json().mcpServers.a.env).toEqual({ API_KEY: "canary", OTHER_TOKEN: "${OTHER_TOKEN}" });
    const unset = await run(["add", "b", "prog", "--env", "B_TOKEN"]);
    expect(unset).toMatchObject({ code: 1, err: expect.stringContaining("B_TOKEN is not set") });
    expect((await run(["add", "b", "prog", "--env", "B_TOKEN", "--no-check"])).code).toBe(0);
  });

  it("says how to keep the key of a header out, and that a gateway needs the variables, too [told-truly]", async () => {
    fakeGateway();
    const keyed = await run(["add", "a", "https://a.example/", "--header", "Authorization: Bearer s3cretkey9x7Q"]);
    expect(keyed.out).toContain("headers.Authorization. Keep it out of git, or let ${VAR} stand for them: --header ");
    expect(keyed.out).not.toContain("--env");
    const { out } = await run(["add", "b", "prog", "--env", "B_TOKEN", "--no-check"]);
    expect(out).toContain(
      "starts the server by itself if B_TOKEN is set there; else `toolway status` shows it as misc",
    );
  });

  it.each([
    [["add", "a", "prog", "--config", "x.json"], "--config"],
    [["add", "a", "prog", "--config=x.json"], "--config"],
    [["add", "a", "prog", "--", "--no-check"], "--no-check"],
  ])("says that an option behind the command is the server's: %s [told-why]", async (line, flag) => {
    const { code, err } = await run(line);
    expect(code).toBe(0);
    expect(err).toBe(
      `${flag} after the command is an argument of the server; if it was meant for toolway, put it before.\n`,
    );
    expect(json().mcpServers.a.args).toEqual(line.slice(3));
  });

  it("means relative paths from where it is typed [config-kept]", async () => {
    mkdirSync(join(folder, "work"));
    writeFileSync(join(folder, "work/server.js"), "");
    const there = { cwd: join(folder, "work") };
    const first = await run(["add", "--config", "../team.json", "a", "./run", "x"], there);
    expect(first.out).toContain(`toolway serve --config ${join(folder, "team.json")}`);
    await run(["add", "--config", "../team.json", "b", "node", "server.js"], there);
    await run(["add", "--config", "here.json", "c", "./run", "server.js"], there);
    expect(json("team.json").mcpServers).toEqual({
      a: { command: join(folder, "work/run"), args: ["x"] },
      b: { command: "node", args: ["server.js"], cwd: join(folder, "work") },
    });
    expect(json("work/here.json").mcpServers).toEqual({ c: { command: "./run", args: ["server.js"] } });
  });

  it.each([
    [["add", "a"], "<command...> is missing"],
    [["add"], "<name> and <command...> are missing"],
    [["add", "a", "npx -y x"], "Without the quotes: `toolway add a npx -y x`"],
    [["add", "a", "https://x/", "more"], "An address takes no arguments."],
    [["add", "a", "https://x/", "--env", "A=b"], "--env is for programs."],
    [["add", "a", "x", "--header", "A: b"], "--header is for addresses."],
    [["add", "a", "https://x/", "--header", "nonsense"], "--header takes 'NAME: VALUE'."],
    [["add", "a", "https://x/", "--header", "B@d: x"], "expected the name of a header"],
    [["add", "a", "toolway", "stdio"], "This is Toolway itself."],
    [["add", "..", "x"], "cannot be part of an address"],
    [["add", "a", "x", "--env", "1=2"], "--env takes NAME=VALUE."],
  ])("refuses %j, and says what is right", async (line, message) => {
    const { code, err } = await run(line);
    expect(err).toContain(message);
    expect(code).toBe(2);
    expect(existsSync(join(folder, "toolway.json"))).toBe(false);
  });

  it("adds what a machine shares in a mailbox, by the address of its broker [config-kept]", async () => {
    const token = ["--token", "${WORKER_TOKEN}"];
    const { code, err } = await run(["add", "studio", "wss://broker.example", ...token], {
      env: { WORKER_TOKEN: "tw_x" },
    });
    expect([code, err]).toEqual([0, ""]);
    const entries = () => (JSON.parse(text()) as { mcpServers: object }).mcpServers;
    const studio = { mailbox: "studio", broker: "wss://broker.example", token: "${WORKER_TOKEN}" };
    expect(entries()).toEqual({ studio });
    expect((await run(["add", "far", "ws://127.0.0.1:7440", "--mailbox", "attic", "--no-check"])).code).toBe(0);
    expect(entries()).toEqual({ studio, far: { mailbox: "attic", broker: "ws://127.0.0.1:7440" } });
    const wrong = await run(["add", "x", "https://docs.example/mcp", "--mailbox", "attic"]);
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("go with the address of a broker")]);
  });

  it("refuses a name that is taken, also by an edit during the check", async () => {
    writeFileSync(join(folder, "toolway.json"), '{ "mcpServers": {} }');
    const editing = async () => {
      writeFileSync(join(folder, "toolway.json"), FILE);
      return probe({});
    };
    fakeGateway({}, { probe: editing }, false);
    const late = await run(["add", "gh", "x"]);
    expect(late).toMatchObject({ code: 1, err: expect.stringContaining("has a server gh already") });
    expect(text()).toBe(FILE);
    expect((await run(["add", "new", "x"])).code).toBe(0);
    expect(text()).toContain("// what the team uses");
  });
});

it("names for completion come from the config and from the clients, without a gateway", async () => {
  expect((await run(["__complete", "entry", "--", "remove"])).out).toBe("docs\nfiles\ngh\n");
  expect((await run(["__complete", "entry", "--", "remove", "--config", "none.json"])).out).toBe("");
  writeFileSync(join(folder, ".mcp.json"), '{"mcpServers":{"a":{"command":"a"},"with blank":{"command":"b"}}}');
  expect((await run(["__complete", "importable"])).out).toBe("a\n");
});
