import { describe, expect, it } from "vitest";
import { resultBytes } from "../../protocol/reply.js";
import type { CallSender } from "../link/own-call.js";
import { ServerLists } from "./lists.js";
import { hashOf } from "./rereads.js";
import { ToolsCheck } from "./tools-check.js";

/** A program that lists these tools, or none that can be read. */
const program = (...names: string[]): CallSender & { tools: string } => ({
  tools: JSON.stringify(names.map((name) => ({ name }))),
  send(call) {
    queueMicrotask(() => call.reply(resultBytes(`{"tools":${this.tools}}`)));
  },
  cancel: () => {},
});

function checkOf(shared: CallSender) {
  let hash: string | undefined;
  let readings = 0;
  const lists: ServerLists = new ServerLists({
    onBegin: () => {},
    onList: (_kind, items) => {
      hash = hashOf(items);
    },
    onFailed: () => {},
    onFault: () => {},
  });
  const check = new ToolsCheck({
    lists,
    shownHash: () => hash,
    readShown: () => {
      readings++;
      return lists.read(shared, "tools", true, true);
    },
    forAgents: (reason) => `told: ${reason}`,
  });
  return { check, readings: () => readings };
}

describe("the tools of a process that is one session's", () => {
  it("cost no reading where they are those that agents are shown, and one where they are others [host-12]", async () => {
    const shared = program("a");
    const { check, readings } = checkOf(shared);
    await check.again();
    expect(await check.ofSession(program("a"))).toBeUndefined();
    expect(readings()).toBe(1);
    // A list that depends on the agent is looked at once for each list that is shown.
    for (let i = 0; i < 3; i++) expect(await check.ofSession(program("a", "for some"))).toBeUndefined();
    expect(readings()).toBe(2);
    shared.tools = '[{"name":"a","description":"evil"}]';
    expect(await check.ofSession(program("b"))).toBeUndefined();
    expect(readings()).toBe(3);
    expect(await check.ofSession(program("a", "for some"))).toBeUndefined();
    expect(readings()).toBe(4);
  });

  it("say why they cannot be read, or why those that are shown cannot, as agents may hear it [host-12]", async () => {
    const shared = program("a");
    const { check } = checkOf(shared);
    await check.again();
    const broken = program();
    broken.tools = "oops";
    expect(await check.ofSession(broken)).toMatch(/^told: /);
    shared.tools = '"none"';
    expect(await check.ofSession(program("b"))).toMatch(/^told: .*has no "tools" list/);
    expect(await check.again()).toMatch(/^told: /);
  });

  it("are remembered for a few kinds of agents only [bounded]", async () => {
    const { check, readings } = checkOf(program("a"));
    await check.again();
    for (let i = 0; i < 20; i++) await check.ofSession(program(`kind ${i}`));
    expect(readings()).toBe(21);
    for (let i = 0; i < 20; i++) await check.ofSession(program(`kind ${i}`));
    expect(readings()).toBe(21 + 4);
  });
});
