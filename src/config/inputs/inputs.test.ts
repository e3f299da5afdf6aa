// What `${input:…}` stands for, and where a person's answers are kept.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { parseConfig } from "../load.js";
import { answersIn, keepAnswer } from "./answers.js";
import { inputVariable } from "./inputs.js";

const folder = mkdtempSync(join(tmpdir(), "toolway-inputs-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const inputs = [
  { id: "api-key", type: "promptString", password: true, description: "API key", default: "not-used" },
  { id: "region", type: "pickString", options: ["eu", { label: "America", value: "us" }], default: "eu" },
  { id: "project", type: "promptString", description: "Project" },
];

function read(value: string, env: Record<string, string> = {}, stateDir?: string) {
  const servers = { a: { command: "x", env: { A: value } }, b: { command: "y" } };
  const text = JSON.stringify({ inputs, servers });
  return parseConfig(text, {
    path: "/p/.vscode/mcp.json",
    env,
    home: "/h",
    wrongEntries: "keep",
    answers: stateDir === undefined ? undefined : () => answersIn(stateDir),
  });
}
const valueWith = (...args: Parameters<typeof read>) => {
  const target = read(...args).servers[0]?.target;
  return target?.kind === "stdio" ? target.env["A"] : undefined;
};

describe("an input", () => {
  it("is what its variable says, which is named after it, and that is kept secret", () => {
    expect(inputVariable("api-key")).toBe("INPUT_API_KEY");
    const env = { INPUT_API_KEY: "k3y", INPUT_REGION: "us" };
    expect(valueWith("Bearer ${input:api-key}", env)).toBe("Bearer k3y");
    expect(valueWith("${input:region}", env)).toBe("us");
    expect(read("${input:api-key}", env).servers[0]?.target.secrets).toEqual([{ name: "password", value: "k3y" }]);
  });

  it("is its own default where nobody says anything, but not the default of a password", () => {
    expect(valueWith("${input:region}")).toBe("eu");
    const config = read("${input:api-key}");
    expect(config.servers.map(({ name }) => name)).toEqual(["b"]);
    expect(JSON.stringify(config.misconfigured)).not.toContain("not-used");
  });

  it("that nobody answers leaves its server alone misconfigured, and names the variable [bad-entry-alone]", () => {
    const config = read("${input:project}");
    expect(config.servers.map(({ name }) => name)).toEqual(["b"]);
    expect(config.misconfigured[0]?.why).toBe("INPUT_PROJECT is not set (env.A)");
    expect(config.misconfigured[0]?.forOperator).toContain("run `toolway doctor` on a terminal");
    expect(config.unanswered).toEqual([
      {
        id: "project",
        variable: "INPUT_PROJECT",
        description: "Project",
        isPassword: false,
        fallback: undefined,
        options: [],
      },
    ]);
    // Of one that is not declared nothing is known: it may be a secret.
    expect(read("${input:other}").unanswered).toMatchObject([{ id: "other", isPassword: true }]);
  });

  it("is the answer that was kept, unless its variable says otherwise", () => {
    const stateDir = join(folder, "kept");
    keepAnswer(stateDir, "api-key", "typed");
    keepAnswer(stateDir, "region", "us");
    expect(valueWith("${input:api-key}", {}, stateDir)).toBe("typed");
    expect(valueWith("${input:region}", {}, stateDir)).toBe("us");
    expect(valueWith("${input:api-key}", { INPUT_API_KEY: "set" }, stateDir)).toBe("set");
    expect(read("${input:api-key}", {}, stateDir).servers[0]?.target.secrets).toEqual([
      { name: "password", value: "typed" },
    ]);
  });

  it("may be declared in any way: what cannot be read is passed over", () => {
    for (const wrong of [{}, "x", [null, 7, { id: 1 }, { id: "project", default: {}, options: [{}, 1] }]]) {
      const text = JSON.stringify({ inputs: wrong, servers: { a: { command: "${input:project}" } } });
      const config = parseConfig(text, { path: "/p/mcp.json", env: { INPUT_PROJECT: "p" }, home: "/h" });
      expect(config.servers[0]?.target).toMatchObject({ command: "p" });
    }
  });
});

describe("kept answers", () => {
  it("are sealed, for their own input alone, in a file that nobody else reads", () => {
    const stateDir = join(folder, "sealed");
    keepAnswer(stateDir, "a", "s3cret");
    keepAnswer(stateDir, "b", "other");
    keepAnswer(stateDir, "a", "s3cret-2");
    expect([...answersIn(stateDir)]).toEqual([
      ["b", "other"],
      ["a", "s3cret-2"],
    ]);
    const path = join(stateDir, "inputs.json");
    expect(readFileSync(path, "utf8")).not.toContain("s3cret");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(stateDir).filter((name) => name.startsWith("inputs"))).toEqual(["inputs.json"]);
    // Under another name it does not open.
    const { a } = JSON.parse(readFileSync(path, "utf8")) as { a: string };
    writeFileSync(path, JSON.stringify({ b: a, c: 7 }));
    expect(answersIn(stateDir).size).toBe(0);
  });

  it("that are too long are refused, and what is no file of ours counts as none", () => {
    const stateDir = join(folder, "odd");
    expect(() => keepAnswer(stateDir, "a", "x".repeat(10_000))).toThrow();
    expect(answersIn(stateDir).size).toBe(0);
    writeFileSync(join(stateDir, "inputs.json"), "not json");
    expect(answersIn(stateDir).size).toBe(0);
    mkdirSync(join(folder, "none"));
    expect(answersIn(join(folder, "none")).size).toBe(0);
    expect(readdirSync(join(folder, "none"))).toEqual([]);
  });
});
