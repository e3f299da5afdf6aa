// The gateway inside a program of your own: two servers behind it, a call through it, an endpoint for agents.

import { fileURLToPath } from "node:url";
import { CallError, ConfigError, createGateway } from "toolway";

const demo = fileURLToPath(new URL("../../dist/demo/server.js", import.meta.url));

async function main(): Promise<void> {
  const gateway = await createGateway({
    mcpServers: {
      demo: { command: process.execPath, args: [demo] },
      // One process for each agent session, and one tool that nobody sees.
      private: { command: process.execPath, args: [demo], isolation: "session", tools: { wait: { hide: true } } },
    },
  });
  try {
    // A call waits for its server to be up.
    const result = await gateway.call("demo__add", { a: 2, b: 3 });
    process.stdout.write(`2 + 3 = ${JSON.stringify(result["structuredContent"])}\n`);

    for (const { name, server } of await gateway.tools()) process.stdout.write(`${name} of ${server}\n`);

    const { url } = await gateway.listen({ host: "127.0.0.1", port: 0 });
    process.stdout.write(`agents may connect at ${url}\n`);

    for (const { name, state } of gateway.status().servers) process.stdout.write(`${name} is ${state}\n`);
  } catch (error) {
    if (error instanceof CallError) process.stderr.write(`the call failed with ${error.code}: ${error.message}\n`);
    else throw error;
  } finally {
    await gateway.close();
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof ConfigError ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
