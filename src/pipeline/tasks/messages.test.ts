import { expect, it } from "vitest";
import { parseMessage, type RequestMessage } from "../../protocol/message.js";
import { RELATED_TASK } from "../../protocol/modern.js";
import { exposeParams } from "./messages.js";

it("a request with another id of its task is as if it had been read with that id, and all else in it stays as it is written", () => {
  for (const params of [
    `{"_meta":{"${RELATED_TASK}":{"taskId":"sealed","x":1.0}},"n":9007199254740993}`,
    `{ "name" : "a" , "_meta" : { "other":[1], "${RELATED_TASK}" : { "taskId" : "s\\u0065aled" } }, "arguments":{ } }`,
  ]) {
    const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;
    const changed = exposeParams(parseMessage(text) as RequestMessage, () => 'its "own"', false);
    expect(changed.text).toBe(text.replace(/"(?:sealed|s\\u0065aled)"/, '"its \\"own\\""'));
    expect(changed).toEqual(parseMessage(changed.text));
  }
});
