// `call` from the words of the line to output and exit code, with a fake gateway.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  fakeGateway,
  folder,
  leaveFolder,
  makeFolder,
  run,
  STATUS,
  TOOLS,
} from "../../../test/fixtures/fake-gateway.js";
import { ControlError } from "../../control/server.js";

beforeEach(makeFolder);

afterEach(leaveFolder);

describe("call", () => {
  const text = (value: string): unknown => ({ result: { content: [{ type: "text", text: value }] } });

  it("passes arguments of each form, and prints text plainly", async () => {
    const fake = fakeGateway({ "/call": text("5") });
    expect(await run(["call", "demo__add", "--arg", "a=2", "--arg", "b=3"])).toEqual({ code: 0, out: "5\n", err: "" });
    await run(["call", "add", '{"a":1}']);
    await run(["call", "demo/add", "-"], { stdin: Readable.from(['{"a":', "4}"]) });
    writeFileSync(join(folder, "args.json"), '{"a":5}');
    await run(["call", "demo__add", "@args.json"]);
    const sent = fake.requests.filter(({ path }) => path === "/call").map(({ body }) => body);
    expect(sent).toEqual([
      { server: "demo", tool: "demo__add", arguments: { a: 2, b: 3 } },
      { server: "demo", tool: "demo__add", arguments: { a: 1 } },
      { server: "demo", tool: "demo__add", arguments: { a: 4 } },
      { server: "demo", tool: "demo__add", arguments: { a: 5 } },
    ]);
  });

  it("exits 1 when the tool says error, or the call fails; stdout stays clean", async () => {
    fakeGateway({ "/call": { result: { isError: true, content: [{ type: "text", text: "no such file" }] } } });
    expect(await run(["call", "demo__add"])).toEqual({ code: 1, out: "", err: "no such file\n" });
    fakeGateway({ "/call": { error: { code: -31004, message: "It took too long." } } });
    expect(await run(["call", "demo__add"])).toMatchObject({ code: 1, err: "toolway: It took too long. (-31004)\n" });
  });

  it("prints the whole result with --json", async () => {
    fakeGateway({ "/call": text("5") });
    const { out } = await run(["call", "demo__add", "--json"]);
    expect(JSON.parse(out)).toEqual({ content: [{ type: "text", text: "5" }] });
  });

  it("says what to do about a gateway that is too old to talk to", async () => {
    const { port } = fakeGateway();
    const client = await port.find({ stateDir: "" });
    const session = () => Promise.reject(new ControlError("not-found", "There is none."));
    fakeGateway({}, { find: async () => client && { ...client, session } });
    const { code, err } = await run(["call", "demo__add"]);
    expect(code).toBe(1);
    expect(err).toMatch(/of an older version.*\n.*toolway serve/);
  });

  it("says that the entry of its server hides a tool, and exits with 2 [told-why]", async () => {
    fakeGateway({ "/tools/owners?tool=demo__rm": { servers: ["demo"], hidden: "Its entry hides it." } });
    for (const verb of ["call", "inspect"]) {
      const { code, err } = await run([verb, "demo__rm"]);
      expect(code).toBe(2);
      expect(err).toMatch(/^toolway: Its entry hides it\.\n/);
    }
  });

  it("names the near tools when there is none of that name", async () => {
    fakeGateway();
    const { code, err } = await run(["call", "demo__ad"]);
    expect(code).toBe(2);
    expect(err).toContain("Did you mean demo__add?");
    expect(await run(["call", "demo__add", "{"])).toMatchObject({ code: 2 });
  });

  const [demo] = STATUS.servers;
  const up = { ...demo, state: "ready", listsFromBefore: false };
  const away = (state: string) => ({ ...demo, name: "away", state, lastError: undefined });
  const second = { ...TOOLS[0], name: "away__add", server: "away" };

  it.each(["call", "inspect"])(
    "waits for a server that may have a tool of the same name, and %s refuses a name that both have [told-why]",
    async (verb) => {
      // It tells what it has only after it was asked for a while.
      let asked = 0;
      const isUp = () => asked > 4;
      const fake = fakeGateway({
        "/call": text("5"),
        "/pins": { pins: [] },
        "/status": () => ({ ...STATUS, servers: [up, ++asked && isUp() ? { ...up, name: "away" } : away("starting")] }),
        "/tools": () => ({ tools: isUp() ? [...TOOLS, second] : TOOLS }),
        "/tools/owners?tool=add": () => ({ servers: isUp() ? [] : ["away"] }),
      });
      const { code, out, err } = await run([verb, "add"]);
      expect({ code, out }).toEqual({ code: 2, out: "" });
      expect(err).toContain('toolway: Two servers have a tool "add": demo__add, away__add.\n  Name one of them.\n');
      expect(fake.requests.filter(({ path }) => path === "/call")).toEqual([]);
    },
  );

  it.each(["call", "inspect"])(
    "says whom it could not ask, where %s takes a name for the only tool that has it [told-why]",
    async (verb) => {
      fakeGateway({
        "/call": text("5"),
        "/pins": { pins: [] },
        "/access?server=demo&tool=add": { access: [{ role: "default", allowed: true }] },
        "/status": { ...STATUS, servers: [up, away("backoff")] },
        "/tools/owners?tool=add": { servers: ["away"] },
      });
      const { code, err } = await run([verb, "add"]);
      expect(code).toBe(0);
      expect(err).toBe('toolway: "add" is taken for demo__add. Could not be asked whether they have one, too: away.\n');
      expect((await run([verb, "demo__add"])).err).toBe("");
    },
  );
});
