import { describe, expect, it } from "vitest";
import type { GatewayClient } from "../gateway/port.js";
import { demandTool, findTool, isDecided, serversToStart, type ToolLine, unknownTool } from "./tool-list.js";

const tool = (server: string, ownName: string): ToolLine => ({ name: `${server}__${ownName}`, server, ownName });
const tools = [tool("demo", "add"), tool("demo", "echo"), tool("git", "commit"), tool("hg", "commit")];

describe("a typed name", () => {
  it("finds its tool by the menu's name, the own name where unique, and server/tool", () => {
    expect(findTool("demo__add", tools)?.name).toBe("demo__add");
    expect(findTool("add", tools)?.name).toBe("demo__add");
    expect(findTool("hg/commit", tools)?.name).toBe("hg__commit");
    expect(findTool("commit", tools)).toBeUndefined();
  });

  it("that is wrong leads to the near ones", () => {
    expect(unknownTool("commit", tools).hint).toBe("Did you mean git__commit, hg__commit?");
    expect(unknownTool("demo__ech", tools).hint).toBe("Did you mean demo__echo?");
    expect(unknownTool("demo_ehco", tools).hint).toBe("Did you mean demo__echo?");
    expect(unknownTool("ad", tools).hint).toBe("Did you mean demo__add?");
    // One letter, or a name of two thirds other letters, is no typo.
    expect(unknownTool("e", tools).hint).toContain("toolway tools");
    expect(unknownTool("demo__sud", tools).hint).toContain("toolway tools");
    expect(unknownTool("zzzzzz", tools).hint).toContain("toolway tools");
    expect(unknownTool("x", []).hint).toContain("doctor");
  });

  it("that may be of a server that is down is told so before another is offered [told-why]", () => {
    expect(unknownTool("commit", tools, "Not up: svn.").hint).toBe(
      "Not up: svn. Did you mean git__commit, hg__commit?",
    );
    expect(unknownTool("svn__log", [], "Not up: svn.")).toMatchObject({
      message: "There is no tool svn__log.",
      hint: "Not up: svn.",
    });
  });
});

describe("a name that several servers may have", () => {
  const { signal } = new AbortController();
  const shared = ["one", "two", "three"].map((server) => tool(server, "tool"));
  const ready = { state: "ready", listsFromBefore: false };

  /** `servers`: their states; whoever is not among `known` may have tools that are not listed. */
  function gatewayOf(listed: readonly ToolLine[], servers: Record<string, object>, known: readonly string[] = []) {
    const names = Object.keys(servers);
    const all = Object.entries(servers).map(([name, state]) => ({ name, listsFromBefore: true, ...state }));
    const get = async (path: string): Promise<unknown> => {
      if (path === "/tools") return { tools: listed };
      if (path === "/status") return { servers: all };
      return { servers: names.filter((name) => !known.includes(name)) };
    };
    return { get } as unknown as GatewayClient;
  }
  const decided = (typed: string, client: GatewayClient) => isDecided(typed, client, signal, () => {});

  it("is not decided by the first of them that answers, and the others are started [told-why]", async () => {
    const servers = { one: ready, two: { state: "starting" }, three: { state: "idle" } };
    const client = gatewayOf(shared.slice(0, 1), servers, ["one"]);
    expect(await decided("tool", client)).toBe(false);
    expect(await serversToStart("tool", client, signal)).toEqual(["two", "three"]);
    const said: string[] = [];
    await isDecided("tool", client, signal, (text) => said.push(text));
    expect(said).toEqual(["Other servers may have a tool tool, too; waiting for two, three …"]);
  });

  it("is decided at once where it says its server", async () => {
    const client = gatewayOf(shared.slice(0, 1), { one: ready, two: { state: "starting" } }, ["one"]);
    expect(await decided("one__tool", client)).toBe(true);
    expect(await decided("one/tool", client)).toBe(true);
  });

  it.each([{ state: "misconfigured" }, { state: "stopped" }, { state: "backoff" }, { state: "ejected" }, ready])(
    "does not wait for one that is %o",
    async (two) => {
      expect(await decided("tool", gatewayOf(shared.slice(0, 1), { one: ready, two }, ["one"]))).toBe(true);
    },
  );

  it("does not wait for one whose tools are known from before, though it is not up", async () => {
    const client = gatewayOf(shared.slice(0, 1), { one: { state: "idle" }, two: { state: "idle" } }, ["one", "two"]);
    expect(await decided("tool", client)).toBe(true);
  });

  it("is refused where several have it, which are named [told-why]", async () => {
    const client = gatewayOf(shared, { one: ready, two: ready, three: ready }, ["one", "two", "three"]);
    await expect(demandTool("tool", client, signal, () => {})).rejects.toMatchObject({
      message: 'Three servers have a tool "tool": one__tool, two__tool, three__tool.',
      hint: "Name one of them.",
      kind: "usage",
    });
    expect(await demandTool("two__tool", client, signal, () => {})).toBe(shared[1]);
  });

  it("is of the only one that has it, and whoever could not be asked is named [told-why]", async () => {
    const told: string[] = [];
    const servers = { one: ready, two: { state: "backoff" }, three: { state: "stopped" } };
    const client = gatewayOf(shared.slice(0, 1), servers, ["one"]);
    expect(await demandTool("tool", client, signal, (text) => told.push(text))).toBe(shared[0]);
    expect(told).toEqual([
      'toolway: "tool" is taken for one__tool. Could not be asked whether they have one, too: two.',
    ]);
    expect(await demandTool("one__tool", client, signal, (text) => told.push(text))).toBe(shared[0]);
    expect(told).toHaveLength(1);
  });
});
