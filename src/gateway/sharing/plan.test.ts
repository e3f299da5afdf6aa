import { expect, it } from "vitest";
import { resolveConfig } from "../../config/load.js";
import type { Principal } from "../../contracts/caller.js";
import type { Access } from "../../pipeline/access.js";
import { planOf } from "./plan.js";

it("counts the tools of a role by the role alone: the menu of a principal of that name is not the role's [told-truly]", () => {
  const config = resolveConfig({ mcpServers: { s: { command: "x" } }, roles: { dev: { allow: ["s"] } } });
  const access = {
    // A principal called dev sees nothing now.
    decide: ({ id }: Principal) => ({ kind: id === "dev" ? "deny" : "allow" }),
    decideUnderWay: () => ({ kind: "allow" }),
  } as unknown as Access;
  const tools = ["a", "b"].map((ownName) => ({ name: `s__${ownName}`, server: "s", ownName }));
  expect(planOf(config, ["s"], tools, access).roles).toEqual([{ role: "dev", tools: 2 }]);
});
