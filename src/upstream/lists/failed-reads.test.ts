import { expect, it } from "vitest";
import { SUPERVISED } from "../../../test/fixtures/spec.js";
import { neverGivenUp } from "../../config/config.js";
import { listRetryMs, ToldFaults } from "./failed-reads.js";

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

it("lists are tried again after waits that double to a minute, to five seconds behind a mailbox, and rarely where a credential is refused [told-why]", () => {
  const { supervision } = SUPERVISED;
  const waits = (of: typeof supervision) =>
    [0, 1, 2, 3, 6, 600].map((failures) => listRetryMs(of, failures, "timeout"));
  expect(waits(supervision)).toEqual([1_000, 2_000, 4_000, 8_000, 60_000, 60_000]);
  expect(waits(neverGivenUp(supervision))).toEqual([1_000, 2_000, 4_000, 5_000, 5_000, 5_000]);
  expect(listRetryMs(supervision, 0, "unauthorized")).toBe(15 * 60_000);
});
