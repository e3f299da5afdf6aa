// The real `codex exec-server` under our suites: what our own executor is held to, and what our client has to live
// with. In the full runs only: Codex is a large download.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectExecutor } from "../../src/executor/client/connect.js";
import { codexOfFullRuns } from "../codex/binary.js";
import { type CodexExecServer, startCodexExecServer } from "../codex/exec-server.js";
import { type Origin, patterned, startOrigin } from "../codex/origin.js";
import { wireSuite } from "../codex/wire-suite.js";
import { startGateway, startHttpFixture } from "../e2e/harness.js";
import { openHttpWire } from "../e2e/wire.js";
import { clientSuite } from "../executor/client-suite.js";
import { callText } from "./gateway.js";
import { full } from "./length.js";
import { report } from "./measure.js";

const codex = await codexOfFullRuns();
if (full && codex.path === undefined) report("codex exec-server", `skipped: ${codex.missing}`);

describe.skipIf(codex.path === undefined)("the real codex exec-server", () => {
  wireSuite("codex exec-server", () => startCodexExecServer());
  clientSuite("codex exec-server", () => startCodexExecServer());

  describe("with our client", () => {
    let executor: CodexExecServer;
    let origin: Origin;
    beforeAll(async () => {
      executor = await startCodexExecServer();
      origin = await startOrigin();
    });
    afterAll(async () => {
      await executor.stop();
      await origin.close();
    });

    // It closes a connection whose frames are larger than 16 MiB, with everything that is under way on it.
    it.each([1_000_000, 13_000_000, 31_000_000])("takes a body of %d bytes [exec-5] [exec-keep]", async (size) => {
      const client = await connectExecutor({ url: executor.url, token: executor.token });
      const body = patterned(size);
      const answer = await client.request({ method: "POST", url: `${origin.url}/fine`, headers: [], body });
      expect(answer.status).toBe(200);
      expect(origin.seen.at(-1)?.body.equals(body)).toBe(true);
      await client.close();
    });

    it('serves a server of a gateway that is "via" its name [exec-keep]', async () => {
      const mcp = await startHttpFixture("stateful");
      const gateway = await startGateway({
        executors: { codex: { url: executor.url, token: executor.token } },
        mcpServers: { counter: { type: "http", url: mcp.url, via: "codex" } },
      });
      const wire = await openHttpWire(gateway.url);
      await expect.poll(() => callText(wire, "count")).toContain('"count":');
      expect(gateway.log()).not.toContain(executor.token);
      report("codex exec-server", "a gateway's server behind the exec-server of Codex 0.166.0: answered [exec-keep]");
    });
  });
});
