// `metrics`, with a fake gateway: in which form it asks, and what it prints.

import { afterEach, beforeEach, expect, it } from "vitest";
import { fakeGateway, leaveFolder, makeFolder, run } from "../../../test/fixtures/fake-gateway.js";

beforeEach(makeFolder);
afterEach(leaveFolder);

it("metrics asks for the form that it is to print, and prints it with one end of line", async () => {
  const families = [{ name: "up", samples: [{ labels: {}, value: 1 }] }];
  const { requests } = fakeGateway({
    "/metrics?format=prometheus": { text: "# TYPE up gauge\nup 1\n" },
    "/metrics?format=openmetrics": { text: "# TYPE up gauge\nup 1\n# EOF\n" },
    "/metrics?format=json": { text: JSON.stringify(families) },
  });
  expect(await run(["metrics"])).toEqual({ code: 0, out: "# TYPE up gauge\nup 1\n", err: "" });
  expect(await run(["metrics", "--openmetrics"])).toEqual({ code: 0, out: "# TYPE up gauge\nup 1\n# EOF\n", err: "" });
  const { code, out } = await run(["metrics", "--json"]);
  expect({ code, found: JSON.parse(out) as unknown }).toEqual({ code: 0, found: families });
  expect(requests.map(({ path }) => path)).toEqual([
    "/metrics?format=prometheus",
    "/metrics?format=openmetrics",
    "/metrics?format=json",
  ]);
});
