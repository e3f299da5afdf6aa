import { describe, expect, it } from "vitest";
import { locate, MAX_MEMBERS, parseMessage } from "./message.js";

const read = (message: object) => parseMessage(JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }));
const call = (params: object) => ({ method: "tools/call", params: { name: "read_a", arguments: {}, ...params } });

describe("a member whose name differs from the protocol's in case alone is refused [one-reading]", () => {
  it.each([
    ["another tool", call({ Name: "delete_b" })],
    ["another tool, in capitals", call({ NAME: "delete_b" })],
    ["other arguments", call({ Arguments: { all: true } })],
    ["other params", { ...call({}), Params: { name: "delete_b" } }],
    ["other params, with a letter that folds into an s", { ...call({}), "param\u017f": { name: "delete_b" } }],
    ["another method", { method: "x/custom", params: {}, Method: "tools/call" }],
    ["a method beside a result", { result: {}, Method: "tools/call" }],
    ["another id", { ...call({}), ID: 2 }],
    ["another address", { method: "resources/read", params: { uri: "a:b", Uri: "c:d" } }],
    ["another task", { method: "tasks/get", params: { taskId: "a", TASKID: "b" } }],
    ["a method that is spelt otherwise", { method: "Tools/call", params: { name: "a", Name: "b" } }],
    ["the task's token, by the sign of Kelvin", { method: "tasks/get", params: { taskId: "a", "tas\u212aId": "b" } }],
  ])("%s", (_, message) => {
    expect(() => read(message)).toThrow(/by some parsers and not by others/);
  });

  it("the prompt of a completion, when it is looked for", () => {
    const message = read({ method: "completion/complete", params: { ref: { name: "a", Name: "b" } } });
    expect(() => locate(message, ["params", "ref", "name"])).toThrow(/by some parsers and not by others/);
    // The same in the arguments of a tool is the tool's.
    const theirs = read(call({ arguments: { ref: { name: "a", Name: "b" } } }));
    expect(locate(theirs, ["params", "arguments", "ref", "name"])).toBeDefined();
  });

  it("and so are more members than any call has, of which each would have to be looked at", () => {
    const many = Object.fromEntries(Array.from({ length: MAX_MEMBERS + 1 }, (_, n) => [`m${n}`, n]));
    expect(() => read(call(many))).toThrow(/More than/);
  });

  it("but what a tool's arguments, a vendor's method or its members are called is theirs", () => {
    for (const message of [
      call({ arguments: { name: 1, Name: 2, URI: 3 } }),
      call({ _meta: { Name: 1 }, Vendor: 2 }),
      { method: "vendor/do", params: { name: 1, Name: 2 }, extra: 3 },
      { method: "notifications/vendor", params: { Uri: 1 } },
    ]) {
      expect(read(message)).toMatchObject({ method: message.method, params: message.params });
    }
  });
});
