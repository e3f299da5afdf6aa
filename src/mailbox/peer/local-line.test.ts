import { describe, expect, it } from "vitest";
import { until } from "../../../test/fixtures/wait.js";
import { MAX_UNACKED_BYTES } from "../../sockets/limits.js";
import { LocalEnd } from "./local-line.js";

describe("a line within one process", () => {
  it("tells that there is room again only after there was none, as a socket does", async () => {
    const [ours, theirs] = LocalEnd.pair();
    let drains = 0;
    let frames = 0;
    ours.attach({ onMessage() {}, onDrain: () => void drains++, onClose() {} });
    theirs.attach({ onMessage: () => void frames++, onDrain() {}, onClose() {} });
    for (let n = 0; n < 10; n++) ours.send("small");
    await until(() => frames === 10);
    expect(drains).toBe(0);
    const half = "x".repeat(MAX_UNACKED_BYTES / 2);
    for (let n = 0; n < 4; n++) ours.send(half);
    await until(() => frames === 14);
    expect(drains).toBe(1);
  });
});
