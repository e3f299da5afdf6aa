import { describe, expect, it } from "vitest";
import { storeSeen } from "./status.js";

describe("a store that cannot be written, as people are told of it", () => {
  const seen = (code: "disk-full" | "full" | "failed") => {
    const trouble = { code, problem: "What it says.", sinceMs: Date.UTC(2026, 0, 1) };
    return storeSeen({ dir: "/state", store: { trouble } as never });
  };

  it("says what can be taken out where its own bound is reached, which no key of the config sets [status-true]", () => {
    expect(seen("full")).toMatchObject({
      problem: expect.stringMatching(
        /^What it says\. .*`toolway outbox drop` and `toolway mailbox drop` take it out\.$/,
      ),
      isDiskFull: false,
    });
  });

  it("says what the store says of a disk", () => {
    const since = "2026-01-01T00:00:00.000Z";
    expect(seen("disk-full")).toEqual({ path: "/state", problem: "What it says.", since, isDiskFull: true });
    expect(seen("failed")).toEqual({ path: "/state", problem: "What it says.", since, isDiskFull: false });
  });
});
