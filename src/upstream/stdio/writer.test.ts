// When lines leave for a child: at once where it has nothing to do, else together at the end of the turn.

import { Writable } from "node:stream";
import { expect, it } from "vitest";
import { ownHolder } from "../../runtime/memory/held-bytes.js";
import { LineWriter } from "./writer.js";

it("A line for an idle server leaves at once, and those that follow in the same turn leave together, in order [bounded]", async () => {
  const written: string[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      written.push(chunk.toString());
      done();
    },
  });
  const events = { onFailed: () => {}, onBroken: () => {} };
  const writer = new LineWriter(stream, 1_000, ownHolder(), events);
  writer.send("1", undefined, true);
  expect(written).toEqual(["1\n"]);
  for (const line of ["2", "3", "4"]) {
    await Promise.resolve();
    writer.send(line, undefined, false);
  }
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  expect(written.join("")).toBe("1\n2\n3\n4\n");
  expect(written.length).toBeLessThanOrEqual(3);
});
