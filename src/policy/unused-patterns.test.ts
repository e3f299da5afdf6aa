import { describe, expect, it } from "vitest";
import { ownToolName } from "../contracts/names.js";
import { type KnownTools, unusedPatterns } from "./unused-patterns.js";

function server(name: string, ...tools: string[]): KnownTools {
  return { name, tools: tools.map(ownToolName) };
}

const NOTES = server("notes", "read_note", "delete_note");

describe("patterns of roles that fit no tool [status-true]", () => {
  it("are told with what they do not do, and with the nearest name", () => {
    const roles = { reader: { allow: ["notes/raed_note"], deny: ["notes/delete_notes", "notes/read_*"] } };
    expect(unusedPatterns(roles, [NOTES])).toEqual([
      'role "reader", "allow": "notes/raed_note" fits no tool of server "notes", so it allows nothing. ' +
        'Did you mean "notes/read_note"?',
      'role "reader", "deny": "notes/delete_notes" fits no tool of server "notes", so it denies nothing. ' +
        'Did you mean "notes/delete_note"?',
    ]);
  });

  it("and names in the entry of a server that are none of its tools are told, with the nearest", () => {
    const entry = { settings: ["delete_note", "delet_note", "x"], only: ["read_*", "raed_*", "delete_note", "rm"] };
    expect(unusedPatterns({}, [{ ...NOTES, ...entry }])).toEqual([
      'server "notes", settings of a tool: "delet_note" fits none of its tools, so they change nothing. Did you mean "delete_note"?',
      'server "notes", settings of a tool: "x" fits none of its tools, so they change nothing.',
      'server "notes", "only": "raed_*" fits none of its tools, so it shows nothing. Did you mean "read_*"?',
      'server "notes", "only": "rm" fits none of its tools, so it shows nothing.',
    ]);
    expect(unusedPatterns({}, [{ name: "new", tools: undefined, ...entry }])).toEqual([]);
    const many = Array.from({ length: 80 }, (_, n) => `t${n}`);
    expect(unusedPatterns({}, [{ ...NOTES, settings: many }])).toHaveLength(50);
  });

  it("are told of menus, too, by the place of their rule", () => {
    const menus = [
      { when: {}, show: ["notes/read_*"] },
      { when: { phase: "review" }, show: ["notes/raed_note"], hide: ["notes/x"] },
    ];
    expect(unusedPatterns({}, [NOTES], menus)).toEqual([
      'menus[1], "show": "notes/raed_note" fits no tool of server "notes", so it shows nothing. ' +
        'Did you mean "notes/read_note"?',
      'menus[1], "hide": "notes/x" fits no tool of server "notes", so it hides nothing.',
    ]);
  });

  it.each([
    ["notes/raed_*", "notes/read_*"],
    ["notes/*_nota", "notes/*note"],
    ["notes/*delte*", "notes/*delete_*"],
    ["*/delete_nte", "*/delete_note"],
  ])("have a nearest pattern where they have stars: %s", (typed, meant) => {
    expect(unusedPatterns({ r: { deny: [typed] } }, [NOTES])[0]).toContain(` Did you mean ${JSON.stringify(meant)}?`);
  });

  it.each(["files/ls", "files/x", "files/*y", "files/a*b*c"])(
    "have no nearest name where one would be a guess, whatever server stands before it: %s",
    (typed) => {
      expect(unusedPatterns({ r: { deny: [typed] } }, [server("files", "rm", "cp", "a_b")])[0]).toMatch(/nothing\.$/);
    },
  );

  it("have no nearest name where none is near", () => {
    expect(unusedPatterns({ r: { deny: ["notes/shutdown"] } }, [NOTES])).toEqual([
      'role "r", "deny": "notes/shutdown" fits no tool of server "notes", so it denies nothing.',
    ]);
  });

  it("are not judged while the tools of a server that they name are not known", () => {
    const roles = { r: { deny: ["notes/nothing", "*/delete_all"] } };
    const unread: KnownTools = { name: "wiki", tools: undefined };
    expect(unusedPatterns(roles, [{ name: "notes", tools: undefined }])).toEqual([]);
    expect(unusedPatterns({ r: { deny: ["*/delete_all"] } }, [NOTES, unread])).toEqual([]);
    expect(unusedPatterns({ r: { deny: ["*/delete_all"] } }, [NOTES, server("wiki", "read")])).toEqual([
      expect.stringContaining("fits no tool of the servers that it names"),
    ]);
  });

  it("are those about tools alone: a whole server, and a server that is not there, are the config's to tell", () => {
    expect(unusedPatterns({ r: { allow: ["notes", "notes/*"], deny: ["other/x"] } }, [server("notes")])).toEqual([]);
  });

  it("fit servers with a slash in their name as the rules do", () => {
    const org = server("org/repo", "delete");
    expect(unusedPatterns({ r: { allow: ["org/repo/delete"], deny: ["org/repo/delete"] } }, [org])).toEqual([]);
    expect(unusedPatterns({ r: { allow: ["org/repo/drop"] } }, [org])).toHaveLength(1);
  });

  it("are told up to a bound, and long names are not compared letter by letter [bounded]", () => {
    const deny = Array.from({ length: 500 }, (_, i) => `notes/none_${i}`);
    expect(unusedPatterns({ r: { deny } }, [NOTES])).toHaveLength(50);
    const long = server("notes", ...Array.from({ length: 2_000 }, (_, i) => `${"x".repeat(400)}${i}`));
    const begun = performance.now();
    expect(unusedPatterns({ r: { deny: [`notes/${"x".repeat(398)}ab`] } }, [long])).toHaveLength(1);
    expect(performance.now() - begun).toBeLessThan(5_000);
  });
});
