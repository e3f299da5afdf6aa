import { describe, expect, it } from "vitest";
import { Agent, TestCall } from "../../../test/fixtures/links/played.js";
import { HeldCalls } from "./held-calls.js";

const agentOf = (id: string) => Object.assign(new Agent(id), { principal: { id, role: "default" } });

/** How many of `count` calls may wait. */
function waiting(held: HeldCalls, agent: Agent | undefined, count: number): number {
  let taken = 0;
  for (let n = 0; n < count; n++) {
    const call = new TestCall(agent);
    if (held.refusedAsFull(call)) continue;
    held.wait(call);
    taken++;
  }
  return taken;
}

describe("calls that wait for a server to come up", () => {
  it("are one principal's up to three quarters of 1,000, and others have the rest [bounded]", async () => {
    const held = new HeldCalls("s");
    expect([waiting(held, agentOf("ada"), 2_000), waiting(held, agentOf("bob"), 2_000)]).toEqual([750, 187]);
    const refused = new TestCall(agentOf("ada"));
    expect(held.refusedAsFull(refused)).toBe(true);
    const { error } = (await refused.answer()) as { error: { message: string } };
    expect(error.message).toBe('Server "s" is not up, and 750 calls of "ada" wait for it already.');
    // What the gateway itself asks is nobody's, and has all that is left.
    expect([waiting(held, undefined, 100), held.size]).toEqual([63, 1_000]);
  });
});
