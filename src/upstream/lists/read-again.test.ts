// A list that is read again: what it has in common with the last reading is not made anew.

import { expect, it } from "vitest";
import type { UpstreamCall } from "../../contracts/upstream.js";
import { takeCanonical } from "../../protocol/canonical.js";
import { resultBytes } from "../../protocol/reply.js";
import type { CallSender } from "../link/own-call.js";
import { ServerLists } from "./lists.js";

const tool = (name: string, description: string) => JSON.stringify({ description, name });

/** Each reading brings the next of these lists. `prepared` are the entries of the last one whose canonical text was made ahead. */
function reading(...lists: string[][]) {
  const heard = { texts: [] as string[], prepared: [] as string[] };
  const nothing = () => {};
  const sender: CallSender = {
    send: (call: UpstreamCall) => {
      const list = lists.shift() ?? [];
      queueMicrotask(() => call.reply(resultBytes(`{"tools":[${list.join(",")}]}`)));
    },
    cancel: nothing,
  };
  const reader = new ServerLists({
    onBegin: nothing,
    onList: (_, items) => {
      heard.texts = items.map(({ json }) => json);
      // Of what was made ahead, this text is not read.
      const made = items.map(({ value }) => takeCanonical({ json: "null", value }).text);
      heard.prepared = made.filter((text) => text !== "null");
    },
    onFailed: nothing,
    onFault: nothing,
  });
  return { read: () => reader.read(sender, "tools", true, true), heard };
}

it("the definitions that are as they were are not put into canonical words again", async () => {
  const [a, b, other] = [tool("a", "as it was"), tool("b", "as it was"), tool("b", "another")];
  const { read, heard } = reading([a, b], [a, b], [a, other], [other]);
  await read();
  expect(heard).toEqual({ texts: [a, b], prepared: [a, b] });
  await read();
  expect(heard).toEqual({ texts: [a, b], prepared: [] });
  await read();
  expect(heard).toEqual({ texts: [a, other], prepared: [other] });
  // It stands in another place: nothing is known of it there.
  await read();
  expect(heard).toEqual({ texts: [other], prepared: [other] });
});
