import { expect, it } from "vitest";
import { MessageTurns, TURN_MESSAGES } from "./message-turns.js";

/** A connection with so many messages that came at once. */
class Line {
  taken = 0;
  left: number;
  readonly #turns: MessageTurns;
  readonly #bytes: number;

  constructor(turns: MessageTurns, left: number, bytes = 10) {
    this.#turns = turns;
    this.left = left;
    this.#bytes = bytes;
  }

  readonly goOn = (): void => {
    while (this.left > 0 && this.#turns.take(this.#bytes)) {
      this.left--;
      this.taken++;
    }
    if (this.left > 0) this.#turns.wait(this.goOn);
  };
}

function loop() {
  const due: (() => void)[] = [];
  const turns = new MessageTurns((act) => due.push(act));
  const turn = () => {
    const [act] = due.splice(0, 1);
    act?.();
    return act !== undefined;
  };
  return { turns, turn };
}

it("takes so many messages in a turn, and the rest in the next ones, with no turn asked for where few come [bounded]", () => {
  const { turns, turn } = loop();
  const few = new Line(turns, TURN_MESSAGES - 30);
  few.goOn();
  expect([few.left, turn()]).toEqual([0, false]);
  const many = new Line(turns, 3 * TURN_MESSAGES);
  const seen = [];
  for (many.goOn(); many.left > 0; turn()) seen.push(many.taken);
  expect(seen.length).toBeGreaterThanOrEqual(3);
  for (const [n, taken] of seen.entries()) expect(taken - (seen[n - 1] ?? 0)).toBeLessThanOrEqual(TURN_MESSAGES);
});

it("counts the bytes of what is not so small: no turn takes much more than 1 MiB [bounded]", () => {
  const { turns, turn } = loop();
  const line = new Line(turns, 100, 60_000);
  line.goOn();
  expect(line.taken * 60_000).toBeLessThan(1_200_000);
  const before = line.taken;
  turn();
  expect((line.taken - before) * 60_000).toBeLessThan(1_200_000);
  while (turn());
  expect(line.left).toBe(0);
});

it("lets connections take turns: who has thousands of messages holds up nobody by more than a turn [one-bad-server]", () => {
  const { turns, turn } = loop();
  const flood = new Line(turns, 100 * TURN_MESSAGES);
  const others = [new Line(turns, 2), new Line(turns, 2)];
  for (const line of [flood, ...others]) line.goOn();
  turn();
  turn();
  expect(others.map(({ left }) => left)).toEqual([0, 0]);
  expect(flood.left).toBeGreaterThan(90 * TURN_MESSAGES);
});
