// What the page may ask of a gateway, by who looks, and a door that cannot be made.

import { describe, expect, it } from "vitest";
import type { DoorRecord } from "../../control/door/door.js";
import type { ControlRequest, ControlRoutes } from "../../control/server.js";
import { MemoryMap } from "../../store/memory-map.js";
import { type DoorOf, LazyDoor } from "./lazy-door.js";
import { shownRoutes } from "./shown.js";

/** A control socket that has every route there is. */
const EVERY_ROUTE = new Proxy({}, { get: () => () => undefined }) as ControlRoutes;

describe("what the page may ask", () => {
  it("shows a viewer nothing that agents' calls gave, no secret, and lets them change nothing [receipts-apart]", async () => {
    const { seeing, acting } = shownRoutes(EVERY_ROUTE);
    expect(Object.keys(seeing).filter((key) => !key.startsWith("GET "))).toEqual([]);
    const write = { id: "1", state: "done", life: [], result: "what the server gave", error: "or refused" };
    const of = shownRoutes(new Proxy({}, { get: () => () => write }) as ControlRoutes);
    const shown = (routes: ControlRoutes) => routes["GET /outbox/writes/:id"]?.({} as ControlRequest);
    expect(await shown(of.seeing)).toEqual({ id: "1", state: "done", life: [] });
    expect(await shown({ ...of.seeing, ...of.acting })).toEqual(write);
    for (const key of ["GET /tokens/default", "GET /state/dump", "POST /down", "POST /door", "POST /mailboxes/pair"]) {
      expect({ ...seeing, ...acting }).not.toHaveProperty([key]);
    }
  });
});

describe("the audit log on the page", () => {
  it("shows arguments to whoever acts, and to no viewer [bodies-unkept]", async () => {
    const line = { seq: 1, time: "2026-01-01T00:00:00Z", kind: "call", tool: "add", arguments: { note: "private" } };
    const routes = new Proxy({}, { get: () => () => ({ lines: [line], next: undefined }) }) as ControlRoutes;
    const { seeing, acting } = shownRoutes(routes);
    const asked = (of: ControlRoutes) => of["GET /audit"]?.({} as ControlRequest);
    const { arguments: _, ...rest } = line;
    expect(await asked(seeing)).toEqual({ lines: [rest], next: undefined });
    expect(await asked({ ...seeing, ...acting })).toEqual({ lines: [line], next: undefined });
  });
});

describe("a door that cannot be made", () => {
  it("is told to whoever asks for it, each time, and does not keep its gateway from closing", async () => {
    const state = { door: new MemoryMap<DoorRecord>("door") };
    const gateway = { state, config: { admin: undefined } } as unknown as DoorOf;
    // Beside the sources there is no page that was built.
    const door = new LazyDoor(gateway, () => EVERY_ROUTE);
    const link = () => door.routes["POST /door"]?.({ body: {} } as ControlRequest);
    const tries = [link(), link()];
    await expect(tries[0]).rejects.toThrow("ENOENT");
    await expect(tries[1]).rejects.toThrow("ENOENT");
    await expect(link()).rejects.toThrow("ENOENT");
    await expect(door.close()).resolves.toBeUndefined();
    const pending = link();
    await expect(Promise.all([door.close(), expect(pending).rejects.toThrow("ENOENT")])).resolves.toBeDefined();
  });
});
