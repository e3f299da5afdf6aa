import { expect, it } from "vitest";
import { PairingRefusal, Pairings } from "./pairings.js";

it("makes no code for a role that no token can have, so that whoever brings one gets a token", async () => {
  const made: string[] = [];
  const createToken = async ({ role }: { role: string }) => `tw_${made.push(role)}`;
  const pairings = new Pairings({ clock: { now: () => 0 } as never, createToken });
  for (const role of ["", " ", "dev ", " dev", "a\u0007b", "a\nb", "a\u202eb", "x".repeat(129), "sharer", "executor"]) {
    expect(() => pairings.open("studio", role), JSON.stringify(role)).toThrow(PairingRefusal);
  }
  // The sentence goes to terminals and logs.
  expect(() => pairings.open("studio", "a\u001b[2J")).toThrow('no token of the role "a\\u{001B}[2J"; say another one');
  for (const role of [undefined, "dev", "two words", "x".repeat(128)]) {
    expect(await pairings.redeem(pairings.open("studio", role).code, "laptop")).toMatchObject({ kind: "paired" });
  }
  expect(made).toEqual(["default", "dev", "two words", "x".repeat(128)]);
});
