import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { within } from "./wait.js";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

it("fires after its time, whatever was collected meanwhile", async () => {
  const signal = within(300, within(60_000, new AbortController().signal));
  const aborted = once(signal, "abort");
  for (let i = 0; i < 10; i++) {
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
