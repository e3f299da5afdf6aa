import { expect, it } from "vitest";
import { configAnswer } from "./config-shown.js";

const KEY = "sk-93c1e07ab4f25d6681";
const TEXT = `{\n  "mcpServers": {\n    "a": { "command": "x", "env": { "K": "${KEY}" } }\n  },\n  "roles": { "dev": { "allow": 7 } }\n}\n`;
const ABOUT = { path: "/c/toolway.json", text: TEXT, editText: undefined, error: undefined, remarks: [] };

it("what is wrong stands at its line, that of an edit that is not applied among the lines around it [secrets-unseen]", () => {
  const error = "/c/toolway.json:5:33: roles.dev.allow: expected an array\nsomething else";
  const remarks = ["/c/toolway.json:3:5: mcpServers.a: wrong\n/c/toolway.json:4:1: and this", "a warning"];
  const { text, remarks: said, edit } = configAnswer({ ...ABOUT, editText: TEXT, error, remarks });
  expect(said).toEqual([
    { line: 3, text: "mcpServers.a: wrong" },
    { line: 4, text: "and this" },
    { line: undefined, text: "a warning" },
  ]);
  expect(edit?.mistakes).toEqual([
    { line: 5, text: "roles.dev.allow: expected an array" },
    { line: undefined, text: "something else" },
  ]);
  expect(edit?.lines.map(({ line }) => line)).toEqual([3, 4, 5, 6, 7]);
  expect(edit?.lines[2]?.text).toContain('"allow": 7');
  expect(edit?.isMasked).toBe(false);
  expect(`${text}${JSON.stringify(edit)}`).not.toContain(KEY);
});

it("an edit that is no JSON is shown without its values, and a config without a file has no text [secrets-unseen]", () => {
  const broken = TEXT.replace("},", "");
  const { edit } = configAnswer({ ...ABOUT, editText: broken, error: "/c/toolway.json:3:1: not valid JSON" });
  expect(edit?.isMasked).toBe(true);
  expect(edit?.lines[2]?.text).toBe('    "a": { "command": "…", "env": { "K": "…" } }');
  expect(JSON.stringify(edit)).not.toContain(KEY);
  const none = { path: undefined, text: undefined, remarks: [], edit: undefined };
  expect(configAnswer({ ...ABOUT, path: undefined, text: undefined })).toEqual(none);
});
