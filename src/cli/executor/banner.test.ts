import { hostname } from "node:os";
import { expect, it } from "vitest";
import type { Io } from "../line/io.js";
import { executorBanner } from "./banner.js";

const io = { env: { NO_COLOR: "1" }, isTTY: false } as unknown as Io;

it.each([
  ["ws://127.0.0.1:7430", "ws://127.0.0.1:7430"],
  ["ws://0.0.0.0:7430", `ws://${hostname()}:7430`],
  ["ws://[::]:7430", `ws://${hostname()}:7430`],
])("what the gateway is told of %s can be dialled", (url, told) => {
  const { hostname: host, port } = new URL(url);
  const plan = { kind: "listen", address: { host, port: Number(port) }, rules: ["wiki.internal"], token: "x" } as const;
  expect(executorBanner(plan, url, io)).toContain(`"url": "${told}"`);
});
