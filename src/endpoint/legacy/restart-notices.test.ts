import { expect, it } from "vitest";
import { RestartNotices, STEP_MS } from "./sessions.js";

/** Five seconds, which is what agents are promised. */
const STEPS = 5_000 / STEP_MS;

it("one session has its turn at the next step, and many are spread over all steps [bounded]", () => {
  const restartNotices = new RestartNotices<number>();
  restartNotices.add(-1);
  expect(restartNotices.step()).toEqual([-1]);
  for (let n = 0; n < 1_000; n++) restartNotices.add(n);
  const turns = Array.from({ length: STEPS }, () => restartNotices.step());
  expect(turns.map((turn) => turn.length)).toEqual(Array.from({ length: STEPS }, () => 1_000 / STEPS));
  expect(new Set(turns.flat()).size).toBe(1_000);
  expect(restartNotices.size).toBe(0);
});

it("whoever comes while others wait has its turn within the time as well", () => {
  const restartNotices = new RestartNotices<number>();
  const addedAt = new Map<number, number>();
  for (let step = 0; step < 100; step++) {
    for (let n = 0; n < 3; n++) {
      const session = step * 3 + n;
      addedAt.set(session, step);
      restartNotices.add(session);
    }
    for (const session of restartNotices.step()) {
      expect(step - (addedAt.get(session) ?? 0)).toBeLessThan(STEPS);
      addedAt.delete(session);
    }
  }
  for (let step = 0; step < STEPS; step++) for (const session of restartNotices.step()) addedAt.delete(session);
  expect(addedAt.size).toBe(0);
});
