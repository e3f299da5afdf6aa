// docs/executor.md: its figures are those of the code, its rules are rules, its messages are those of the wire.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Destinations } from "../../executor/allow/destinations.js";
import * as requestLimits from "../../executor/wire/limits.js";
import * as protocol from "../../executor/wire/protocol.js";
import { KIB, MIB } from "../../runtime/sizes.js";
import * as socketLimits from "../../sockets/limits.js";
import { ACK } from "../../sockets/protocol.js";
import { commands } from "../commands/index.js";
import { readPlainLine } from "../line/plain-line.js";

const limits = { ...requestLimits, ...socketLimits };
const text = readFileSync(new URL("../../../docs/executor.md", import.meta.url), "utf8");

/** The first cells of the tables between two places of the text. */
function rows(from: string, to: string): string[][] {
  const start = text.indexOf(from);
  const end = text.indexOf(to, start);
  expect(start, from).toBeGreaterThan(-1);
  expect(end, to).toBeGreaterThan(start);
  return text
    .slice(start, end)
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("|---"))
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .map((cells) => cells.slice(1, -1));
}

const codes = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code ?? "");

function spelled(name: string, value: number): string {
  if (name.endsWith("_BYTES")) {
    const [unit, size] = value >= 1024 * MIB ? ["GiB", 1024 * MIB] : value >= MIB ? ["MiB", MIB] : ["KiB", KIB];
    return `${Math.round((value / Number(size)) * 10) / 10} ${unit}`;
  }
  if (name.endsWith("_MS")) return value > 60_000 ? `${value / 60_000} min` : `${value / 1000} s`;
  return value.toLocaleString("en");
}

it("docs/executor.md has all bounds, as they are in the code", () => {
  const told = rows("<!-- bounds -->", "<!-- /bounds -->").slice(1);
  expect(Object.fromEntries(told.map(([name, value]) => [codes(name ?? "")[0], value]))).toEqual(
    Object.fromEntries(Object.entries(limits).map(([name, value]) => [name, spelled(name, value)])),
  );
});

it("docs/executor.md shows rules that can be read", () => {
  const rules = rows("| rule | allows |", "Whatever the rules say").flatMap(([cell]) => codes(cell ?? ""));
  expect(rules.length).toBeGreaterThan(10);
  expect(() => Destinations.parse(rules)).not.toThrow();
});

it("docs/executor.md shows command lines that the command takes", () => {
  const lines = [...text.matchAll(/^toolway (.+)$/gm)].map(([, line]) => line ?? "");
  expect(lines.length).toBeGreaterThan(3);
  for (const line of lines) {
    expect(readPlainLine(line.replaceAll("'", "").split(" "), commands), line).toBeDefined();
  }
});

describe("docs/executor.md on the wire", () => {
  it("names every method", () => {
    const { INITIALIZE, INITIALIZED, REQUEST, BODY_DELTA, CANCEL, UPLOAD, CREDIT, STOPPING } = protocol;
    for (const method of [INITIALIZE, INITIALIZED, REQUEST, BODY_DELTA, CANCEL, UPLOAD, CREDIT, STOPPING, ACK]) {
      expect(text.includes(`"method":"${method}"`) || text.includes(`\`${method}\``), method).toBe(true);
    }
    for (const code of Object.values(protocol.RpcCode)) expect(text).toContain(`| ${code} |`);
  });

  it("shows messages that are JSON, with our version and bounds", () => {
    const shown = [...text.matchAll(/^(?:[→←] )?(\{.*"(?:method|result)".*\})$/gm)].map(([, line]) =>
      JSON.parse(line ?? ""),
    );
    expect(shown.length).toBeGreaterThan(5);
    const { EXTENSIONS_VERSION: version } = protocol;
    const { FIRST_WINDOW_BYTES: window, RETENTION_MS: retentionMs } = limits;
    expect(shown[0].params.toolway).toEqual({ version, window, received: 0 });
    expect(shown[1].result.toolway).toEqual({ version, window, retentionMs, resumed: false, received: 0 });
    expect(text).toContain(`has ${limits.MAX_QUEUED_DELTAS} deltas waiting`);
  });
});
