// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the clients

import { describe, expect, it } from "vitest";
import { CLIENT_WORDS, clientNamed, planForCommand } from "./clients.js";
import type { AgentPlan, RunFacts } from "./plan.js";

const URL = "http://127.0.0.1:7420/mcp";

function facts(files: Readonly<Record<string, string>> = {}, more: Partial<RunFacts> = {}): RunFacts {
  return {
    url: URL,
    folder: "/state/runs/r1",
    home: "/home/a",
    cwd: "/work",
    platform: "linux",
    env: {},
    args: [],
    only: false,
    approve: false,
    isPiped: false,
    read: (path) => files[path],
    ...more,
  };
}

function plan(word: string, files: Readonly<Record<string, string>> = {}, more: Partial<RunFacts> = {}): AgentPlan {
  const client = clientNamed(word);
  if (client === undefined) throw new Error(`There is no client ${word}.`);
  return client.plan(facts(files, more));
}

const json = (value: unknown) => JSON.stringify(value);

describe("what every client is given", () => {
  it.each(CLIENT_WORDS)(
    "names the secret's variable and holds no secret, beside what the user gave: %s [run-secret]",
    (word) => {
      const { args, env, files } = plan(word, {}, { args: ["-m", "x"] });
      expect(args.slice(-2)).toEqual(["-m", "x"]);
      const all = json([args, env, files]);
      expect(all).toContain("TOOLWAY_SESSION_TOKEN");
      expect(all).toContain(URL);
    },
  );

  it.each(CLIENT_WORDS)("loosens no approval by itself: %s [run-clean]", (word) => {
    const { args, env, files } = plan(word);
    expect(json([args, env, files])).not.toMatch(/allowed-?tools|allow-tool|approv|trust|permission|yolo/i);
    const loosened = plan(word, {}, { approve: true });
    expect(json([loosened.args, loosened.env, loosened.files])).toMatch(
      /allowedTools|allow-tool|approve|trust|permission/,
    );
  });

  it.each([
    ["claude", ["-p", "hi"]],
    ["codex", ["exec", "hi"]],
    ["gemini", ["-p", "hi"]],
    ["copilot", ["-p", "hi"]],
    ["qwen", ["-p", "hi"]],
  ])("says beforehand what a run will refuse in which nobody can be asked: %s [run-clean]", (word, args) => {
    const files = { "/home/a/.gemini/trustedFolders.json": json({ "/work": "TRUST_FOLDER" }) };
    expect(plan(word, files, { args }).notes.join()).toMatch(/will refuse calls .*--approve/);
    expect(plan(word, files, { args, approve: true }).notes).toEqual([]);
    expect(plan(word).notes).toEqual([]);
  });

  it.each([
    ["claude", "/home/a/.claude.json", json({ mcpServers: { toolway: { command: "x" } } })],
    ["claude", "/home/a/.claude.json", json({ projects: { "/work": { mcpServers: { toolway: { command: "x" } } } } })],
    ["codex", "/home/a/.codex/config.toml", '[mcp_servers.toolway]\ncommand = "x"\n'],
    ["codex", "/home/a/.codex/config.toml", '[mcp_servers.toolway]\nurl = "u"\nhttp_headers = { A = "b" }\n'],
    ["codex", "/home/a/.codex/work.config.toml", '[mcp_servers.toolway]\ncommand = "x"\n', ["-p", "work"]],
    ["gemini", "/home/a/.gemini/settings.json", json({ mcpServers: { toolway: { command: "x" } } })],
    ["gemini", "/work/.gemini/settings.json", json({ mcpServers: { toolway: { httpUrl: "https://other" } } })],
    [
      "opencode",
      "/home/a/.config/opencode/opencode.json",
      json({ mcp: { toolway: { type: "local", command: ["x"] } } }),
    ],
    [
      "opencode",
      "/work/opencode.json",
      json({ mcp: { toolway: { type: "remote", url: "u", headers: { "X-A": "b" } } } }),
    ],
    ["copilot", "/home/a/.copilot/mcp-config.json", json({ mcpServers: { toolway: { command: "x" } } })],
    ["qwen", "/home/a/.qwen/settings.json", json({ mcpServers: { toolway: { command: "x" } } })],
  ])(
    "is called toolway_run where the user's own entry has another form, and says so: %s %s [run-clean]",
    (word: string, path: string, text: string, given: string[] = []) => {
      const { args, env, files, notes } = plan(word, { [path]: text }, { args: given });
      expect(json([args, env, files])).toContain("toolway_run");
      expect(notes.join()).toContain('in this run Toolway\'s is "toolway_run"');
    },
  );

  it("takes the next name that is free where toolway_run is taken too [run-clean]", () => {
    const own = { toolway: { command: "x" }, toolway_run: { command: "y" }, toolway_run_2: { command: "z" } };
    const { args, notes } = plan("claude", { "/home/a/.claude.json": json({ mcpServers: own }) });
    expect(json(args)).toContain("toolway_run_3");
    expect(notes.join()).toContain('in this run Toolway\'s is "toolway_run_3"');
  });

  it("is called toolway where the user's entry is of the same form, or belongs to another project [run-clean]", () => {
    const same = json({
      mcpServers: { toolway: { type: "http", url: "http://127.0.0.1:1/mcp" } },
      projects: { "/other": { mcpServers: { toolway: { command: "x" } } } },
    });
    expect(plan("claude", { "/home/a/.claude.json": same }).notes).toEqual([]);
  });
});

