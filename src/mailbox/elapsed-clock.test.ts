import { expect, it } from "vitest";
import { ElapsedClock } from "./elapsed-clock.js";

/** Both clocks of a machine, and how they go on from one look to the next. */
function clocks() {
  let [steadyMs, wallMs] = [5_000, 1_700_000_000_000];
  const elapsed = new ElapsedClock({ now: () => steadyMs, wall: () => wallMs });
  const after = (steady: number, wall: number) => {
    steadyMs += steady;
    wallMs += wall;
    return elapsed.now();
  };
  return { elapsed, after };
}

it("goes with the steady clock while the calendar says the same, and begins at nothing", () => {
  const { after } = clocks();
  expect([after(0, 0), after(10, 10), after(250, 250)]).toEqual([0, 10, 260]);
});

it("counts a sleep, which the calendar alone knows of: what ended meanwhile has ended", () => {
  const { after } = clocks();
  expect([after(10, 10), after(5, 3_600_005), after(10, 10)]).toEqual([10, 3_600_015, 3_600_025]);
});

it("does not go back where the calendar is set back, nor stand still until it is where it was", () => {
  const { after } = clocks();
  expect([after(10, 10), after(10, -3_600_000), after(10, 10)]).toEqual([10, 20, 30]);
});

it("goes with the steady clock where the calendar is slower, or is nudged, and by what that is ahead once it is much", () => {
  const { after } = clocks();
  expect([after(100, 90), after(100, 110), after(0, -1), after(0, 1)]).toEqual([100, 200, 200, 200]);
  // It gains on the steady clock a little at a time.
  expect([after(100, 125), after(100, 110)]).toEqual([300, 400]);
  expect(after(100, 110)).toBe(500 + 55);
});

it("goes no faster for being asked often, though the calendar tells whole milliseconds", () => {
  let micros = 0;
  const elapsed = new ElapsedClock({
    now: () => micros / 1_000,
    wall: () => 1_700_000_000_000 + Math.floor(micros / 1_000),
  });
  for (; micros < 1_000_000; micros += 10) elapsed.now();
  expect(elapsed.now()).toBe(1_000);
});

it("says the calendar's time for what is shown", () => {
  const { elapsed, after } = clocks();
  after(10, 3_600_000);
  expect(elapsed.wall()).toBe(1_700_003_600_000);
});
