import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { doneWithin, resultWithin, within } from "./wait.js";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

it("fires after its time, whatever was collected meanwhile", async () => {
  const signal = within(300, within(60_000, new AbortController().signal));
  const aborted = once(signal, "abort");
  for (let i = 0; i < 3; i++) {
    collect();
    await sleep(10);
  }
  await aborted;
  expect(signal.reason).toMatchObject({ name: "TimeoutError" });
}, 10_000);

it("fires with the signal that it was given, with its reason", () => {
  const controller = new AbortController();
  const signal = within(60_000, controller.signal);
  controller.abort("enough");
  expect(signal.reason).toBe("enough");
});

it("waits for a result, and no longer than it was told", async () => {
  expect(await resultWithin(Promise.resolve(7), 60_000)).toBe(7);
  expect(await resultWithin(new Promise(() => {}), 1)).toBeUndefined();
  await expect(resultWithin(Promise.reject(new Error("broken")), 60_000)).rejects.toThrow("broken");
});

it("says whether work was done in time, and stops waiting with its signal", async () => {
  const never = new Promise<void>(() => {});
  expect(await doneWithin(Promise.resolve(), 60_000, undefined)).toBe(true);
  expect(await doneWithin(never, 1, undefined)).toBe(false);
  await expect(doneWithin(never, 60_000, AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
});
