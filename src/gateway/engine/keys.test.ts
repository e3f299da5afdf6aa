import { describe, expect, it } from "vitest";
import type { SharedMap } from "../../contracts/store.js";
import { openSealingKey } from "./keyring.js";
import { makeEngineKey, readEngineKeys, type WrappedKey } from "./keys.js";

const keysOf = (...texts: string[]) => readEngineKeys(texts.join("\n"), "The variable KEY");

/** What several gateways see of one engine. `beforeWrite` is another gateway that comes in between. */
function sharedMap(beforeWrite: () => Promise<unknown> = async () => {}) {
  let held: { value: WrappedKey; revision: number } | undefined;
  let between = beforeWrite;
  const write = async (value: WrappedKey, expected: number | undefined) => {
    const now = between;
    between = async () => {};
    await now();
    if (held?.revision !== expected) return undefined;
    held = { value, revision: (held?.revision ?? 0) + 1 };
    return held.revision;
  };
  const map = {
    read: () => held,
    create: (_: string, value: WrappedKey) => write(value, undefined),
    update: (_: string, value: WrappedKey, revision: number) => write(value, revision),
  } as unknown as SharedMap<WrappedKey>;
  return { map, held: () => held?.value };
}

describe("the engine's key", () => {
  it("[engine-sealed] is read in the form that it is made in, several with white space between them", () => {
    const [one, two] = [makeEngineKey(), makeEngineKey()];
    expect(one).toMatch(/^twk_/);
    expect(keysOf(one).map(({ id }) => id)).toEqual([keysOf(one)[0].id]);
    expect(readEngineKeys(`\n${one}\r\n  ${two}\n`, "x")).toHaveLength(2);
  });

  it.each([
    ["", "holds no key of the engine. `toolway engine key` makes one"],
    ["secret-of-mine", "The first text in The variable KEY is no key of the engine"],
    [`${makeEngineKey()} twk_short-secret`, "Text number 2 in The variable KEY is no key"],
  ])("[engine-sealed] [secrets-unseen] that is none is told without its text: %#", (text, expected) => {
    let told = "";
    try {
      keysOf(text);
    } catch (error) {
      told = String(error);
    }
    expect(told).toContain(expected);
    expect(told).not.toContain("secret");
  });

  it("[engine-sealed] gives all gateways one sealing key, also when two start at the same time", async () => {
    const keys = keysOf(makeEngineKey());
    let rival: Uint8Array | undefined;
    const engine: { map: SharedMap<WrappedKey>; held(): WrappedKey | undefined } = sharedMap(async () => {
      rival = await openSealingKey(engine.map, keys);
    });
    const ours = await openSealingKey(engine.map, keys);
    expect(Buffer.from(ours)).toEqual(Buffer.from(rival ?? []));
    expect(JSON.stringify(engine.held())).not.toContain(Buffer.from(ours).toString("base64url"));
  });

  it("[engine-sealed] that is new is added first and used later: who has it as second opens what who has it first wrapped", async () => {
    const [old, next] = [makeEngineKey(), makeEngineKey()];
    const { map, held } = sharedMap();
    const made = Buffer.from(await openSealingKey(map, keysOf(old)));
    // Everywhere as the second: nothing changes.
    expect(Buffer.from(await openSealingKey(map, keysOf(old, next)))).toEqual(made);
    expect(held()?.by).toBe(keysOf(old)[0].id);
    // One gateway has it first now, the others not yet.
    expect(Buffer.from(await openSealingKey(map, keysOf(next, old)))).toEqual(made);
    expect(held()?.by).toBe(keysOf(next)[0].id);
    // And at last alone. Who was left with the old one is told which key it lacks.
    expect(Buffer.from(await openSealingKey(map, keysOf(next)))).toEqual(made);
    await expect(openSealingKey(map, keysOf(old))).rejects.toThrow(keysOf(next)[0].id);
  });

  it("[engine-sealed] a sealing key in a form that is not known yet is left alone", async () => {
    const { map, held } = sharedMap();
    const keys = keysOf(makeEngineKey());
    await map.create("sealing", { v: 2, by: "x", key: "y" } as unknown as WrappedKey);
    await expect(openSealingKey(map, keys)).rejects.toThrow("newer Toolway");
    expect(held()?.v).toBe(2);
  });
});
