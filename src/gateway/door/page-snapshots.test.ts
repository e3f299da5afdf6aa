import { expect, it } from "vitest";
import type { GatewayStatus, ServerStatus } from "../../contracts/status.js";
import { PageSnapshots, ROWS_A_SNAPSHOT } from "./page-snapshots.js";

/** A gateway of so many servers, and which of them were looked at. */
function gatewayOf(count: number) {
  const states = new Map(Array.from({ length: count }, (_, n) => [`s${n}`, "ready"]));
  let [looked, calls]: [string[], number] = [[], 0];
  return {
    states,
    called: () => calls++,
    /** Since it was last asked. */
    looked() {
      const before = looked;
      looked = [];
      return before;
    },
    glances: () => states.entries(),
    status(isWanted: (server: string) => boolean) {
      const names = [...states.keys()].filter(isWanted);
      looked.push(...names);
      const servers = names.map(
        (name) => ({ name, state: states.get(name), inFlight: calls }) as unknown as ServerStatus,
      );
      return { pid: 1, memory: { heldBytes: 1 }, servers } as unknown as GatewayStatus;
    },
  };
}

it("of few servers all are looked at each time, and one that is gone or new is so at once", () => {
  const gateway = gatewayOf(3);
  const snapshots = new PageSnapshots(gateway);
  snapshots.take(true);
  gateway.called();
  expect(snapshots.take(false)["server/s1"]).toMatchObject({ inFlight: 1 });
  gateway.states.delete("s1");
  gateway.states.set("new", "starting");
  const parts = snapshots.take(false);
  expect(parts["order"]).toEqual(["s0", "s2", "new"]);
  expect(parts["server/new"]).toMatchObject({ state: "starting" });
  expect(parts).not.toHaveProperty(["server/s1"]);
  // What changes with every byte that is held is nobody's to read.
  expect(parts).not.toHaveProperty("memory");
});

it("of many servers a look has a bounded share, one in another state at once, and each of them in turn [bounded]", () => {
  const gateway = gatewayOf(5 * ROWS_A_SNAPSHOT);
  const snapshots = new PageSnapshots(gateway);
  const first = snapshots.take(true);
  expect(gateway.looked()).toHaveLength(5 * ROWS_A_SNAPSHOT);
  gateway.called();
  gateway.states.set("s499", "backoff");
  const second = snapshots.take(false);
  expect(gateway.looked()).toHaveLength(ROWS_A_SNAPSHOT + 1);
  expect(second["server/s499"]).toMatchObject({ state: "backoff" });
  // The same object: it need not be written out to see that nothing changed.
  expect(second["server/s300"]).toBe(first["server/s300"]);
  for (let n = 0; n < 4; n++) snapshots.take(false);
  expect(new Set(gateway.looked()).size).toBe(4 * ROWS_A_SNAPSHOT);
  expect(snapshots.take(false)["server/s300"]).toMatchObject({ inFlight: 1 });
  // Nobody has looked for a while.
  gateway.looked();
  snapshots.take(true);
  expect(gateway.looked()).toHaveLength(5 * ROWS_A_SNAPSHOT);
});
