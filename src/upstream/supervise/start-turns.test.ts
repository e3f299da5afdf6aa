import { expect, it } from "vitest";
import { StartTurns } from "./start-turns.js";

const never = new AbortController().signal;

it("starts go on so many at a time, the others in their order, and one that is given up takes no turn [bounded]", async () => {
  const turns = new StartTurns(2);
  const order: number[] = [];
  const done: (() => void)[] = [];
  const begin = async (number: number, signal = never) => {
    const end = await turns.turn(signal);
    order.push(number);
    done.push(end);
  };
  const third = new AbortController();
  const starts = [begin(1), begin(2), begin(3, third.signal), begin(4), begin(5)];
  const gaveUp = starts[2]?.catch((error: unknown) => error);
  await Promise.all(starts.slice(0, 2));
  third.abort(new Error("too late"));
  expect(await gaveUp).toEqual(new Error("too late"));
  expect(order).toEqual([1, 2]);
  done[0]?.();
  await starts[3];
  done[1]?.();
  await starts[4];
  expect(order).toEqual([1, 2, 4, 5]);
  for (const end of done.slice(2)) end();
  await Promise.all([begin(6), begin(7)]);
  const aborted = AbortSignal.abort(new Error("no"));
  await expect(begin(8, aborted)).rejects.toThrow("no");
});