it("Claude Code takes its entry by the form with an equals sign, before the user's own arguments [run-clean]", () => {
  const { args } = plan("claude", {}, { args: ["-p", "hi"], only: true, approve: true });
  const [first = "", ...rest] = args;
  expect(JSON.parse(first.replace("--mcp-config=", ""))).toEqual({
    mcpServers: { toolway: { type: "http", url: URL, headers: { Authorization: "Bearer ${TOOLWAY_SESSION_TOKEN}" } } },
  });
  expect(rest).toEqual(["--strict-mcp-config", "--allowedTools=mcp__toolway", "-p", "hi"]);
});

describe("Codex", () => {
  it("gets every key that could be merged wrongly, and is told that it needs the server [run-clean]", () => {
    const { args } = plan("codex", {}, { args: ["exec", "hi"], approve: true });
    expect(args.filter((word) => word !== "-c")).toEqual([
      `mcp_servers.toolway.url="${URL}"`,
      'mcp_servers.toolway.bearer_token_env_var="TOOLWAY_SESSION_TOKEN"',
      "mcp_servers.toolway.enabled=true",
      "mcp_servers.toolway.required=true",
      "mcp_servers.toolway.startup_timeout_sec=30",
      'mcp_servers.toolway.default_tools_approval_mode="approve"',
      'shell_environment_policy.exclude=["TOOLWAY_SESSION_TOKEN"]',
      "exec",
      "hi",
    ]);
  });

  it("hides the secret from its shell beside what the user hides already [run-secret]", () => {
    const config = '[shell_environment_policy]\nexclude = ["AWS_*"]\n\n[mcp_servers.files]\ncommand = "x"\n';
    const given = (args: string[]) =>
      plan("codex", { "/home/a/.codex/config.toml": config }, { args, only: true }).args;
    const ours = (...own: string[]) => `shell_environment_policy.exclude=${json([...own, "TOOLWAY_SESSION_TOKEN"])}`;
    expect(given(["exec", "hi"])).toEqual(expect.arrayContaining([ours("AWS_*"), "mcp_servers.files.enabled=false"]));
    // The last list counts, in whatever form they are given, and ours is that one.
    for (const said of [
      ["-c", 'shell_environment_policy.exclude=["MINE"]'],
      ['--config=shell_environment_policy.exclude = ["MINE"]'],
      ["-c", 'shell_environment_policy={ inherit = "all", exclude = ["MINE"] }'],
    ]) {
      expect(given(["exec", ...said, "hi"]).slice(-said.length - 4)).toEqual([
        "exec",
        ...said,
        "-c",
        ours("MINE", "AWS_*"),
        "hi",
      ]);
    }
    const twice = ["-c", 'shell_environment_policy.exclude=["A"]', "-c", 'shell_environment_policy.exclude=["B"]'];
    expect(given(twice).at(-1)).toBe(ours("A", "B", "AWS_*"));
  });

  it.each([[["-p", "work"]], [["--profile=work"]], [["-pwork", "exec"]]])(
    "hides from its shell what any file of the user's hides, since ours is the one list that counts: %j [run-secret]",
    (args) => {
      const excluding = (...names: string[]) => `[shell_environment_policy]\nexclude = ${json(names)}\n`;
      const files = {
        "/etc/codex/config.toml": excluding("MACHINE"),
        "/codex/config.toml": excluding("USER"),
        "/codex/work.config.toml": excluding("PROFILE", "USER"),
        "/codex/other.config.toml": excluding("OTHER"),
        "/work/.codex/config.toml": excluding("PROJECT"),
        "/work/deep/.codex/config.toml": excluding("DEEP"),
      };
      const { args: all } = plan("codex", files, { args, cwd: "/work/deep", env: { CODEX_HOME: "/codex" } });
      const list = all.find((word) => word.startsWith("shell_environment_policy.exclude="))?.split("=")[1] ?? "";
      expect(new Set(JSON.parse(list))).toEqual(
        new Set(["MACHINE", "USER", "PROFILE", "PROJECT", "DEEP", "TOOLWAY_SESSION_TOKEN"]),
      );
    },
  );

  it("an entry of its own that only one of several files has in another form keeps the name too [run-clean]", () => {
    const files = {
      "/work/.codex/config.toml": '[mcp_servers.toolway]\nurl = "u"\n',
      "/home/a/.codex/config.toml": '[mcp_servers.toolway]\nhttp_headers = { A = "b" }\n',
    };
    expect(json(plan("codex", files).args)).toContain("mcp_servers.toolway_run.url");
  });
});

