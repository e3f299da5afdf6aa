// `log-level` and the options of the log, with a fake gateway.

import { afterEach, beforeEach, expect, it } from "vitest";
import { fakeGateway, leaveFolder, makeFolder, run } from "../../../test/fixtures/fake-gateway.js";
import { withLogOptions } from "./serve.js";

beforeEach(makeFolder);

afterEach(leaveFolder);

it("log-level asks, sets, and says until when [told-why]", async () => {
  const until = "2026-01-01T00:00:00.000Z";
  const fake = fakeGateway({ "/log-level": { level: "debug", until, after: "info" } });
  expect((await run(["log-level", "debug", "--for", "10m"])).out).toBe(`debug until ${until}, then info\n`);
  expect(fake.requests.at(-1)).toEqual({ path: "/log-level", body: { level: "debug", forMs: 600_000 } });
  await run(["log-level"]);
  expect(fake.requests.at(-1)).toEqual({ path: "/log-level" });
  for (const words of [["loud"], ["debug", "--for", "soon"], ["debug", "--for", "25h"], ["--for", "1m"]]) {
    expect((await run(["log-level", ...words])).code).toBe(2);
  }
});

it("--log-level and --log-format go before the variables", () => {
  const env = { TOOLWAY_LOG_LEVEL: "warn", OTHER: "x" };
  expect(withLogOptions(env, {})).toEqual(env);
  const both = { TOOLWAY_LOG_LEVEL: "debug", TOOLWAY_LOG_FORMAT: "json", OTHER: "x" };
  expect(withLogOptions(env, { logLevel: "debug", logFormat: "json" })).toEqual(both);
});
