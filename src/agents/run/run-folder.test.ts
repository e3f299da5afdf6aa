import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { gemini } from "./gemini.js";
import { endRunFolder, makeRunFolder } from "./run-folder.js";
import { settingsGivenBack } from "./settings-changes.js";

let root: string;
let own: string;
let folder: string;
let home: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "toolway-home-"));
  own = join(root, "user", ".gemini");
  folder = join(root, "state", "runs", "0123456789ab");
  home = join(folder, "gemini", ".gemini");
  mkdirSync(join(own, "tmp"), { recursive: true });
  writeFileSync(join(own, "settings.json"), '{\n  // Mine.\n  "theme": "dark",\n  "a": 1\n}\n');
  writeFileSync(join(own, "oauth_creds.json"), "old", { mode: 0o600 });
  writeFileSync(join(own, "state.json"), "s1");
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

const read = (...path: string[]) => readFileSync(join(...path), "utf8");

function begin(): void {
  const text = (path: string) => (existsSync(path) ? read(path) : undefined);
  const facts = {
    url: "http://127.0.0.1:1/mcp",
    home: join(root, "user"),
    cwd: root,
    platform: "linux",
    env: {},
    args: [],
  } as const;
  const plan = gemini.plan({ ...facts, folder, only: false, approve: false, isPiped: false, read: text });
  makeRunFolder(folder, plan, "secret");
}