it("opencode gets its entry by the variable alone, merged with what the user has in it [run-clean]", () => {
  const before = { theme: "x", mcp: { mine: { type: "local", command: ["m"] } } };
  const files = { "/work/opencode.json": json({ mcp: { theirs: { type: "remote", url: "u" } } }) };
  const env = { OPENCODE_CONFIG_CONTENT: json(before) };
  const content = (only: boolean) =>
    JSON.parse(plan("opencode", files, { env, only }).env["OPENCODE_CONFIG_CONTENT"] ?? "");
  const entry = {
    type: "remote",
    url: URL,
    enabled: true,
    oauth: false,
    headers: { Authorization: "Bearer {env:TOOLWAY_SESSION_TOKEN}" },
  };
  expect(content(false)).toEqual({ ...before, mcp: { ...before.mcp, toolway: entry } });
  expect(content(true).mcp).toEqual({
    mine: { type: "local", command: ["m"], enabled: false },
    theirs: { type: "remote", url: "u", enabled: false },
    toolway: entry,
  });
});

it.each(["{", "not json", "7 8"])(
  "opencode is given nothing where the user's variable cannot be read, and it is said what to do: %s [run-clean]",
  (text) => {
    const { env, mistake } = plan("opencode", {}, { env: { OPENCODE_CONFIG_CONTENT: text } });
    expect(env).toEqual({});
    expect(mistake?.message).toContain("OPENCODE_CONFIG_CONTENT is set and is no JSON");
    expect(mistake?.hint).toContain("env -u OPENCODE_CONFIG_CONTENT");
  },
);

it("Gemini gets a home of its own, with the user's settings and the secret hidden from its shell [run-secret]", () => {
  const settings = {
    theme: "x",
    mcpServers: { mine: { command: "m" } },
    security: { auth: { a: 1 }, environmentVariableRedaction: { blocked: ["MINE"] } },
  };
  const { env, files, home, args } = plan(
    "gemini",
    { "/home/a/.gemini/settings.json": `// mine\n${json(settings)}` },
    { args: ["--allowed-mcp-server-names", "mine"] },
  );
  expect(env).toEqual({ GEMINI_CLI_HOME: "/state/runs/r1/gemini" });
  expect(home).toEqual({ from: "/home/a/.gemini", to: "/state/runs/r1/gemini/.gemini", entry: "toolway" });
  expect(JSON.parse(files[0]?.text ?? "")).toEqual({
    theme: "x",
    mcpServers: {
      mine: { command: "m" },
      toolway: { httpUrl: URL, headers: { Authorization: "Bearer ${TOOLWAY_SESSION_TOKEN}" } },
    },
    security: {
      auth: { a: 1 },
      environmentVariableRedaction: { enabled: true, blocked: ["MINE", "TOOLWAY_SESSION_TOKEN"] },
    },
  });
  expect(args).toEqual(["--allowed-mcp-server-names=toolway", "--allowed-mcp-server-names", "mine"]);
});

