import { expect, it } from "vitest";
import { heldIo } from "../../../test/fixtures/held-io.js";
import { newsOfLine, sharingText } from "./sharing.js";

it("shows what is hidden in the names of tools, servers and roles, in a pipe too [terminal-inert]", () => {
  const odd = "a\u001b[2Jb\u202ec";
  const tools = [odd, "plain"];
  const plan = {
    kind: "sharing",
    servers: [{ name: odd, tools: 2 }],
    tools,
    roles: [{ role: odd, tools: 1 }],
    unlistedRoles: "allow",
    asked: [odd],
  } as const;
  for (const isTTY of [false, true]) {
    const { io } = heldIo({ isTTY, env: { NO_COLOR: "1" } });
    const text = sharingText(plan, { broker: "ws://127.0.0.1:7440", as: "studio" }, io);
    for (const hidden of ["\u001b", "\u202e"]) expect(text).not.toContain(hidden);
    expect(text.split("a\\u{001B}[2Jb\\u{202E}c")).toHaveLength(5);
    expect(text).toContain(", plain");
  }
});

it("counts one tool as one", () => {
  const one = { kind: "sharing", servers: [{ name: "one", tools: 1 }], tools: ["a"], roles: [], asked: [] } as const;
  const { io } = heldIo({ env: { NO_COLOR: "1" } });
  const text = sharingText({ ...one, unlistedRoles: "allow" }, { broker: "ws://127.0.0.1:7440", as: "studio" }, io);
  expect(text).toContain("one (1 tool)\n");
  expect(text).toMatch(/every role +the one tool\n/);
});

it("tells once why the broker is away, however often it is dialled in vain [told-why]", () => {
  const isNews = newsOfLine();
  const state = (name: string, why?: string) => isNews({ kind: "state", state: name, ...(why && { why }) });
  expect([state("dialling"), state("connected")]).toEqual([true, true]);
  expect([state("waiting", "cut"), state("dialling"), state("waiting", "nobody")]).toEqual([true, false, true]);
  expect([state("dialling"), state("waiting", "nobody"), state("connected")]).toEqual([false, false, true]);
});
