// Writes that were kept, and that their server refuses when they come at last: what their agent is told, and what can be done.

import { expect, it } from "vitest";
import { DONE, eachWorld, httpFault, type World } from "../../test/fixtures/outbox/world.js";

let world: World;

eachWorld((one) => {
  world = one;
});

it.each([400, 404, 409, 422])(
  "a kept write that is refused with %i is not lost: its agent reads why, the lane goes on, and an operator sends it again [agent-3] [unknown-is-said]",
  async (status) => {
    const { id } = await world.queued({ title: "refused" });
    const next = await world.queued({ title: "next" });
    world.outbox.poke("tracker");
    await world.rest();
    await world.answer(httpFault("invalid", status));
    expect(world.operations.get("anna", id)).toMatchObject({ state: "failed", why: `HTTP ${status}.` });
    // One line says so, by tool and receipt, and nothing of what was in it.
    const told = world.logged.filter((line) => line.includes("failed"));
    expect(told).toEqual([`outbox: create_issue of server "tracker" (receipt ${id}) has failed: HTTP ${status}.`]);
    expect(world.logged.join("\n")).not.toContain("refused");
    // What is behind it in the lane does not wait for a person.
    expect(world.args(-1)["title"]).toBe("next");
    await world.answer(DONE);
    expect(world.operations.get("anna", next.id)?.state).toBe("done");
    // It is there after a restart, too, and goes out as it was.
    await world.outbox.close();
    world = world.again();
    await world.rest();
    expect(world.operations.show(id)).toMatchObject({ state: "failed", tool: "create_issue" });
    expect(world.sent).toEqual([]);
    await world.operations.retry(id);
    await world.rest();
    expect(world.sent).toHaveLength(1);
    expect(world.args(0)["title"]).toBe("refused");
    await world.answer(DONE);
    expect(world.operations.get("anna", id)).toMatchObject({ state: "done" });
  },
);
