import { describe, expect, it } from "vitest";
import { heldIo } from "../../../test/fixtures/held-io.js";
import { moveReportText } from "./verbs.js";

describe("what is told of a move", () => {
  const { io: plain } = heldIo();
  const report = { from: "there", to: "here", moved: true, kinds: [], conflicts: [] };

  it("says what stays on a disk that was moved, and nothing of the kind of an engine, which has nothing of it", () => {
    expect(moveReportText(report, false, "engine", plain)).toContain("stays there: its audit log");
    const back = moveReportText(report, false, "local", plain);
    expect(back).toContain("Moved and verified");
    expect(back).not.toContain("audit log");
  });

  it("fits the width of a terminal [status-true]", () => {
    const kinds = [{ kind: "tokens", count: 12, hash: "0123456789ab", written: 5, removed: 3 }];
    const { io } = heldIo({ isTTY: true, columns: 50, env: { NO_COLOR: "1" } });
    const text = moveReportText({ ...report, kinds }, false, "engine", io);
    expect(text).toMatch(/^tokens +12 +0123456789ab +5 written, 7.*…$/m);
    expect(text.split("\n").find((line) => line.startsWith("tokens"))).toHaveLength(50);
  });
});
