// The beginning of a value's JSON is that of JSON.stringify, at whatever length.

import { expect, it } from "vitest";
import { jsonHead } from "./json-head.js";

const VALUES: readonly unknown[] = [
  {},
  [],
  null,
  "",
  'a "quoted" text\n',
  -1.5e300,
  { a: [1, true, null, { b: "c" }], "a key": {}, left: undefined, last: [[], [undefined]] },
  { arguments: { name: "n" }, long: "x".repeat(100), after: "y" },
];

it("is what JSON.stringify writes, cut where it is longer than is wanted [bounded]", () => {
  for (const value of VALUES) {
    const whole = JSON.stringify(value);
    for (let most = 0; most <= whole.length + 2; most++) {
      expect(jsonHead(value, most)).toEqual([whole.slice(0, most), whole.length > most]);
    }
  }
});

it("ends with no half of a character", () => {
  expect(jsonHead("ab😀", 4)).toEqual(['"ab', true]);
});

it("looks at no more of a value than is wanted of it [bounded]", () => {
  const value = [
    "x".repeat(100),
    {
      get never(): string {
        throw new Error("It is not read.");
      },
    },
  ];
  expect(jsonHead(value, 20)[0]).toHaveLength(20);
});
