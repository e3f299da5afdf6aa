import { expect, it } from "vitest";
import { pasteLines } from "./paste-lines.js";

const URL = "http://127.0.0.1:7420/mcp";

it("names the variable in each client's own way, quoted from the shell", () => {
  expect(pasteLines(URL, true).map(({ line }) => line)).toEqual([
    `claude mcp add --transport http toolway ${URL} --header 'Authorization: Bearer \${TOOLWAY_TOKEN}'`,
    `codex mcp add toolway --url ${URL} --bearer-token-env-var TOOLWAY_TOKEN`,
    `gemini mcp add --transport http toolway ${URL} --header 'Authorization: Bearer \${TOOLWAY_TOKEN}'`,
    `opencode mcp add toolway --url ${URL} --header 'Authorization=Bearer {env:TOOLWAY_TOKEN}'`,
  ]);
});

it("asks for no header where there is no token", () => {
  for (const { line } of pasteLines(URL, false)) expect(line).not.toMatch(/TOKEN|header/);
});
