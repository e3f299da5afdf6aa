import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { ownToolName } from "../contracts/names.js";
import { accept, type ListedTool, ServerPins } from "./pins.js";

const tool = (name: string, more: object = {}): ListedTool => {
  const value = { name, ...more };
  return { json: JSON.stringify(value), value };
};
const text = (name: string, json: string): ListedTool => ({ json, value: { name } });

describe("ServerPins", () => {
  const BASE = {
    description: "Adds.",
    inputSchema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
    outputSchema: { type: "object" },
    annotations: { readOnlyHint: true },
    title: "Add",
    icons: [{ src: "https://x/y.png" }],
    _meta: { v: 1 },
    "x-unknown": [1, 2],
  };

  it.each(Object.keys(BASE))("a change of %s is a change [host-12]", (member) => {
    const pins = new ServerPins("s");
    expect(pins.see([tool("add", BASE)], 1).toWrite).toMatchObject([{ kind: "first", tool: "add" }]);
    const { toWrite, differs } = pins.see([tool("add", { ...BASE, [member]: "other" })], 2);
    expect(toWrite).toMatchObject([{ kind: "changed", tool: "add" }]);
    expect(differs).toBe(true);
    expect(pins.quarantined.get(ownToolName("add"))).toContain("toolway pins accept s add");
    // A member that is gone is a change too, and another one than the first.
    const { [member as keyof typeof BASE]: _, ...rest } = BASE;
    expect(pins.see([tool("add", rest)], 3).toWrite).toMatchObject([{ kind: "changed" }]);
  });

  it("the order of members and white space are no change, whatever wrote them [host-12]", () => {
    const pins = new ServerPins("s");
    pins.see([text("t", '{"name":"t","description":"é","inputSchema":{"a":1.0,"b":[]}}')], 1);
    const other = text("t", '{ "inputSchema" : {"b":[ ],"a":1},\n "description":"\\u00e9", "name":"t" }');
    expect(pins.see([other], 2)).toEqual({ toWrite: [], differs: false });
  });

  it("numbers beyond a double, and a member that stands twice, are told apart [host-12]", () => {
    const pins = new ServerPins("s");
    pins.see([text("t", '{"name":"t","max":18446744073709551615}')], 1);
    expect(pins.see([text("t", '{"name":"t","max":18446744073709551614}')], 2).differs).toBe(true);
    const twice = text("u", '{"name":"u","description":"evil","description":"good"}');
    expect(pins.see([twice], 3).toWrite).toEqual([]);
    expect(pins.quarantined.get(ownToolName("u"))).toContain('Duplicate member "description"');
    expect(pins.see([text("u", '{"name":"u","description":"good"}')], 4).toWrite).toMatchObject([{ kind: "first" }]);
    expect(pins.quarantined.has(ownToolName("u"))).toBe(false);
  });

  it("a tool that went away keeps its pin; back as it was it is free, back changed it is not [host-12]", () => {
    const pins = new ServerPins("s");
    pins.see([tool("a"), tool("b")], 1);
    expect(pins.see([tool("b")], 2)).toEqual({ toWrite: [], differs: false });
    expect(pins.isGone(ownToolName("a"))).toBe(true);
    expect(pins.see([tool("a", { description: "evil" }), tool("b")], 3).differs).toBe(true);
    expect([...pins.quarantined.keys()]).toEqual(["a"]);
    pins.see([tool("b")], 4);
    expect([...pins.quarantined.keys()]).toEqual(["a"]);
    expect(pins.see([tool("a"), tool("b")], 5)).toMatchObject({ toWrite: [{ kind: "restored" }], differs: true });
    expect(pins.quarantined.size).toBe(0);
  });

  it("the first of a name counts, as in the menu, and what has no name is passed over", () => {
    const pins = new ServerPins("s");
    pins.see([tool("a", { v: 1 }), tool("a", { v: 2 }), { json: "{}", value: {} }], 1);
    expect(pins.pins.size).toBe(1);
    expect(pins.see([tool("a", { v: 1 })], 2).toWrite).toEqual([]);
    expect(pins.see([tool("a", { v: 2 }), tool("a", { v: 1 })], 3).differs).toBe(true);
  });

  it("new names do not push out old pins [bounded]", () => {
    const pins = new ServerPins("s");
    const names = (from: number, n: number) => Array.from({ length: n }, (_, i) => tool(`t${from + i}`));
    pins.see(names(0, 10_000), 1);
    const { toWrite } = pins.see([tool("t0", { evil: true }), ...names(20_000, 50)], 2);
    expect(pins.pins.size).toBe(10_000);
    expect(toWrite.map(({ tool: name }) => name)).toEqual(["t0"]);
    expect(pins.quarantined.get(ownToolName("t20000"))).toContain("more than 10000 different tools");
    expect(pins.quarantined.has(ownToolName("t0"))).toBe(true);
  });

  it("names of a server do not become commands in the advice", () => {
    const pins = new ServerPins("s");
    const name = "x`; rm -rf ~";
    pins.see([tool(name)], 1);
    pins.see([tool(name, { v: 2 })], 2);
    expect(pins.quarantined.get(ownToolName(name))).not.toContain("rm");
  });
});

