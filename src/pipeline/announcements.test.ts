import { expect, it } from "vitest";
import { Announcements } from "./announcements.js";

it("an announcement without a change is passed on, once a second for each server and list", () => {
  const announcements = new Announcements();
  const heard = (server: string, nowMs: number) => {
    announcements.announced(server, ["tools"]);
    return announcements.unchanged(server, "tools", nowMs);
  };
  expect([heard("a", 0), heard("a", 999), heard("b", 999), heard("a", 1_000)]).toEqual([true, false, true, true]);
});

it("a list that is read without an announcement, or has changed, is not passed on", () => {
  const announcements = new Announcements();
  expect(announcements.unchanged("a", "tools", 0)).toBe(false);
  announcements.announced("a", ["tools"]);
  announcements.changed("a", "tools");
  expect(announcements.unchanged("a", "tools", 0)).toBe(false);
});

it("resources and their templates are told of together", () => {
  const announcements = new Announcements();
  announcements.announced("a", ["resources", "resourceTemplates"]);
  expect(announcements.unchanged("a", "resources", 0)).toBe(true);
  expect(announcements.unchanged("a", "resourceTemplates", 0)).toBe(false);
});
