import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { ProgramCaller } from "../gateway/program-call.js";
import { findAnchor } from "../protocol/anchor.js";
import { renderReply } from "../protocol/reply.js";
import { exposeTasks, hasTasks, TaskIds, taskRefusal } from "./tasks.js";

const ids = new TaskIds(randomBytes(32));
const caller = new ProgramCaller({ id: "ann", role: "dev" });

function expose(text: string) {
  const bytes = Buffer.from(text);
  const anchor = findAnchor(bytes);
  if (anchor === undefined) throw new Error("no id");
  const reply = exposeTasks({ kind: "bytes", bytes, ...anchor }, ids, "builds", caller);
  return { reply, message: JSON.parse(renderReply(reply as never, '"mine"').toString()) as { result: never } };
}

describe("task ids", () => {
  it("lead back to their server, for the principal that got them alone", () => {
    const exposed = ids.expose("builds", "ann", "42.é");
    expect(exposed).toMatch(/^[\w-]+\.[\w-]+$/);
    expect(ids.resolve(exposed, "ann")).toEqual({ server: "builds", own: "42.é" });
    expect(ids.resolve(exposed, "bob")).toBeUndefined();
    expect(ids.expose("builds", "ann", "42.é")).toBe(exposed);
  });

  it("cannot be made up or changed", () => {
    const exposed = ids.expose("builds", "ann", "42");
    for (let i = 0; i < exposed.length; i++) {
      const other = exposed[i] === "A" ? "B" : "A";
      const tampered = exposed.slice(0, i) + other + exposed.slice(i + 1);
      // The last characters of base64url carry spare bits, which say nothing.
      const found = ids.resolve(tampered, "ann");
      if (found !== undefined) expect(found).toEqual({ server: "builds", own: "42" });
    }
    for (const text of ["", ".", "a.b", "a.b.c", "42", `${exposed}.x`])
      expect(ids.resolve(text, "ann")).toBeUndefined();
  });
});

describe("exposeTasks", () => {
  it.each([
    ["modern", '{"jsonrpc":"2.0","id":7,"result":{"resultType":"task","taskId":"t1","x":1.0}}', ["taskId"]],
    ["legacy", '{"result":{"task":{"taskId":"t1","status":"working"}},"jsonrpc":"2.0","id":7}', ["task", "taskId"]],
  ])("names the server in a %s result, and leaves the rest", (_era, text, path) => {
    const { message } = expose(text);
    const exposed = path.reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], message.result);
    expect(ids.resolve(exposed as string, "ann")).toEqual({ server: "builds", own: "t1" });
    expect(message).toMatchObject({ id: "mine" });
  });

  it("keeps what a tool says about tasks of its own", () => {
    const text =
      '{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"\\"taskId\\""}],"y":{"taskId":"t"}}}';
    const { reply } = expose(text);
    expect((reply as { bytes: Buffer }).bytes.toString()).toBe(text);
  });
});

it("servers that have tasks are known in both eras", () => {
  const intro = { version: "", serverInfo: {}, instructions: undefined };
  expect(hasTasks({ ...intro, capabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } })).toBe(true);
  expect(hasTasks({ ...intro, capabilities: { tasks: { list: {} } } })).toBe(true);
  expect(hasTasks({ ...intro, capabilities: { extensions: {} } })).toBe(false);
  expect(hasTasks(undefined)).toBe(false);
});

it("tasks are an extension that a modern request must declare", () => {
  const modern = { era: "modern", capabilities: {} } as never;
  const declaring = { era: "modern", capabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } } as never;
  expect(taskRefusal(modern, "tasks/get")).toMatchObject({ code: -32021, data: { requiredCapabilities: {} } });
  expect(taskRefusal(declaring, "tasks/get")).toBeUndefined();
  expect(taskRefusal(declaring, "tasks/result")).toMatchObject({ code: -32601 });
  expect(taskRefusal(caller, "tasks/result")).toBeUndefined();
});
