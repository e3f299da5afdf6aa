// A list that is too long to be kept costs its server that list, and nobody else anything.

import { expect, it } from "vitest";
import { faultServer } from "../faults/gateway.js";
import { startGateway, until } from "./harness.js";
import { hasTool, statusOf, toolway } from "./operator.js";

it("a list of more than 8 MiB is refused, status and doctor name the bound, and other servers have theirs [bounded] [one-bad-server] [told-why]", async () => {
  const mcpServers = { long: faultServer("crowd", ["4500", "--long"]), plain: faultServer("plain") };
  const gateway = await startGateway({ mcpServers });
  await until("the other's tool", () => hasTool(gateway.url, "echo"), 60_000);
  const bound = /^Its tools could not be read: .* more than 8388608 bytes, which is the limit for one\.$/;
  await until("its fault", async () => bound.test((await statusOf(gateway, "long")).lastError ?? ""), 60_000);
  const { out } = await toolway(gateway, "doctor");
  expect(out).toContain("more than 8388608 bytes");
}, 180_000);
