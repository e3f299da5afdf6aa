import { describe, expect, it } from "vitest";
import { createLog, type LogFields, type LogOptions } from "./log.js";

/** Whatever ends a line somewhere, steers a terminal, or changes the direction of text. */
const STEERING = [
  ..."\n\r\v\f\u0000\u0008\u001b\u007f\u0085\u009b\u2028\u2029",
  ..."\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
];
const FORGED = "07:10:11.123 info  audit anchor 7:AAAA";

/** What is written of it, to a file or a pipe. */
function written(text: string, fields: LogFields | undefined, options: Partial<LogOptions> = {}): string {
  let all = "";
  const write = (piece: string) => {
    all += piece;
  };
  createLog({ write, now: () => Date.UTC(2026, 0, 1), ...options }).warn(text, fields);
  return all;
}

describe("a line of the log to a file or a pipe", () => {
  it.each(STEERING.map((one) => [one.codePointAt(0)?.toString(16) ?? "", one]))(
    "cannot be forged by what a server says, nor read in another order: U+%s [terminal-inert]",
    (_, character) => {
      const said = `no${character}${FORGED}`;
      const text = written(`server "a": it said ${said}`, { line: said });
      expect(text).toMatch(/^00:00:00\.000 warn {2}server "a": it said no[^\n]*\n$/);
      expect(text.slice(0, -1)).not.toMatch(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u);
      const json = written(`it said ${said}`, { line: said }, { format: "json" });
      expect(json.slice(0, -1)).not.toMatch(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u);
      expect(JSON.parse(json)).toMatchObject({ level: "warn", line: said });
    },
  );

  it("keeps the letters of every script", () => {
    const text = "Grüße, 日本語, العربية, हिन्दी 👍";
    expect(written(text, { text })).toContain(`warn  ${text}`);
  });
});
