import { describe, expect, it } from "vitest";
import { styleOf } from "../text/print.js";
import { moveReportText } from "./report-text.js";

describe("what is told of a move", () => {
  const plain = styleOf({ env: {}, isTTY: false });
  const report = { from: "there", to: "here", moved: true, kinds: [], conflicts: [] };

  it("says what stays on a disk that was moved, and nothing of the kind of an engine, which has nothing of it", () => {
    expect(moveReportText(report, false, "engine", plain)).toContain("stays there: its audit log");
    const back = moveReportText(report, false, "local", plain);
    expect(back).toContain("Moved and verified");
    expect(back).not.toContain("audit log");
  });
});
