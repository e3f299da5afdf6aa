// When lists go to disk, and what of them.

import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import type { DurableMap } from "../../contracts/store.js";
import type { Log } from "../../observe/log.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import { StoredLists } from "./stored-lists.js";

function setUp() {
  const disk = new Map<string, JsonObject>();
  const known = new Map<string, JsonObject>();
  const written: string[] = [];
  const warned: string[] = [];
  const map = {
    get: (key: string) => disk.get(key),
    put: async (key: string, value: JsonObject) => {
      if (value["isRefused"] === true) throw new Error("no room");
      written.push(`${key} ${JSON.stringify(value)}`);
      disk.set(key, value);
    },
    delete: async (key: string) => disk.delete(key),
  } as unknown as DurableMap<JsonObject>;
  const log = { warn: (text: string) => warned.push(text) } as unknown as Log;
  const lists = new StoredLists({ map, snapshot: (server) => known.get(server), log });
  return { disk, known, written, warned, lists };
}

it("lists that changed are kept, those that are there already are not written again", async () => {
  const { known, written, lists } = setUp();
  for (const name of ["a", "b", "unknown"]) lists.saveSoon(name);
  known.set("a", { tools: [1] });
  known.set("b", { tools: [2] });
  await lists.save();
  expect(written).toEqual(['a {"tools":[1]}', 'b {"tools":[2]}']);
  known.set("b", { tools: [3] });
  for (const name of ["a", "b"]) lists.saveSoon(name);
  await lists.save();
  expect(written.slice(2)).toEqual(['b {"tools":[3]}']);
});

it("what is newer is written last, though the older is still on its way, and each step has a turn of its own [one-bad-server]", async () => {
  const { known, written, lists } = setUp();
  known.set("a", { tools: [1] });
  lists.saveSoon("a");
  let turns = 0;
  let isSaved = false;
  const first = lists.save();
  known.set("a", { tools: [2] });
  lists.saveSoon("a");
  const second = lists.save().then(() => {
    isSaved = true;
  });
  while (!isSaved) {
    turns++;
    await nextTurn();
  }
  await Promise.all([first, second]);
  expect(written.at(-1)).toBe('a {"tools":[2]}');
  expect(turns).toBeGreaterThan(3);
});

it("a server that is forgotten while its lists are on their way is not kept, and a disk that refuses one keeps the others", async () => {
  const { disk, known, warned, lists } = setUp();
  known.set("bad", { isRefused: true });
  known.set("gone", { tools: [1] });
  known.set("good", { tools: [2] });
  for (const name of ["bad", "gone", "good"]) lists.saveSoon(name);
  let isSaved = false;
  const saved = lists.save().then(() => {
    isSaved = true;
  });
  // Whatever step it is in.
  for (let n = 0; n < 5 && !isSaved; n++) await nextTurn();
  lists.forget("gone");
  await saved;
  expect([...disk.keys()]).toEqual(["good"]);
  expect(warned).toEqual(['the lists of server "bad" could not be kept for the next start: no room']);
});
