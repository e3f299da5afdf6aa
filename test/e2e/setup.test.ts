// `toolway setup` with a real gateway: what it wrote lets a client in as its own principal, until it is taken out.

import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { connectStdioV1, toolNames, waitForTools } from "./clients.js";
import { send } from "./eras.js";
import { cli, type Gateway, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";

let gateway: Gateway;
let home: string;

beforeAll(async () => {
  home = await temporaryDirectory();
  await mkdir(join(home, ".codex"));
  const roles = { reader: { allow: ["stateful/whoami"] } };
  gateway = await startGateway(
    { names: "plain", roles, mcpServers: { stateful: stdioFixture("stateful") } },
    { auth: true },
  );
});

/** The command line of somebody whose home is a folder of this test. */
async function toolway(...words: string[]): Promise<string> {
  const args = [cli, ...words, "--config", gateway.configPath, "--state", gateway.stateDir];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: { PATH: process.env["PATH"], HOME: home },
  });
  return stdout;
}

describe("a client that is set up", () => {
  it("is let in by the header that its helper prints, with its role, until it is taken out [setup-keeps] [token-ends]", async () => {
    await writeFile(join(home, ".claude.json"), '{\n  "theme": "dark" // mine\n}\n');
    await toolway("setup", "claude", "--role", "reader", "--yes");
    const text = await readFile(join(home, ".claude.json"), "utf8");
    expect(text).toContain('"theme": "dark", // mine');
    const { headersHelper, url } = JSON.parse(text.replace("// mine", "")).mcpServers.toolway;
    expect(url).toBe(gateway.url);
    // As the client runs it: by a shell, in a folder of its own, with little in its environment.
    const { stdout } = await promisify(execFile)("/bin/sh", ["-c", headersHelper], { cwd: "/", env: {} });
    const headers = JSON.parse(stdout) as Record<string, string>;
    const list = () => send(url, { method: "tools/list", headers });
    await until("the tools of its role", async () => {
      const tools = (await list()).reply.result?.["tools"] as { name: string }[];
      return tools.map(({ name }) => name).join() === "whoami";
    });
    expect(await toolway("setup", "claude", "--remove", "--yes")).toContain("The token of setup-claude is revoked.");
    expect((await list()).status).toBe(401);
  });

  it("comes in over stdio as its own principal, and is out when its token is revoked [token-ends]", async () => {
    await toolway("setup", "zed", "--role", "reader", "--yes");
    const settings = JSON.parse(await readFile(join(home, ".config", "zed", "settings.json"), "utf8"));
    const { args } = settings.context_servers.toolway as { args: string[] };
    expect(args.slice(1)).toEqual(["stdio", gateway.configPath, "--as", "setup-zed", "--state", gateway.stateDir]);
    const client = await connectStdioV1(gateway, undefined, ["--as", "setup-zed"]);
    await waitForTools(client, "whoami");
    expect(await toolNames(client)).toEqual(["whoami"]);
    let isClosed = false;
    client.onclose = () => {
      isClosed = true;
    };
    await toolway("setup", "zed", "--remove", "--yes");
    await until("the end of its program", () => isClosed);
    await expect(connectStdioV1(gateway, undefined, ["--as", "setup-zed"])).rejects.toThrow();
  });
});
