// How soon a gateway sees that a token has ended, by a clock that the test moves.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { duplexPair } from "node:stream";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { closeGateways, start } from "../../test/fixtures/gateways.js";
import { sleep, until } from "../../test/fixtures/wait.js";
import { findGateway } from "../control/client.js";

const HOUR_MS = 3_600_000;
/** What is promised. */
const ENDED_MS = 5_000;
/** Long enough for an end that should not come. */
const QUIET_MS = 50;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "toolway-look-"));
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] });
});
afterEach(async () => {
  vi.useRealTimers();
  await closeGateways();
  rmSync(folder, { recursive: true, force: true });
});

it.each(["listens", "serves a pair of streams alone"])(
  "an expired token has nothing open any more 5 s after the clock says so, where the gateway %s [token-ends]",
  async (how) => {
    const gateway = await start({ mcpServers: {} }, { stateDir: folder });
    await gateway.openControl();
    if (how === "listens") await gateway.listen({ port: 0 });
    await (await findGateway(folder))?.post("/tokens", { id: "brief", role: "dev", expires: "60m" });
    const [ours, theirs] = duplexPair();
    let ended = false;
    void gateway.serveStdio(theirs, theirs, { as: "brief" }).then(() => {
      ended = true;
    });
    ours.resume();
    vi.advanceTimersByTime(HOUR_MS / 2);
    await sleep(QUIET_MS);
    expect(ended).toBe(false);
    // Set, by whoever: no time passes in which the gateway could look.
    vi.setSystemTime(Date.now() + HOUR_MS);
    vi.advanceTimersByTime(ENDED_MS);
    await until("the end", () => ended);
  },
);
