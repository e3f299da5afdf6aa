// `drain` with a fake gateway: what is said of the one that goes. What it does is shown in test/engine.

import { afterEach, beforeEach, expect, it } from "vitest";
import { fakeGateway, leaveFolder, makeFolder, run } from "../../../test/fixtures/fake-gateway.js";

beforeEach(makeFolder);
afterEach(leaveFolder);

it("says where the gateway is that goes: its name is drawn, and tells nobody [told-why]", async () => {
  const place = { host: "web-2", address: "10.0.0.1:7420", file: "toolway.json" };
  const going = { gateway: "Xk3Q", isThis: false, isLeaving: false, partitions: 0, place };
  const staying = { gateway: "b7aZ", isThis: true, isLeaving: false, partitions: 64 };
  let looks = 0;
  fakeGateway({
    "/gateways": () => ({ gateways: looks++ === 0 ? [going, staying] : [staying] }),
    "/drain": { gateway: "Xk3Q", drainMs: 0 },
  });
  const { code, out } = await run(["drain", "web-2"]);
  expect(code).toBe(0);
  expect(out).toMatch(/^Gateway Xk3Q \(web-2, 10\.0\.0\.1:7420, toolway\.json\) has handed over/);
});
