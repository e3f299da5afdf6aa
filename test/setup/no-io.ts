// Holds the unit tier to its word: a test there that starts a process or opens a socket fails, and is told where it
// belongs. It fails also where the code under test caught the refusal, as a supervisor does.

import childProcess from "node:child_process";
import dgram from "node:dgram";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";
import { afterEach } from "vitest";

const STARTS = ["spawn", "fork", "exec", "execFile", "spawnSync", "execSync", "execFileSync"] as const;

const refused: Error[] = [];

function refuse(what: string): () => never {
  return () => {
    const error = new Error(
      `A unit test must not ${what}. Give it a part that is played, or name its file in test/tiers.ts (INTEGRATION).`,
    );
    refused.push(error);
    throw error;
  };
}

Object.assign(childProcess, Object.fromEntries(STARTS.map((name) => [name, refuse(`start a process (${name})`)])));
Object.assign(dgram, { createSocket: refuse("open a socket (createSocket)") });
// So that `import { spawn } from "node:child_process"` gives the refusing one too.
syncBuiltinESMExports();
// Every TCP, TLS, HTTP and Unix socket comes by one of these two.
net.Server.prototype.listen = refuse("open a socket (listen)");
net.Socket.prototype.connect = refuse("open a socket (connect)");

afterEach(() => {
  const [first] = refused.splice(0);
  if (first !== undefined) throw first;
});
