// What servers write to stderr: in files of the state directory, shown by `toolway logs`, with or without a gateway.

import { spawn } from "node:child_process";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { callText, connectV1, waitForTools } from "./clients.js";
import { cli, root, type ServerEntry, startGateway, until } from "./harness.js";
import { toolway } from "./operator.js";

const SECRET = "canary-K4vX7tB1nC9f8E7d6C";
const demo = [process.execPath, join(root, "dist/demo/server.js")];
/** Writes lines, one of them with its secret, and then is the demo server. */
const talker: ServerEntry = {
  command: "/bin/sh",
  args: ["-c", 'for i in 1 2 3; do echo "line $i" >&2; done; echo "token is $TOKEN" >&2; exec "$0" "$1"', ...demo],
  env: { TOKEN: SECRET },
};

it("is shown while the gateway runs and afterwards, without secrets, and followed until Ctrl-C [secrets-unseen]", async () => {
  const quiet: ServerEntry = { command: demo[0] ?? "", args: demo.slice(1) };
  const gateway = await startGateway(
    { mcpServers: { talker, quiet } },
    { env: { TOOLWAY_LOG_LEVEL: "debug", TOOLWAY_LOG_FORMAT: "json" } },
  );
  await until("its lines", async () => (await toolway(gateway, "logs", "talker")).out.includes("token is"));
  const { out } = await toolway(gateway, "logs", "talker", "-n", "2");
  expect(out.replace(/^\S+ /gm, "")).toBe("line 3\ntoken is [redacted]\n");
  const folder = join(gateway.stateDir, "logs");
  for (const file of await readdir(folder)) {
    expect((await stat(join(folder, file))).mode & 0o777).toBe(0o600);
    expect(await readFile(join(folder, file), "utf8")).not.toContain(SECRET);
  }
  // At debug the gateway's own log has them as well.
  await until("its line", () => gateway.log().includes('"server":"talker","line":"line 3"'));
  expect(gateway.log()).not.toContain(SECRET);

  const options = ["--config", gateway.configPath, "--state", gateway.stateDir];
  const following = spawn(process.execPath, [cli, "logs", "-f", "-n", "0", "--json", ...options]);
  let followed = "";
  following.stdout.on("data", (chunk: Buffer) => {
    followed += String(chunk);
  });
  const ended = new Promise<number | null>((resolve) => following.once("exit", resolve));
  // A start of the server writes its lines anew.
  await until("the new lines", async () => {
    if (!followed.includes("token is")) await toolway(gateway, "reload", "talker");
    return followed.includes("token is");
  });
  following.kill("SIGINT");
  expect(await ended).toBe(0);
  expect(followed).not.toContain(SECRET);
  const first = JSON.parse(followed.split("\n")[0] ?? "") as unknown;
  expect(first).toEqual({ server: "talker", time: expect.stringMatching(/^\d{4}-.*Z$/), text: "line 1" });

  await gateway.stop();
  const after = await toolway(gateway, "logs");
  expect(after).toMatchObject({ code: 0, err: "" });
  expect(after.out).toMatch(/^\S+Z talker line 1$/m);
  const missing = await toolway(gateway, "logs", "taler");
  expect(missing.code).toBe(2);
  expect(missing.err).toContain("Did you mean talker?");
});

it("of a server that floods delays no call, and takes a bounded part of the disk [bounded] [one-bad-server]", async () => {
  const flood = 'yes "this line is written over and over again" >&2 & exec "$0" "$1"';
  const loud: ServerEntry = { command: "/bin/sh", args: ["-c", flood, ...demo] };
  const gateway = await startGateway({ mcpServers: { loud } });
  const client = await connectV1(gateway.url);
  await waitForTools(client, "echo");
  const { out } = await until("what was left out", async () => {
    const ran = await toolway(gateway, "logs", "loud", "-n", "100000");
    return ran.out.includes("bytes left out") && ran;
  });
  expect(await callText(client, "echo", { text: "still here" })).toBe("still here");
  expect(out.length).toBeLessThan(3 * 1024 * 1024);
});
