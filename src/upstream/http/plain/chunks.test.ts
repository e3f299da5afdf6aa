import { expect, it } from "vitest";
import { ChunkedBody } from "./chunks.js";

/** What is read of a text that comes cut at these places, and how it stands then. */
function read(text: string, cuts: readonly number[] = []): { data: string; rest: string; is: string } {
  const body = new ChunkedBody();
  const bytes = Buffer.from(text, "latin1");
  let data = "";
  let at = 0;
  for (const end of [...cuts, bytes.length]) {
    while (at < end && !body.isDone && !body.isBroken) {
      at = body.step(bytes, at, end);
      data += bytes.toString("latin1", body.from, body.to);
    }
  }
  const is = body.isBroken ? "broken" : body.isDone ? "done" : "open";
  return { data, rest: bytes.toString("latin1", at), is };
}

const WHOLE = "5\r\nhello\r\n00C;a=b\r\n, big \r\n rld\r\n0\r\nx-sum: 1\r\n\r\nmore";

it("finds the data, wherever the reads end", () => {
  const whole = { data: "hello, big \r\n rld", rest: "more", is: "done" };
  expect(read(WHOLE)).toEqual(whole);
  for (let cut = 1; cut < WHOLE.length - 4; cut++) expect(read(WHOLE, [cut])).toEqual(whole);
  const everywhere = Array.from({ length: WHOLE.length }, (_, i) => i);
  expect(read(WHOLE, everywhere)).toEqual(whole);
});

it("is open until its last line has come", () => {
  const end = WHOLE.length - "more".length;
  for (let length = 0; length < end; length++) expect(read(WHOLE.slice(0, length)).is).toBe("open");
});

it.each([
  ["no size", "\r\nx\r\n0\r\n\r\n"],
  ["a size that is no number", "g\r\nx\r\n0\r\n\r\n"],
  ["a sign", "-1\r\nx\r\n0\r\n\r\n"],
  ["a space after the size", "1 \r\nx\r\n0\r\n\r\n"],
  ["a size of 4 GiB and more", "100000001\r\nx"],
  ["a bare LF after the size", "1\nx\r\n0\r\n\r\n"],
  ["a bare CR after the size", "1\rx\r\n0\r\n\r\n"],
  ["more data than was said", "1\r\nxy\r\n0\r\n\r\n"],
  ["data without its end", "1\r\nx0\r\n\r\n"],
  ["a bare LF in an extension", "1;a\nb\r\nx\r\n0\r\n\r\n"],
  ["an extension without end", `1;${"a".repeat(20_000)}`],
  ["trailers without end", `0\r\n${"a: b\r\n".repeat(5_000)}`],
  ["a folded trailer", "0\r\na: b\r\n c\r\n\r\n"],
  ["no end after the last line", "0\r\n\rx"],
])("%s breaks it off", (_name, text) => {
  expect(read(text).is).toBe("broken");
});
