import { describe, expect, it } from "vitest";
import { createLog } from "./log.js";
import { ServerEvents } from "./server-events.js";

describe("what the gateway's log says of a server", () => {
  it("is kept for that server, also below the level of the log, and is still logged [bounded]", () => {
    let nowMs = 0;
    const written: string[] = [];
    const serverEvents = new ServerEvents(() => nowMs);
    const log = serverEvents.keeping(createLog({ write: (text) => void written.push(text), level: "warn" }));
    log.info('server "a": ready after 12 ms');
    nowMs = 60_000;
    log.warn('server "a": gone, with canary in it');
    log.warn('server "b": gone');
    log.error("no server at all");
    log.error('server "half');
    serverEvents.turned("a", "open");
    expect(serverEvents.answer("a", (text) => text.replace("canary", "<redacted>"))).toEqual({
      lines: [
        { at: "1970-01-01T00:00:00.000Z", level: "info", text: "ready after 12 ms" },
        { at: "1970-01-01T00:01:00.000Z", level: "warn", text: "gone, with <redacted> in it" },
      ],
      breaker: [{ at: "1970-01-01T00:01:00.000Z", circuit: "open" }],
    });
    expect(written).toHaveLength(4);
    expect(serverEvents.answer("c", String)).toEqual({ lines: [], breaker: [] });
  });

  it("is bounded in lines, in length and in servers [bounded]", () => {
    const serverEvents = new ServerEvents(() => 0);
    const log = serverEvents.keeping(createLog({ write: () => {} }));
    for (let n = 0; n < 100; n++) log.warn(`server "a": ${n} ${"x".repeat(5_000)}`);
    for (let n = 0; n < 300; n++) serverEvents.turned("a", n % 2 === 0 ? "open" : "closed");
    const { lines, breaker } = serverEvents.answer("a", String);
    expect([lines.length, lines[0]?.text.slice(0, 3), lines[0]?.text.length]).toEqual([40, "60 ", 1_000]);
    expect([breaker.length, breaker.at(-1)?.circuit]).toEqual([120, "closed"]);
    for (let n = 0; n < 500; n++) log.warn(`server "s${n}": x`);
    expect(serverEvents.answer("a", String).lines).toEqual([]);
    expect(serverEvents.answer("s0", String).lines).toHaveLength(1);
  });
});
