#!/usr/bin/env node
// The program `toolway`: gives the process's streams and signals to the CLI. The only file that exits.

import { homedir } from "node:os";
import { Exit } from "./line/errors.js";
import { type Io, Stopped } from "./line/io.js";
import { runCli } from "./program.js";

const stop = new AbortController();

function onSignal(by: "SIGINT" | "SIGTERM"): void {
  // The second Ctrl-C: whoever presses it does not want to wait for the drain.
  if (stop.signal.aborted && by === "SIGINT") process.exit(Exit.interrupted);
  stop.abort(new Stopped(by));
}

process.on("SIGINT", () => onSignal("SIGINT"));
process.on("SIGTERM", () => onSignal("SIGTERM"));

// `toolway tools | head -1`: the reader has what it wanted.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(error.code === "EPIPE" ? Exit.ok : Exit.failure);
});

const io: Io = {
  // Made when first asked for: most verbs read nothing, and opening it costs a stream.
  get stdin() {
    return process.stdin;
  },
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
  home: homedir(),
  isTTY: process.stdout.isTTY === true,
  isErrTTY: process.stderr.isTTY === true,
  columns: process.stdout.isTTY === true ? process.stdout.columns : undefined,
  signal: stop.signal,
};

const code = await runCli(process.argv.slice(2), io);
// Whatever a library left open must not keep a finished command alive; what was written gets out first.
process.stdout.write("", () => process.stderr.write("", () => process.exit(code)));
