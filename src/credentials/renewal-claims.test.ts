import { expect, it } from "vitest";
import { until } from "../../test/fixtures/wait.js";
import { MemoryMap } from "../store/memory-map.js";
import { type RenewalClaim, RenewalClaims } from "./renewal-claims.js";

it("of two gateways one is at a login's renewal, and one that died holds it for no longer than a renewal lasts [engine-shared] [bounded]", async () => {
  const map = new MemoryMap<RenewalClaim>("claims");
  let nowMs = 0;
  const [a, b] = ["a", "b"].map((self) => new RenewalClaims(map, self, () => nowMs)) as [RenewalClaims, RenewalClaims];
  const order: string[] = [];
  let end = () => {};
  const first = a.hold("linear", () => {
    order.push("a begins");
    return new Promise<void>((resolve) => {
      end = () => {
        order.push("a ends");
        resolve();
      };
    });
  });
  const second = b.hold("linear", async () => void order.push("b"));
  await b.hold("other", async () => void order.push("other"));
  end();
  await Promise.all([first, second]);
  expect(order).toEqual(["a begins", "other", "a ends", "b"]);
  expect(map.get("linear")).toBeUndefined();

  await map.put("linear", { by: "dead" });
  const third = b.hold("linear", async () => void order.push("after the dead"));
  nowMs = 40_000;
  await a.hold("other", async () => {});
  expect(order).not.toContain("after the dead");
  await until("the claim to be taken over", () => {
    nowMs += 40_001;
    return order.includes("after the dead");
  });
  await third;
});