describe("for every history of lists and acceptances", () => {
  // Definitions of three tools, each absent or in one of four versions; now and then somebody accepts what is there.
  const NAMES = ["a", "b", "c"];
  const list = fc.record({
    kind: fc.constant("list" as const),
    versions: fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 3, maxLength: 3 }),
  });
  const taken = fc.record({ kind: fc.constant("accept" as const), which: fc.integer({ min: 0, max: 2 }) });
  const restarted = fc.record({ kind: fc.constant("restart" as const) });
  const history = fc.array(fc.oneof({ weight: 5, arbitrary: list }, taken, restarted), { maxLength: 40 });

  it("a tool is free exactly when it is as it was first seen or last accepted [host-12]", () => {
    fc.assert(
      fc.property(history, (events) => {
        let pins = new ServerPins("s");
        const accepted = new Map<string, number>();
        const latest = new Map<string, number>();
        events.forEach((event, now) => {
          if (event.kind === "list") {
            const versions = NAMES.map((name, i) => [name, event.versions[i] ?? 0] as const).filter(([, v]) => v > 0);
            const before = new Set(pins.quarantined.keys());
            const { differs } = pins.see(
              versions.map(([name, v]) => tool(name, { v })),
              now,
            );
            for (const [name, v] of versions) {
              latest.set(name, v);
              if (!accepted.has(name)) accepted.set(name, v);
            }
            const after = new Set(pins.quarantined.keys());
            const other = before.size !== after.size || [...before].some((name) => !after.has(name));
            if (differs !== other) throw new Error(`differs is ${differs} at ${now}`);
          } else if (event.kind === "accept") {
            const name = NAMES[event.which] ?? "";
            const pin = pins.pins.get(ownToolName(name));
            if (pin?.changed === undefined) return;
            pins.put(ownToolName(name), accept(pin, pin.changed.hash, now));
            accepted.set(name, latest.get(name) ?? 0);
          } else {
            const again = new ServerPins("s");
            for (const [name, pin] of pins.pins) again.put(name, pin);
            pins = again;
          }
          for (const name of NAMES) {
            const free = latest.get(name) === accepted.get(name);
            if (pins.quarantined.has(ownToolName(name)) === free) throw new Error(`${name} is wrong at ${now}`);
          }
          for (const pin of pins.pins.values()) {
            if (pin.firstSeenMs > pin.acceptedMs || pin.changed?.hash === pin.hash)
              throw new Error(JSON.stringify(pin));
          }
        });
      }),
      { numRuns: histories(3000) },
    );
  }, 60_000);

  it("accepting takes what was looked at, and no more", () => {
    const looked = { hash: "one", firstSeenMs: 1, acceptedMs: 1, changed: { hash: "two", seenMs: 2 } };
    const meanwhile = { ...looked, changed: { hash: "three", seenMs: 3 } };
    expect(accept(meanwhile, "two", 4)).toEqual({
      hash: "two",
      firstSeenMs: 1,
      acceptedMs: 4,
      changed: { hash: "three", seenMs: 3 },
    });
    expect(accept(looked, "two", 4).changed).toBeUndefined();
  });
});