describe("Gemini CLI without a terminal", () => {
  const TRUSTED = "/home/a/.gemini/trustedFolders.json";
  const said = (files: Readonly<Record<string, string>>, more: Partial<RunFacts> = {}) =>
    plan("gemini", files, { args: ["-p", "hi"], cwd: "/work/deep", approve: true, ...more }).notes.join();
  const told = (folders: Record<string, string>) => ({ [TRUSTED]: json(folders) });
  const settings = (security: object) => ({ "/home/a/.gemini/settings.json": json({ security }) });

  it.each<[string, Record<string, string>, Partial<RunFacts>?]>([
    ["nothing is known of it", {}],
    ["input or output is a pipe", {}, { args: [], isPiped: true }],
    ["other folders are trusted", told({ "/work/deeper": "TRUST_FOLDER", "/wor": "TRUST_FOLDER" })],
    ["a folder within it is trusted", told({ "/work/deep/er": "TRUST_FOLDER" })],
    ["it is distrusted within a trusted one", told({ "/work/deep": "DO_NOT_TRUST", "/work": "TRUST_FOLDER" })],
    ["the variable says another word", {}, { env: { GEMINI_CLI_TRUST_WORKSPACE: "1" } }],
    ["the variable says no", told({ "/work": "TRUST_FOLDER" }), { env: { GEMINI_CLI_TRUST_WORKSPACE: "false" } }],
    [
      "the project itself says that no folder needs trust",
      { "/work/deep/.gemini/settings.json": '{"security":{"folderTrust":{"enabled":false}}}' },
    ],
    ["it is let call every tool", {}, { args: ["--yolo", "-p", "hi"] }],
  ])("is said beforehand to end in a folder that it does not trust: %s [run-clean]", (_, files, more) => {
    expect(said(files, more)).toMatch(/^Gemini CLI will end at once in this run, with exit code 55: .*--skip-trust/);
  });

  it.each<[string, Record<string, string>, Partial<RunFacts>?]>([
    ["there is one, which asks", {}, { args: [] }],
    ["it is trusted", told({ "/work/deep": "TRUST_FOLDER" })],
    ["one around it is trusted", told({ "/work": "TRUST_FOLDER", "/": "DO_NOT_TRUST" })],
    ["the parent of one beside it is trusted", told({ "/work/deep/x": "TRUST_PARENT" })],
    ["everything is trusted", told({ "/": "TRUST_FOLDER" })],
    ["the line says so", {}, { args: ["--skip-trust", "-p", "hi"] }],
    ["the variable says so", {}, { env: { GEMINI_CLI_TRUST_WORKSPACE: "true" } }],
    ["folders need no trust", settings({ folderTrust: { enabled: false } })],
    [
      "another file says so",
      { "/mine.json": json({ "/work": "TRUST_FOLDER" }) },
      { env: { GEMINI_CLI_TRUSTED_FOLDERS_PATH: "/mine.json" } },
    ],
    [
      "the file in its own home says so",
      { "/mine/.gemini/trustedFolders.json": json({ "/work": "TRUST_FOLDER" }) },
      { env: { GEMINI_CLI_HOME: "/mine" } },
    ],
  ])("is not said to end where it works: %s [run-clean]", (_, files, more) => {
    expect(said(files, more)).toBe("");
  });
});

