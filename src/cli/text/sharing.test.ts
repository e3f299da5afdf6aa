import { expect, it } from "vitest";
import { heldIo } from "../../../test/fixtures/held-io.js";
import { sharingText } from "./sharing.js";

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
