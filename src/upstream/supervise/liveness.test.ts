import { expect, it } from "vitest";
import { Idleness } from "./liveness.js";

it("an idle connection is pinged when nothing was heard for its time, once each time", () => {
  const idleness = new Idleness({ keepAliveMs: undefined, pingMs: 100 });
  expect(idleness.look(0, 0, 0, false)).toBe("nothing");
  expect(idleness.look(99, 0, 0, false)).toBe("nothing");
  expect(idleness.look(100, 0, 0, false)).toBe("ping");
  expect(idleness.look(150, 0, 0, false)).toBe("nothing");
  expect(idleness.look(180, 0, 1, false)).toBe("nothing");
  expect(idleness.look(279, 0, 1, false)).toBe("nothing");
  expect(idleness.look(280, 0, 1, false)).toBe("ping");
  // A busy server may be slow to answer: that is for the deadlines of its calls.
  expect(idleness.look(1_000, 0, 1, true)).toBe("nothing");
});

it("an idle connection is closed when nobody used it for its time, whatever the server says by itself", () => {
  const idleness = new Idleness({ keepAliveMs: 100, pingMs: undefined });
  expect(idleness.look(0, 1, 0, false)).toBe("nothing");
  expect(idleness.look(90, 2, 5, false)).toBe("nothing");
  expect(idleness.look(150, 2, 9, true)).toBe("nothing");
  expect(idleness.look(249, 2, 20, false)).toBe("nothing");
  expect(idleness.look(250, 2, 21, false)).toBe("rest");
});
