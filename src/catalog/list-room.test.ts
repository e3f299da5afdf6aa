import { expect, it } from "vitest";
import { MIB } from "../runtime/sizes.js";
import { ListRoom, MAX_LISTS_BYTES } from "./list-room.js";

it("one server has half of it at most, in all of its lists, and others have some, however many take all they can [bounded] [one-bad-server]", () => {
  const room = new ListRoom();
  const take = (server: string, kind: "tools" | "prompts", bytes: number): boolean => {
    if (room.refusal(server, kind, bytes) !== undefined) return false;
    room.set(server, kind, bytes);
    return true;
  };
  expect(take("a", "tools", 20 * MIB)).toBe(true);
  expect(take("a", "prompts", 13 * MIB)).toBe(false);
  expect(take("a", "prompts", 12 * MIB)).toBe(true);
  for (let n = 0; n < 20; n++) {
    for (let bytes = 32 * MIB; bytes >= 1024 && !take(`bad ${n}`, "tools", bytes); bytes /= 2);
  }
  expect(room.used).toBeLessThan(MAX_LISTS_BYTES);
  expect(room.used).toBeGreaterThan(MAX_LISTS_BYTES - 1 * MIB);
  expect(take("honest", "tools", 50)).toBe(true);
});

it("a list that does not grow fits always, and what went is room again", () => {
  const room = new ListRoom();
  room.set("a", "tools", 60 * MIB);
  expect(room.refusal("a", "tools", 60 * MIB)).toBeUndefined();
  expect(room.refusal("a", "tools", 60 * MIB + 1)).toContain(String(MAX_LISTS_BYTES));
  expect(room.refusal("b", "tools", 3 * MIB)).toMatch(/^There is no room for a list of 3145728 bytes: .*67108864/);
  room.set("a", "tools", 1 * MIB);
  expect(room.refusal("b", "tools", 3 * MIB)).toBeUndefined();
  room.forget("a");
  expect(room.used).toBe(0);
});
