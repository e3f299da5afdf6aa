import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { FrameBytes, frameHead } from "./framing.js";

const frames = fc.array(fc.tuple(fc.integer({ min: 0, max: 255 }), fc.uint8Array({ maxLength: 40 })), {
  maxLength: 12,
});
const cuts = fc.infiniteStream(fc.integer({ min: 1, max: 30 }));

describe("Frames on a stream of bytes", () => {
  it("are read as they were written, whole or as they come, wherever their bytes are cut", () => {
    fc.assert(
      fc.property(frames, cuts, fc.boolean(), (written, sizes, isWhole) => {
        const stream = Buffer.concat(written.flatMap(([type, bytes]) => [frameHead(type, bytes.length), bytes]));
        const bytes = new FrameBytes();
        const read: [number, Uint8Array][] = [];
        const parts: Buffer[] = [];
        let left = 0;
        const readOn = (): boolean => {
          if (left > 0) {
            const some = bytes.takeSome(left);
            if (some === undefined) return false;
            parts.push(some);
            left -= some.length;
          } else {
            const head = bytes.head();
            if (head === undefined) return false;
            const whole = isWhole ? bytes.takeFrame(head.length) : undefined;
            if (isWhole && whole === undefined) return false;
            if (whole === undefined) {
              bytes.takeHead();
              left = head.length;
            } else parts.push(whole);
            read.push([head.type, new Uint8Array()]);
          }
          const last = read.at(-1);
          if (left === 0 && last !== undefined) last[1] = new Uint8Array(Buffer.concat(parts.splice(0)));
          return true;
        };
        for (let at = 0; at < stream.length; ) {
          const size = sizes.next().value;
          bytes.push(stream.subarray(at, at + size));
          at += size;
          while (readOn()) {
            // Until more has to come.
          }
        }
        expect(read).toEqual(written);
      }),
      { numRuns: histories(500) },
    );
  });

  it("are gone when what has come is let go", () => {
    const bytes = new FrameBytes();
    bytes.push(Buffer.concat([frameHead(1, 3), Buffer.from("ab")]));
    expect(bytes.head()).toEqual({ type: 1, length: 3 });
    expect(bytes.takeFrame(3)).toBeUndefined();
    bytes.clear();
    expect(bytes.head()).toBeUndefined();
    expect(bytes.takeSome(1)).toBeUndefined();
  });
});
