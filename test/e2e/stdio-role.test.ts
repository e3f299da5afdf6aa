// `toolway stdio --role`: an agent that may do less than the default token.

import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { connectStdioV1, toolNames, waitForTools } from "./clients.js";
import { startGateway, stdioFixture, temporaryDirectory } from "./harness.js";
import { runCli } from "./operator.js";

describe("an agent on stdio that is narrowed to a role", () => {
  const config = {
    names: "plain" as const,
    roles: { reader: { allow: ["stateful/whoami"] } },
    mcpServers: { stateful: stdioFixture("stateful") },
  };

  it.each(["joined to a gateway", "being one"])(
    "sees and calls what the role allows, and nothing else: %s",
    async (how) => {
      const gateway = await startGateway(config);
      const alone = { configPath: gateway.configPath, stateDir: join(await temporaryDirectory(), "state") };
      const target = how === "being one" ? alone : gateway;
      const client = await connectStdioV1(target, undefined, ["--role", "reader"]);
      await waitForTools(client, "whoami");
      expect(await toolNames(client)).toEqual(["whoami"]);
      await expect(client.callTool({ name: "count", arguments: {} })).rejects.toMatchObject({ code: -31007 });
      const everything = await connectStdioV1(target);
      await waitForTools(everything, "count", "whoami");

      const args = ["stdio", target.configPath, "--state", target.stateDir, "--role", "raeder"];
      const { code, err } = await runCli(...args);
      expect(code).not.toBe(0);
      expect(err).toContain('There is no role "raeder": the config has reader. Did you mean reader?');
    },
  );
});
