import { expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { runSeed, seeded } from "../../test/faults/random.js";
import { Listeners } from "./listeners.js";

/** The rule as it is said, one subscription after another. */
function isUnder(uri: string, subscribed: string): boolean {
  if (uri === subscribed) return true;
  if (!uri.startsWith(subscribed)) return false;
  return subscribed.endsWith("/") || "/?#".includes(uri.charAt(subscribed.length));
}

it("finds, in random histories, those whom a walk over all subscriptions would find, and forgets what ended", () => {
  const random = seeded(runSeed());
  for (let run = 0; run < histories(300); run++) {
    const listeners = new Listeners<number>();
    const all = new Map<string, [uri: string, who: number]>();
    const uri = () => Array.from({ length: 1 + random.int(6) }, () => "ab/?#"[random.int(5)]).join("");
    for (let step = 0; step < 60; step++) {
      const [one, who] = [uri(), random.int(4)];
      if (random.int(3) === 0) {
        listeners.delete(one, who);
        all.delete(`${who} ${one}`);
      } else {
        listeners.add(one, who);
        all.set(`${who} ${one}`, [one, who]);
      }
      const updated = uri();
      const heard = [...all.values()].filter(([subscribed]) => isUnder(updated, subscribed)).map(([, by]) => by);
      expect(new Set(listeners.hearing(updated)), updated).toEqual(new Set(heard));
    }
    for (const [one, who] of all.values()) listeners.delete(one, who);
    expect(listeners.isEmpty).toBe(true);
  }
});

it("tells those of a part of their own set alone, and never adds to it", () => {
  const listeners = new Listeners<string>();
  listeners.add("a:/x", "ada");
  listeners.add("a:/x/y", "bob");
  expect([...(listeners.hearing("a:/x/y/z") ?? [])]).toEqual(["ada", "bob"]);
  expect([...(listeners.hearing("a:/x/y") ?? [])]).toEqual(["bob", "ada"]);
  expect([...(listeners.of("a:/x") ?? [])]).toEqual(["ada"]);
  expect([...(listeners.of("a:/x/y") ?? [])]).toEqual(["bob"]);
});