it("Qwen Code gets a file of system settings, with those that the machine has [run-clean]", () => {
  const { env, files } = plan("qwen", { "/etc/qwen-code/settings.json": json({ a: 1, mcpServers: { m: {} } }) });
  expect(env).toEqual({ QWEN_CODE_SYSTEM_SETTINGS_PATH: "/state/runs/r1/qwen-settings.json" });
  expect(JSON.parse(files[0]?.text ?? "")).toMatchObject({ a: 1, mcpServers: { m: {}, toolway: { httpUrl: URL } } });
});

it.each([
  ["gemini", "/home/a/.gemini/settings.json"],
  ["qwen", "/etc/qwen-code/settings.json"],
])(
  "%s is said to go without settings that cannot be read, which its own complaint would not reach [told-why]",
  (word, path) => {
    const said = (text: string) => plan(word, { [path]: text }).notes.join("\n");
    expect(said('{\n  "a": ')).toContain(`${path} cannot be read (line 2: not valid JSON: expected a value): `);
    for (const text of ["", "{}", '{ "a": 1, "a": 2 }', '// mine\n{ "a": 1, }'])
      expect(said(text)).not.toContain("cannot be read");
  },
);

it("any other command gets variables and a file of the usual form [run-own]", () => {
  const { env, files, args, notes } = planForCommand(facts({}, { args: ["x"], only: true }));
  expect(args).toEqual(["x"]);
  expect(env).toEqual({ TOOLWAY_URL: URL, TOOLWAY_MCP_CONFIG: "/state/runs/r1/mcp.json" });
  expect(JSON.parse(files[0]?.text ?? "")).toEqual({
    mcpServers: { toolway: { type: "http", url: URL, headers: { Authorization: "Bearer {secret}" } } },
  });
  expect(notes.join()).toContain("--only");
});

describe("the client's own servers, with --only", () => {
  it("are not in the home of Gemini, and those of a project are not let in by name [run-clean]", () => {
    const own = { theme: "x", mcpServers: { mine: { command: "m" } } };
    const project = { mcpServers: { theirs: { command: "t" } } };
    const files = { "/home/a/.gemini/settings.json": json(own), "/work/.gemini/settings.json": json(project) };
    const { args, files: written } = plan("gemini", files, { only: true, args: ["-p", "hi"] });
    expect(args).toEqual(["--allowed-mcp-server-names=toolway", "-p", "hi"]);
    const settings = JSON.parse(written[0]?.text ?? "");
    expect([settings.theme, Object.keys(settings.mcpServers)]).toEqual(["x", ["toolway"]]);
  });

  it("are switched off for Codex, those of the folders around and of the machine too, with what lets it start where it does not read them [run-clean]", () => {
    const files = {
      "/etc/codex/config.toml": '[mcp_servers.all]\ncommand = "a"\n',
      "/home/a/.codex/config.toml": '[mcp_servers.mine]\nurl = "https://x/?key=canary"\n',
      "/work/.codex/config.toml": '[mcp_servers.theirs]\ncommand = "t"\n',
    };
    const { args } = plan("codex", files, { only: true, cwd: "/work/deep/er" });
    const off = args.filter((word) => /^mcp_servers\.(?!toolway\.)/.test(word)).sort((a, b) => a.localeCompare(b));
    expect(off).toEqual([
      'mcp_servers.all.command="false"',
      "mcp_servers.all.enabled=false",
      "mcp_servers.mine.enabled=false",
      'mcp_servers.mine.url="http://127.0.0.1"',
      'mcp_servers.theirs.command="false"',
      "mcp_servers.theirs.enabled=false",
    ]);
  });

  it("are named where Codex cannot switch them off, since their names do not fit on its line [run-clean]", () => {
    const files = {
      "/home/a/.codex/config.toml":
        '[mcp_servers."a.b"]\ncommand = "x"\n[mcp_servers."my files"]\nurl = "u"\n[mcp_servers.plain]\ncommand = "x"\n',
    };
    const { args, notes } = plan("codex", files, { only: true });
    expect(args.filter((word) => /^mcp_servers\.(?!toolway\.)/.test(word))).toEqual([
      'mcp_servers.plain.command="false"',
      "mcp_servers.plain.enabled=false",
    ]);
    expect(notes).toEqual([expect.stringMatching(/--only cannot hide .*: "a\.b", "my files"\. .*"enabled" to false/)]);
    expect(plan("codex", files).notes).toEqual([]);
    expect(
      plan("codex", { "/home/a/.codex/config.toml": '[mcp_servers.plain]\ncommand = "x"\n' }, { only: true }).notes,
    ).toEqual([]);
  });

  it("are switched off by name for Copilot, which brings some itself [run-clean]", () => {
    const own = { mcpServers: { mine: { command: "m" }, toolway: { command: "x" } } };
    const { args } = plan("copilot", { "/home/a/.copilot/mcp-config.json": json(own) }, { only: true });
    expect(args.slice(2)).toEqual([
      "--disable-builtin-mcps",
      "--disable-mcp-server=mine",
      "--disable-mcp-server=toolway",
    ]);
    expect(args[1]).toContain("toolway_run");
  });

  it("are not let in by name for Qwen Code, those of the machine's own settings included [run-clean]", () => {
    const files = { "/etc/qwen-code/settings.json": json({ mcpServers: { m: { command: "m" } } }) };
    expect(plan("qwen", files, { only: true, args: ["x"] }).args).toEqual(["--allowed-mcp-server-names=toolway", "x"]);
  });

  it("are switched off for opencode, and what they are given is not repeated where the agent's shell sees it [run-secret]", () => {
    const mcp = {
      theirs: { type: "remote", url: "u", headers: { Authorization: "canary" } },
      local: { type: "local", command: ["x"], environment: { KEY: "canary" } },
    };
    const around = { mcp: { around: { type: "local", command: ["y"] } } };
    const files = { "/home/a/.config/opencode/opencode.json": json({ mcp }), "/work/opencode.json": json(around) };
    const { env } = plan("opencode", files, { only: true, cwd: "/work/deep" });
    const content = env["OPENCODE_CONFIG_CONTENT"] ?? "";
    expect(content).not.toContain("canary");
    expect(JSON.parse(content).mcp).toMatchObject({
      theirs: { type: "remote", url: "u", enabled: false },
      local: { type: "local", command: ["x"], enabled: false },
      around: { type: "local", command: ["y"], enabled: false },
      toolway: { enabled: true },
    });
  });
});

