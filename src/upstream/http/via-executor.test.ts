// Everything that is tested of HTTP links, once more through an executor: they cannot tell the difference.

import { afterAll, describe, expect, vi } from "vitest";
import { OFFICE, startVia } from "../../../test/fixtures/via.js";
import type { OpenRequester } from "./requester.js";

const via = await startVia("dialled", ["127.0.0.1", "localhost", "*.invalid"]);
let opened = 0;
afterAll(async () => {
  await via.close();
  expect(opened).toBeGreaterThan(0);
});

vi.mock("./pool-requester.js", async (original) => {
  const openPoolRequester: OpenRequester = (target, url, signal) => {
    opened++;
    return via.openRequester({ ...target, via: OFFICE }, url, signal);
  };
  return { ...(await original<typeof import("./pool-requester.js")>()), openPoolRequester };
});

describe.each(["streamable", "streams", "session", "large", "sdk", "sse"])("through an executor: %s", async (suite) => {
  await import(`./${suite}.test.ts`);
});
