import { expect, it } from "vitest";
import { csvRow } from "./csv.js";

it("a cell of a table that begins like a formula is text to a sheet, and every cell stays one cell", () => {
  const formulas = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"];
  // Whatever quotes stand around it, the first character that a sheet reads is the apostrophe.
  for (const text of formulas)
    expect(csvRow([text]).replace(/^"/, "")).toBe(`'${text}${text.includes("\r") ? '"' : ""}`);
  expect(csvRow(['=HYPERLINK("http://a","b")', "a,b", 'say "x"', "two\nlines"])).toBe(
    `"'=HYPERLINK(""http://a"",""b"")","a,b","say ""x""","two\nlines"`,
  );
  // A number below nothing is one, and what is not there is empty.
  expect(csvRow([-1, 2.5, true, undefined, null, { a: 1 }, "a=b"])).toBe('-1,2.5,true,,,"{""a"":1}",a=b');
});
