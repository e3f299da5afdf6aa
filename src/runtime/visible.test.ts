import { describe, expect, it } from "vitest";
import { hiddenIn, visible, visibleJson } from "./visible.js";

describe("hidden characters", () => {
  it.each([
    ["zero width", "a\u200bb", "a\\u{200B}b"],
    ["bidirectional", `a\u202eb\u2066`, "a\\u{202E}b\\u{2066}"],
    ["tags", "\u{e0048}\u{e0049}", "\\u{E0048}\\u{E0049}"],
    ["controls", "a\u001b[2Jb\u0085", "a\\u{001B}[2Jb\\u{0085}"],
    ["odd spaces", "a\u00a0b\u3000\u2028", "a\\u{00A0}b\\u{3000}\\u{2028}"],
    ["fillers and joiners", "\u3164\ufeff\u00ad\u2800", "\\u{3164}\\u{FEFF}\\u{00AD}\\u{2800}"],
    ["half of a pair", "a\ud800b", "a\\u{D800}b"],
  ])("%s are made visible", (_, text, expected) => {
    expect(visible(text)).toBe(expected);
    expect(hiddenIn(text).length).toBeGreaterThan(0);
    const json = visibleJson(JSON.stringify({ text }, null, 2));
    expect(JSON.parse(json)).toEqual({ text });
    expect(hiddenIn(json.replaceAll("\n", ""))).toEqual([]);
  });

  it("leave plain text alone, in every script", () => {
    const text = "Grüße, 日本語, العربية, हिन्दी, naïve — “quoted” 👍";
    expect(visible(text)).toBe(text);
    expect(hiddenIn(text)).toEqual([]);
  });
});
