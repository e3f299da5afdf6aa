// Pins that came from an engine, at a gateway that is alone from then on.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { Target } from "../../contracts/server-spec.js";
import { openStore } from "../../store/local/store.js";
import { serverIdentity } from "./server-identity.js";
import { openState } from "./state.js";
import { StoredPins } from "./stored-pins.js";

it("what is accepted after pins came from an engine is accepted at every later start, and what is forgotten stays so [engine-move] [host-12]", async () => {
  const dir = mkdtempSync(join(tmpdir(), "toolway-state-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const names = Array.from({ length: 20 }, (_, n) => `tool-${n}`);
  const tools = (v: number) =>
    names.map((name) => ({ json: JSON.stringify({ name, v }), value: { name, v } as Record<string, unknown> }));
  let now = 1_000;
  const within = async (url: string | undefined, act: (pins: StoredPins) => unknown): Promise<void> => {
    // On an engine nothing is joined: there it is as it was written.
    const state = url === undefined ? await openState(dir, {}) : undefined;
    const store = state?.store ?? (await openStore({ dir: join(dir, "store") }));
    try {
      const pins = new StoredPins({
        map: store.shared("pins"),
        identityOf: url === undefined ? undefined : serverIdentity,
        wall: () => now++,
        onChange: () => {},
        log: () => {},
        redact: (_, text) => text,
      });
      const target: Target = { kind: "http", url: url ?? "http://one/", headers: {} };
      pins.configure([{ name: "s", trust: "pinned", target }]);
      await act(pins);
      pins.flush();
    } finally {
      await (state ?? store).close();
    }
  };
  const hidden = (pins: StoredPins, v: number) => pins.check("s", tools(v)).quarantined.size;
  // As gateways on an engine write them, for two servers that the name means there; the second accepts another definition.
  await within("http://one/", (pins) => expect(hidden(pins, 1)).toBe(0));
  await within("http://two/", async (pins) => {
    expect(hidden(pins, 2)).toBe(20);
    await pins.accept("s");
  });
  // Alone: what was accepted last is what counts.
  await within(undefined, async (pins) => {
    expect([pins.list().length, hidden(pins, 2), hidden(pins, 3)]).toEqual([20, 0, 20]);
    await pins.accept("s");
  });
  await within(undefined, (pins) => expect([hidden(pins, 3), hidden(pins, 1)]).toEqual([0, 20]));
  // On the engine again, nothing older is its own.
  await within("http://one/", (pins) => expect([hidden(pins, 3), hidden(pins, 1)]).toEqual([0, 20]));
  await within(undefined, async (pins) => {
    hidden(pins, 3);
    pins.configure([]);
    expect(await pins.forget("s")).toHaveLength(20);
    expect(pins.list()).toEqual([]);
  });
  await within(undefined, (pins) => expect(pins.list()).toEqual([]));
});
