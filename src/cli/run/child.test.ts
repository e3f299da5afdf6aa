import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { StopWithAgent } from "./child.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function agent(raisesSignal: boolean) {
  const seen = { isStopped: false, looks: 0, stops: 0 };
  const watch = new StopWithAgent({
    raisesSignal,
    isStopped() {
      seen.looks++;
      // It comes when we are back in the event loop, as a signal does.
      if (raisesSignal) setTimeout(() => watch.signalled(), 1);
      return seen.isStopped;
    },
    stopOurselves: () => void seen.stops++,
  });
  return { seen, watch };
}

it.each([false, true])(
  "an agent that stops itself stops us, after a second look (looks raise signals: %s)",
  (raises) => {
    const { seen, watch } = agent(raises);
    seen.isStopped = true;
    watch.signalled();
    expect(seen.stops).toBe(0);
    vi.advanceTimersByTime(200);
    expect(seen).toMatchObject({ looks: 2, stops: 1 });
    // Continued, and stopped again.
    watch.signalled();
    vi.advanceTimersByTime(200);
    expect(seen.stops).toBe(2);
  },
);

it("a look that starts a program is no reason for the next [bounded]", () => {
  const { seen, watch } = agent(true);
  watch.signalled();
  vi.advanceTimersByTime(10_000);
  expect(seen.looks).toBe(1);
});

it("one that runs again by the second look leaves us running, and its end ends the watch", () => {
  const { seen, watch } = agent(false);
  seen.isStopped = true;
  watch.signalled();
  seen.isStopped = false;
  vi.advanceTimersByTime(200);
  expect(seen.stops).toBe(0);
  seen.isStopped = true;
  watch.signalled();
  watch.end();
  vi.advanceTimersByTime(200);
  expect(seen.stops).toBe(0);
});