it.each([
  [undefined, { "toolway_*": "allow" }],
  ["ask", { "*": "ask", "toolway_*": "allow" }],
  [{ bash: "deny" }, { bash: "deny", "toolway_*": "allow" }],
])("--approve is beside what opencode is told of permissions already: %j [run-clean]", (permission, expected) => {
  const env = permission === undefined ? {} : { OPENCODE_CONFIG_CONTENT: json({ permission }) };
  const content = (approve: boolean) =>
    JSON.parse(plan("opencode", {}, { env, approve }).env["OPENCODE_CONFIG_CONTENT"] ?? "");
  expect(content(true).permission).toEqual(expected);
  expect(content(false).permission).toEqual(permission);
});

describe("--approve stands behind what opencode's files say of permissions, where it counts", () => {
  const file = "/home/a/.config/opencode/opencode.json";
  /** As opencode does: files by rank, keys keep their place, and the last pattern that fits counts. */
  const answer = (permission: Record<string, unknown>, tool: string): unknown => {
    const env = plan("opencode", { [file]: json({ permission }) }, { approve: true }).env;
    const merged = { ...permission, ...JSON.parse(env["OPENCODE_CONFIG_CONTENT"] ?? "").permission };
    const fits = (pattern: string) => new RegExp(`^${pattern.replace(/\*+/g, ".*").replaceAll("?", ".")}$`).test(tool);
    return Object.entries(merged).findLast(([pattern]) => fits(pattern))?.[1];
  };

  it.each<[Record<string, unknown>, Record<string, string>]>([
    [
      { "toolway_*": "ask", "*": "ask" },
      { toolway_x: "allow", bash: "ask", other_x: "ask" },
    ],
    [
      { "toolway_*": "deny", "toolway_**": "ask", "*": "deny" },
      { toolway_x: "allow", bash: "deny" },
    ],
    [
      { "toolway_*": "ask", toolway_rm: "deny", "toolway_db_*": "deny" },
      { toolway_rm: "deny", toolway_db_x: "deny", toolway_x: "allow" },
    ],
    [
      { toolway_rm: "deny", toolway_x: "ask", "*": "ask" },
      { toolway_rm: "allow", toolway_x: "allow" },
    ],
  ])("%j [run-clean]", (permission, expected) => {
    for (const [tool, wanted] of Object.entries(expected)) expect(answer(permission, tool), tool).toBe(wanted);
  });
});

