import { expect, it } from "vitest";
import { ToldFaults } from "./told-faults.js";

const turn = () => new Promise((resolve) => setImmediate(resolve));

it("lists that fail together are told in one line, with why and when they are read again [told-why]", async () => {
  const lines: string[] = [];
  let retryInMs: number | undefined;
  const faults = new ToldFaults({ tell: (text) => lines.push(text), retryInMs: () => retryInMs });
  for (const kind of ["tools", "prompts", "resources", "resourceTemplates"] as const) faults.failed(kind, "it is away");
  // It is decided behind the failures.
  retryInMs = 2_000;
  await turn();
  expect(lines).toEqual([
    "its tools, prompts, resources and resource templates could not be read: it is away. Tried again in 2 s.",
  ]);
  retryInMs = undefined;
  faults.failed("tools", "no list");
  faults.failed("prompts", "not now");
  await turn();
  expect(lines.slice(1)).toEqual(["its tools could not be read: no list", "its prompts could not be read: not now"]);
});
