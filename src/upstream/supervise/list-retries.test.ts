import { expect, it } from "vitest";
import { SUPERVISED } from "../../../test/fixtures/spec.js";
import { neverGivenUp } from "../../config/config.js";
import { listRetryMs } from "./list-retries.js";

it("lists are tried again after waits that double to a minute, to five seconds behind a mailbox, and rarely where a credential is refused [told-why]", () => {
  const { supervision } = SUPERVISED;
  const waits = (of: typeof supervision) =>
    [0, 1, 2, 3, 6, 600].map((failures) => listRetryMs(of, failures, "timeout"));
  expect(waits(supervision)).toEqual([1_000, 2_000, 4_000, 8_000, 60_000, 60_000]);
  expect(waits(neverGivenUp(supervision))).toEqual([1_000, 2_000, 4_000, 5_000, 5_000, 5_000]);
  expect(listRetryMs(supervision, 0, "unauthorized")).toBe(15 * 60_000);
});