it("says of opencode beforehand that it refuses calls where its permissions want somebody to be asked [run-clean]", () => {
  const notes = (permission: unknown, more: Partial<RunFacts>) =>
    plan("opencode", { "/home/a/.config/opencode/opencode.json": json({ permission }) }, more).notes.join();
  const run = { args: ["run", "hi"] };
  const refusing = [
    "ask",
    { "*": "ask" },
    { "*": "deny" },
    { "toolway_*": "ask" },
    { "*": "allow", "tool*": "deny" },
    { "toolway_github_*": { "*": "ask" } },
    { "toolway_*": "allow", "*": "ask" },
  ];
  for (const asking of refusing) {
    expect(notes(asking, run)).toMatch(/will refuse calls .*--approve/);
    expect(notes(asking, { ...run, approve: true })).toBe("");
    expect(notes(asking, {})).toBe("");
  }
  for (const silent of [
    { bash: "ask" },
    { "*": "ask", "toolway_*": "allow" },
    { toolway_x: "deny", "toolway*": "allow" },
  ]) {
    expect(notes(silent, run)).toBe("");
  }
  // A stronger file has the last word.
  const files = {
    "/home/a/.config/opencode/opencode.json": json({ permission: "ask" }),
    "/opencode.json": json({ permission: { "toolway_*": "deny" } }),
    "/work/opencode.json": json({ permission: { "toolway_*": "allow" } }),
  };
  expect(plan("opencode", files, run).notes).toEqual([]);
});

describe("Claude Code without a terminal", () => {
  const said = (args: string[], files: Readonly<Record<string, string>> = {}, env = {}) =>
    plan("claude", files, { args: ["-p", "hi", ...args], env }).notes.join();
  const allowing = (...allow: string[]) => json({ permissions: { allow } });

  it.each([
    [["--dangerously-skip-permissions"]],
    [["--permission-mode", "bypassPermissions"]],
    [["--permission-mode=bypassPermissions"]],
    [["--allowedTools", "Bash", "mcp__toolway"]],
    [["--allowed-tools=Bash,mcp__toolway__github__get_issue"]],
    [["--settings", allowing("mcp__toolway")]],
  ])("is not said to refuse where the line allows the calls: %j [run-clean]", (args) => {
    expect(said(args)).toBe("");
  });

  it.each([
    "/home/a/.claude/settings.json",
    "/work/.claude/settings.json",
    "/work/.claude/settings.local.json",
    "/etc/claude-code/managed-settings.json",
  ])("is not said to refuse where settings allow the calls: %s [run-clean]", (path) => {
    for (const rule of ["mcp__toolway", "mcp__toolway__*"]) expect(said([], { [path]: allowing(rule) })).toBe("");
    expect(said([], { [path]: json({ permissions: { defaultMode: "bypassPermissions" } }) })).toBe("");
    expect(said(["--settings", "s.json"], { "/work/s.json": allowing("mcp__toolway") })).toBe("");
    expect(said([], { "/mine/settings.json": allowing("mcp__toolway") }, { CLAUDE_CONFIG_DIR: "/mine" })).toBe("");
  });

  it("is said to refuse where what is allowed is something else [run-clean]", () => {
    const files = { "/home/a/.claude/settings.json": allowing("Bash", "mcp__toolwayish", "mcp__*") };
    expect(said([], files)).toContain("will refuse calls");
    expect(said(["--allowedTools", "Bash"])).toContain("will refuse calls");
    expect(said(["--permission-mode", "acceptEdits"])).toContain("will refuse calls");
    const managed = json({ permissions: { disableBypassPermissionsMode: "disable" } });
    expect(said(["--dangerously-skip-permissions"], { "/etc/claude-code/managed-settings.json": managed })).toContain(
      "will refuse calls",
    );
  });
});
