// Supervised servers inside a program of your own, without an endpoint: spawned, asked and stopped at run time.

import { fileURLToPath } from "node:url";
import { ConfigError, createHost, HostCallError } from "toolway";

const demo = fileURLToPath(new URL("../../dist/demo/server.js", import.meta.url));

async function main(): Promise<void> {
  const host = await createHost({ roles: { reader: { allow: ["demo/add"] } } });
  try {
    // Resolves when the server is up. The second one starts with its first call.
    await host.spawn({ name: "demo", command: process.execPath, args: [demo] }, { restarts: { max: 3 } });
    await host.spawn({ name: "later", command: process.execPath, args: [demo] }, { lazy: true });

    const reader = { id: "ann", role: "reader" };
    for (const { server, state, tools, error } of await host.discover({ principal: reader })) {
      const names = tools.map(({ name }) => name).join(", ") || "nothing yet";
      process.stdout.write(`${server} (${state}) offers ann ${error?.message ?? names}\n`);
    }

    const sum = await host.call("demo", "add", { a: 2, b: 3 }, { principal: reader });
    process.stdout.write(`2 + 3 = ${JSON.stringify(sum["structuredContent"])}\n`);

    // What a list does not show, a call refuses.
    await host.call("demo", "echo", { text: "hello" }, { principal: reader }).catch((error: unknown) => {
      if (!(error instanceof HostCallError)) throw error;
      process.stdout.write(`${error.fault}: ${error.message}\n`);
    });

    // A guard of the program's own is asked first, whatever the roles say.
    host.setGuard((_principal, server) =>
      server === "later" ? { kind: "deny", reason: "not before noon" } : { kind: "allow" },
    );
    await host.call("later", "add", { a: 1, b: 1 }).catch((error: unknown) => {
      process.stdout.write(`${error instanceof HostCallError ? error.message : String(error)}\n`);
    });

    for (const { name, state, refs, restarts } of host.status()) {
      process.stdout.write(`${name} is ${state}, held by ${refs}, restarted ${restarts} times\n`);
    }
  } finally {
    await host.close();
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof ConfigError ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
