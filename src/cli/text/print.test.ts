import { describe, expect, it } from "vitest";
import { count, duration, fittedTable, oneLine, styleOf, table } from "./print.js";

describe("tables", () => {
  it("line up, whatever the colours and letters", () => {
    const style = styleOf({ env: {}, isTTY: true });
    const lines = table([
      ["A", "B"],
      [style.green("größer"), "x"],
    ]).split("\n");
    expect(lines[0]).toBe("A       B");
    expect(lines[1]).toBe("\u001b[32mgrößer\u001b[0m  x");
  });
});

it("a cell with line breaks in it makes no row of its own [terminal-inert]", () => {
  const rows = [
    ["a\nserver", "b\r\n\u2028c"],
    ["d", "e"],
  ];
  const lines = ["a\\u{000A}server  b\\u{000D}\\u{000A}\\u{2028}c", "d                e"];
  expect(table(rows).split("\n")).toEqual(lines);
  expect(fittedTable(rows, { isTTY: true, columns: 80 }).split("\n")).toEqual(lines);
});

describe("tables on a terminal [status-true]", () => {
  const rows = [
    ["SERVER", "STATE", "VERSION"],
    ["notes", "ready", "1.2.3, MCP 2025-11-25 and more"],
    ["a-server-with-a-long-name", "down", "-"],
  ];
  const widest = (text: string) => Math.max(...text.split("\n").map((line) => [...line].length));

  it("fit its width: the widest columns are cut first, and the end of what is cut is seen", () => {
    const text = fittedTable(rows, { isTTY: true, columns: 40 });
    expect(widest(text)).toBeLessThanOrEqual(40);
    expect(text).toMatch(/^notes +ready +1\.2\.3.*…$/m);
    expect(text).toMatch(/^a-server-w.*… +down/m);
  });

  it("count letters as a terminal draws them: wide ones twice, and accents of their own not at all", () => {
    const wide = [
      ["日本語のサーバー", "x"],
      ["e\u0301te\u0301", "y"],
      ["🚀🚀", "z"],
    ];
    expect(fittedTable(wide, { isTTY: true, columns: 80 }).split("\n")).toEqual([
      "日本語のサーバー  x",
      `e\u0301te\u0301${" ".repeat(15)}y`,
      `🚀🚀${" ".repeat(14)}z`,
    ]);
    expect(fittedTable([["日本語のサーバー", "0123456789"]], { isTTY: true, columns: 21 })).toBe(
      "日本語の…   01234567…",
    );
  });

  it("cut every column but the first further where there are many for the width", () => {
    const many = [Array.from({ length: 8 }, (_, i) => `${i} and a long text`)];
    expect(fittedTable(many, { isTTY: true, columns: 70 })).toHaveLength(70);
    expect(fittedTable(many, { isTTY: true, columns: 40 })).toBe("0 and a…  1 a…  2 a…  3 a…  4 a…  5 a…  6 a…  7 a…");
  });

  it("keep names readable on the narrowest, and are whole where there is room or no terminal", () => {
    expect(fittedTable(rows, { isTTY: true, columns: 5 })).toMatch(/^a-serve… {2}/m);
    for (const io of [{ isTTY: true, columns: 200 }, { isTTY: true }, { isTTY: false, columns: 10 }]) {
      expect(fittedTable(rows, io)).toBe(table(rows));
    }
  });

  const receipts = [
    ["RECEIPT", "STATE", "WHY"],
    ["FerwX6WvQwrUsPYjX0bq2A", "unknown", "the server went away before it answered"],
  ];
  const whole = ["RECEIPT", "STATE"];

  it("never cut a column that is named as whole, painted or not: the others give way in its place", () => {
    const { dim } = styleOf({ env: {}, isTTY: true });
    const text = fittedTable(receipts, { isTTY: true, columns: 50 }, { whole });
    expect(text.split("\n")[1]).toBe("FerwX6WvQwrUsPYjX0bq2A  unknown  the server went …");
    const painted = [receipts[0]?.map(dim) ?? [], ...receipts.slice(1)];
    expect(fittedTable(painted, { isTTY: true, columns: 40 }, { whole }).split("\n")[1]).toBe(
      "FerwX6WvQwrUsPYjX0bq2A  unknown  the se…",
    );
    expect(widest(fittedTable(receipts, { isTTY: true, columns: 37 }, { whole }))).toBeLessThanOrEqual(37);
  });

  it("are wider than the terminal rather than to cut what is whole, and then leave the others their least", () => {
    expect(fittedTable(receipts, { isTTY: true, columns: 30 }, { whole }).split("\n")[1]).toBe(
      "FerwX6WvQwrUsPYjX0bq2A  unknown  the ser…",
    );
  });

  it("keep their colours whole, whatever is cut", () => {
    const { red } = styleOf({ env: {}, isTTY: true });
    const text = fittedTable([[red("abcdefghijklmnop"), "x"]], { isTTY: true, columns: 14 });
    expect(text).toBe(`${red("abcdefghij…")}  x`);
  });
});

describe("colours", () => {
  const painted = (env: Record<string, string>, isTTY: boolean): boolean => styleOf({ env, isTTY }).red("x") !== "x";

  it("appear on a terminal only, and not with NO_COLOR", () => {
    expect(painted({}, true)).toBe(true);
    expect(painted({ NO_COLOR: "" }, true)).toBe(true);
    expect(painted({}, false)).toBe(false);
    expect(painted({ NO_COLOR: "1" }, true)).toBe(false);
    expect(painted({ TERM: "dumb" }, true)).toBe(false);
  });
});

describe("text of servers", () => {
  it("cannot steer the terminal", () => {
    expect(oneLine("a\u001b[2Jb\u0007\tc\nd\u009b31m", 40)).toBe("a[2Jb c d31m");
  });

  it("is cut to one line", () => {
    expect(oneLine("a  b\nc", 10)).toBe("a b c");
    expect(oneLine("abcdef", 4)).toBe("abc…");
  });
});

it("counts and durations read as people write them", () => {
  expect([count(1, "tool"), count(2, "tool"), count(0, "tool")]).toEqual(["1 tool", "2 tools", "0 tools"]);
  expect([duration(12.4), duration(2400), duration(180_000)]).toEqual(["12 ms", "2.4 s", "3 min"]);
});
