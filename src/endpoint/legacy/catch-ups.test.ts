import { expect, it } from "vitest";
import { CatchUps, STEP_MS } from "./sessions.js";

/** Five seconds, which is what agents are promised. */
const STEPS = 5_000 / STEP_MS;

it("one session has its turn at the next step, and many are spread over all steps [bounded]", () => {
  const catchUps = new CatchUps<number>();
  catchUps.add(-1);
  expect(catchUps.step()).toEqual([-1]);
  for (let n = 0; n < 1_000; n++) catchUps.add(n);
  const turns = Array.from({ length: STEPS }, () => catchUps.step());
  expect(turns.map((turn) => turn.length)).toEqual(Array.from({ length: STEPS }, () => 1_000 / STEPS));
  expect(new Set(turns.flat()).size).toBe(1_000);
  expect(catchUps.size).toBe(0);
});

it("whoever comes while others wait has its turn within the time as well", () => {
  const catchUps = new CatchUps<number>();
  const addedAt = new Map<number, number>();
  for (let step = 0; step < 100; step++) {
    for (let n = 0; n < 3; n++) {
      const session = step * 3 + n;
      addedAt.set(session, step);
      catchUps.add(session);
    }
    for (const session of catchUps.step()) {
      expect(step - (addedAt.get(session) ?? 0)).toBeLessThan(STEPS);
      addedAt.delete(session);
    }
  }
  for (let step = 0; step < STEPS; step++) for (const session of catchUps.step()) addedAt.delete(session);
  expect(addedAt.size).toBe(0);
});
