import { expect, it, onTestFinished } from "vitest";
import { runAgent } from "./run.js";

it("on Windows `toolway run` says that it does not work there, and names WSL, before it does anything [told-why]", async () => {
  const { platform } = process;
  onTestFinished(() => void Object.defineProperty(process, "platform", { value: platform }));
  Object.defineProperty(process, "platform", { value: "win32" });
  // Whatever it would do needs more than this.
  await expect(runAgent({} as never, {} as never)).rejects.toMatchObject({
    message: expect.stringContaining("works on Linux and macOS"),
    hint: expect.stringContaining("WSL"),
  });
});
