// A question of a shared tool, as a person reads it.

import { expect, it } from "vitest";
import { askRow } from "./ask-row.js";

it("shows what is hidden in a question, so that nobody agrees to what stands elsewhere", () => {
  const times = { askedAt: "2026-01-01T00:00:00.000Z", until: "2026-01-01T00:01:00.000Z" };
  const ask = {
    id: 1,
    worker: "w\u200b",
    role: "r",
    server: "one",
    tool: "mark\u2066",
    ...times,
    arguments: '{"a":"\u202ex"}',
  };
  expect(askRow(ask, Date.parse(times.askedAt))).toEqual([
    "1",
    "w\\u{200B} (r)",
    "one/mark\\u{2066}",
    "60 s",
    '{"a":"\\u202ex"}',
  ]);
});
