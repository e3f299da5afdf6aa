// A program that gives a token, where the system has nothing left to start it with.

import { EventEmitter } from "node:events";
import { expect, it, vi } from "vitest";
import { Reaper } from "../runtime/processes/reaper.js";
import { hashStateDir } from "../runtime/processes/reaper-marker.js";

/** As Node gives it when the process has no file descriptors left: without pipes, and the error comes in the next turn. */
vi.mock("node:child_process", async (original) => ({
  ...(await original<typeof import("node:child_process")>()),
  spawn: () => {
    const child = new EventEmitter();
    const error = Object.assign(new Error("spawn gh EMFILE"), { code: "EMFILE" });
    process.nextTick(() => child.emit("error", error));
    return child;
  },
}));

it("a program that cannot be started since no file can be opened is told of, and does not end the gateway [bounded]", async () => {
  const reaper = new Reaper({ stateHash: hashStateDir(`test of commands ${process.pid}`), env: process.env });
  vi.spyOn(reaper, "prepare").mockReturnValue("marker");
  // Files of this tier share a worker: whoever came before may have loaded it with the real one.
  vi.resetModules();
  const { commandSource } = await import("./command.js");
  const source = commandSource({ from: "command", line: ["gh"], ttlMs: 1_000, cwd: "/" }, { env: {}, reaper });
  await expect(source.read()).rejects.toThrow("The command gh could not be started: spawn gh EMFILE.");
});