/** As programs replace a file: the link is gone then. */
function replace(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

describe("the home of a run of Gemini", () => {
  it("is closed to others, leads to the user's own files, and holds no secret [run-secret]", () => {
    begin();
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(join(home, "settings.json")).mode & 0o777).toBe(0o600);
    expect(lstatSync(join(home, "oauth_creds.json")).isSymbolicLink()).toBe(true);
    expect(read(home, "settings.json")).not.toContain('secret"');
    writeFileSync(join(home, "tmp", "chat"), "x");
    expect(read(own, "tmp", "chat")).toBe("x");
  });

  it("gives back a credential that was rotated, new files and changed settings, without our entry [run-clean]", () => {
    begin();
    replace(join(home, "oauth_creds.json"), "new");
    writeFileSync(join(home, "projects.json"), "p");
    mkdirSync(join(home, "history"));
    writeFileSync(join(home, "history", "one"), "h");
    const settings = JSON.parse(read(home, "settings.json"));
    settings.theme = "light";
    settings.security.auth = { selectedType: "oauth" };
    delete settings.a;
    replace(join(home, "settings.json"), JSON.stringify(settings));
    endRunFolder(folder);
    expect(read(own, "oauth_creds.json")).toBe("new");
    expect(statSync(join(own, "oauth_creds.json")).mode & 0o777).toBe(0o600);
    expect(read(own, "projects.json")).toBe("p");
    expect(read(own, "history", "one")).toBe("h");
    const text = read(own, "settings.json");
    expect(text).toContain("// Mine.");
    expect(text).toContain('"theme": "light"');
    expect(text).toContain('"selectedType": "oauth"');
    expect(text).not.toMatch(/toolway|TOOLWAY|"a"|Redaction/);
    expect(existsSync(folder)).toBe(false);
    // Nothing is left to be done, and nothing is done again.
    endRunFolder(folder);
  });

  it("keeps what the user's folder got or changed meanwhile [run-clean]", () => {
    begin();
    replace(join(home, "oauth_creds.json"), "from the run");
    replace(join(own, "oauth_creds.json"), "newer elsewhere");
    writeFileSync(join(home, "projects.json"), "from the run");
    writeFileSync(join(own, "projects.json"), "newer elsewhere");
    replace(join(home, "settings.json"), read(home, "settings.json").replace('"dark"', '"light"'));
    replace(join(own, "settings.json"), '{ "theme": "blue", "b": 2 }');
    endRunFolder(folder);
    expect(read(own, "oauth_creds.json")).toBe("newer elsewhere");
    expect(read(own, "projects.json")).toBe("newer elsewhere");
    expect(read(own, "settings.json")).toBe('{ "theme": "blue", "b": 2 }');
  });

  it("takes no key out of the user's settings where the agent was killed while it wrote its own [run-clean]", () => {
    const before = read(own, "settings.json");
    for (const half of ["", '{ "the', '{ "theme": "light"', "[]"]) {
      begin();
      writeFileSync(join(home, "settings.json"), half);
      endRunFolder(folder);
      expect(read(own, "settings.json")).toBe(before);
      expect(existsSync(folder)).toBe(false);
    }
  });

  it("leaves settings of the user's that are broken as they are [run-clean]", () => {
    begin();
    replace(join(home, "settings.json"), read(home, "settings.json").replace('"dark"', '"light"'));
    const broken = '{ "theme": "dark", "a": ';
    replace(join(own, "settings.json"), broken);
    endRunFolder(folder);
    expect(read(own, "settings.json")).toBe(broken);
  });

  it("leaves settings that are not in UTF-8 as they are, and says so; a byte order mark stays [run-clean]", () => {
    const latin = Buffer.from('{ "theme": "dark", "a": "caf\u00e9" }', "latin1");
    writeFileSync(join(own, "settings.json"), latin);
    begin();
    replace(join(home, "settings.json"), read(home, "settings.json").replace('"dark"', '"light"'));
    expect(endRunFolder(folder)).toEqual([
      expect.stringContaining("settings.json is not in UTF-8 and was left as it is"),
    ]);
    expect(readFileSync(join(own, "settings.json")).equals(latin)).toBe(true);
    begin();
    // Nothing was changed, so nothing is lost.
    expect(endRunFolder(folder)).toEqual([]);
    writeFileSync(join(own, "settings.json"), '\uFEFF{ "theme": "dark" }');
    begin();
    replace(join(home, "settings.json"), read(home, "settings.json").replace('"dark"', '"light"'));
    expect(endRunFolder(folder)).toEqual([]);
    expect(read(own, "settings.json")).toBe('\uFEFF{ "theme": "light" }');
  });

  it("gives back what is new in a folder whose link was replaced, and keeps what is in the user's [run-clean]", () => {
    writeFileSync(join(own, "tmp", "chat"), "mine");
    mkdirSync(join(own, "tmp", "deep"));
    begin();
    // As a client does that empties its folder: the link goes, and not what it leads to.
    rmSync(join(home, "tmp"));
    mkdirSync(join(home, "tmp", "deep"), { recursive: true });
    writeFileSync(join(home, "tmp", "chat"), "of the run");
    writeFileSync(join(home, "tmp", "new"), "n");
    writeFileSync(join(home, "tmp", "deep", "new"), "d");
    endRunFolder(folder);
    expect([read(own, "tmp", "chat"), read(own, "tmp", "new"), read(own, "tmp", "deep", "new")]).toEqual([
      "mine",
      "n",
      "d",
    ]);
  });

  it("gives a file of the user's away for a file alone, and the rest goes back whatever one thing is [run-clean]", () => {
    const elsewhere = join(root, "elsewhere");
    writeFileSync(elsewhere, '{ "stolen": true }');
    begin();
    rmSync(join(home, "oauth_creds.json"));
    mkdirSync(join(home, "oauth_creds.json"));
    rmSync(join(home, "state.json"));
    symlinkSync(elsewhere, join(home, "state.json"));
    rmSync(join(home, "settings.json"));
    symlinkSync(elsewhere, join(home, "settings.json"));
    writeFileSync(join(home, "zz"), "new");
    const before = read(own, "settings.json");
    endRunFolder(folder);
    expect([read(own, "oauth_creds.json"), read(own, "state.json"), read(own, "zz")]).toEqual(["old", "s1", "new"]);
    expect(lstatSync(join(own, "state.json")).isSymbolicLink()).toBe(false);
    // What a link in the place of the settings leads to is not read.
    expect(read(own, "settings.json")).toBe(before);
    expect(existsSync(folder)).toBe(false);
  });

  it.each([
    ["the home", () => home],
    ["the folder around it", () => join(folder, "gemini")],
  ])("takes nothing from where a link leads that stands in the place of %s [run-clean]", (_, placeOf) => {
    begin();
    const other = join(root, "other");
    mkdirSync(join(other, ".gemini"), { recursive: true });
    for (const path of [join(other, "precious"), join(other, ".gemini", "precious")]) writeFileSync(path, "p");
    rmSync(placeOf(), { recursive: true });
    symlinkSync(other, placeOf());
    endRunFolder(folder);
    expect([read(other, "precious"), read(other, ".gemini", "precious")]).toEqual(["p", "p"]);
    expect([existsSync(join(own, "precious")), existsSync(folder)]).toEqual([false, false]);
  });

  it("leaves nothing of a giving back that was killed in between, when it is done again [run-clean]", () => {
    begin();
    replace(join(home, "oauth_creds.json"), "new");
    mkdirSync(join(home, "history"));
    writeFileSync(join(home, "history", "one"), "h");
    writeFileSync(join(own, "oauth_creds.json.toolway-0123456789ab"), "ha");
    mkdirSync(join(own, "history.toolway-0123456789ab"));
    writeFileSync(join(own, "history.toolway-0123456789ab", "half"), "h");
    endRunFolder(folder);
    expect(readdirSync(own).sort((a, b) => a.localeCompare(b))).toEqual([
      "history",
      "oauth_creds.json",
      "settings.json",
      "state.json",
      "tmp",
    ]);
    expect([read(own, "oauth_creds.json"), readdirSync(join(own, "history"))]).toEqual(["new", ["one"]]);
  });

  it("leaves the user's folder as it was where the agent changed nothing [run-clean]", () => {
    const before = read(own, "settings.json");
    begin();
    endRunFolder(folder);
    expect(read(own, "settings.json")).toBe(before);
    expect(read(own, "state.json")).toBe("s1");
  });
});

it("settings that were given back once are not changed by giving them back again [run-clean]", () => {
  const once = settingsGivenBack('{"a":1}', '{"a":1,"ours":0}', '{"a":2,"ours":5,"c":{"d":1}}', [["ours"]]);
  expect(JSON.parse(once)).toEqual({ a: 2, c: { d: 1 } });
  expect(settingsGivenBack(once, '{"a":1,"ours":0}', '{"a":2,"ours":5,"c":{"d":1}}', [["ours"]])).toBe(once);
});
