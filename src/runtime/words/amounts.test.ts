import { expect, it } from "vitest";
import { percent, seconds, waitText } from "./amounts.js";

it("a time has tenths of a second, and a share has tenths where it is little", () => {
  expect([0, 40, 1_500, 90_000].map(seconds)).toEqual(["0.0 s", "0.0 s", "1.5 s", "90.0 s"]);
  expect([0, 0.04, 2.5, 9.99, 10, 40.6, 100].map(percent)).toEqual([
    "0 %",
    "0.0 %",
    "2.5 %",
    "10.0 %",
    "10 %",
    "41 %",
    "100 %",
  ]);
});

it("a wait is told in tenths of a second, and never as none [told-truly]", () => {
  expect([-5, 0, 1, 49, 100, 1_240, 65_000].map(waitText)).toEqual([
    "0.1 s",
    "0.1 s",
    "0.1 s",
    "0.1 s",
    "0.1 s",
    "1.2 s",
    "65.0 s",
  ]);
});
