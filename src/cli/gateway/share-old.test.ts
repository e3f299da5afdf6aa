// `toolway share` where a gateway runs that does not know of sharing: a control socket as such a gateway has it.

import { rmSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { temporaryFolder } from "../../../test/fixtures/folders.js";
import { type ControlServer, serveControl } from "../../control/server.js";
import { claimSocketPath } from "../../control/socket-path.js";
import { gatewayPort } from "./port.js";

let stateDir: string;
let control: ControlServer;
beforeEach(async () => {
  stateDir = temporaryFolder("toolway-old-");
  control = await serveControl({ path: claimSocketPath(stateDir), routes: { "GET /status": () => ({}) } });
});
afterEach(async () => {
  await control.close();
  rmSync(stateDir, { recursive: true, force: true });
});

it("share ends where the gateway that runs is too old to share, and says what to do [told-why]", async () => {
  const port = await gatewayPort();
  const source = { configPath: undefined, stateDir, stateNamed: true, env: {}, home: stateDir };
  const share = port.share(source, {
    broker: "ws://127.0.0.1:1",
    as: "studio",
    token: undefined,
    canAsk: false,
    signal: new AbortController().signal,
    onLine() {},
  });
  await expect(share).rejects.toMatchObject({
    message: expect.stringContaining("is of an older Toolway, which shares no tools"),
    hint: expect.stringContaining("start it again with this version"),
  });
});
