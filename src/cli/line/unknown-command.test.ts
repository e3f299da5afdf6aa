import { describe, expect, it } from "vitest";
import { commands } from "../commands/index.js";
import { unknownCommand } from "./unknown-command.js";

const meant = (line: string) => unknownCommand(line.split(" "), commands)?.split("\n  ")[1];

describe("a command that is not there [status-true]", () => {
  it("is answered with the one that means the same", () => {
    expect(meant("servers")).toMatch(/^Did you mean status or list/);
    expect(meant("restart github")).toMatch(/^Did you mean reload/);
    expect(meant("approve")).toMatch(/^Did you mean pins accept/);
    expect(meant("rm x")).toMatch(/^Did you mean remove/);
  });

  it("is answered with those that begin so, or are spelt nearly so", () => {
    expect(meant("stat")).toMatch(/^Did you mean status or state/);
    expect(meant("docter")).toBe("Did you mean doctor?");
    expect(meant("tool")).toBe("Did you mean tools?");
    expect(meant("constructor")).toBe("`toolway --help` lists them.");
  });

  it("is found in a group, too, also in one that does something by itself", () => {
    expect(unknownCommand(["pins", "dif"], commands)).toBe("There is no command pins dif.\n  Did you mean pins diff?");
    expect(meant("token lst")).toBe("Did you mean token list?");
    expect(meant("token xyz")).toBe("It has create, list, show, header, rotate, revoke, redeem.");
  });

  it("is not seen where there is one", () => {
    for (const line of ["pins", "pins --server x", "pins diff x", "status", "call x y", "--help", "serve x"]) {
      expect(meant(line), line).toBeUndefined();
    }
  });

  it("is offered nothing that there is not", () => {
    const few = commands.filter(({ metadata }) => metadata.name === "status" || metadata.name === "serve");
    expect(unknownCommand(["servers"], few)).toContain("Did you mean status?");
    expect(unknownCommand(["rm"], few)).toContain("`toolway --help` lists them.");
  });
});
