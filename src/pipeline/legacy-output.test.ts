import { describe, expect, it } from "vitest";
import { type Reply, renderReply, resultBytes } from "../protocol/reply.js";
import { toLegacyReply } from "./legacy-output.js";

const told = (json: string, isWrapped = false): string => {
  const reply = toLegacyReply(resultBytes(json), isWrapped);
  if (reply.kind === "stream") throw new Error("not a stream");
  const text = renderReply(reply, '"agent"').toString();
  expect(text.startsWith('{"jsonrpc":"2.0","id":"agent","result":')).toBe(true);
  return text.slice('{"jsonrpc":"2.0","id":"agent","result":'.length, -1);
};
const TEXT = '"content":[{"type":"text","text":"t"}]';

describe("the structured output of a tool, for a legacy agent", () => {
  it.each(["[1.0,2]", "null", '"x"', "12345678901234567890", "false"])("is wrapped where it is %s", (value) => {
    expect(told(`{${TEXT},"x":1.50,"structuredContent" : ${value}}`)).toBe(
      `{${TEXT},"x":1.50,"structuredContent" : {"result":${value}}}`,
    );
  });

  it("passes byte for byte where it is an object, or there is none", () => {
    for (const json of [`{${TEXT}}`, `{${TEXT},"structuredContent":\n {"a":[1.0]}}`, '{"resultType":"complete"}']) {
      expect(told(json)).toBe(json);
      const reply = resultBytes(json);
      expect(toLegacyReply(reply, false)).toBe(reply);
    }
  });

  it("is wrapped whatever it is where the list of tools said so", () => {
    expect(told(`{${TEXT},"structuredContent":{"a":1}}`, true)).toBe(
      `{${TEXT},"structuredContent":{"result":{"a":1}}}`,
    );
  });

  it("passes as it is where it is the gateway's own, as a receipt: the list of tools has a form for that [eras-meet]", () => {
    const receipt = { content: [], structuredContent: { queued: true, receipt: "r1" } };
    const reply: Reply = { kind: "result", result: receipt };
    expect(toLegacyReply(reply, true)).toBe(reply);
  });

  it("is said in words too where nothing else is, as by the SDK's servers", () => {
    const block = '{"type":"text","text":"[1,2]"}';
    expect(told('{"content":[],"structuredContent":[1, 2]}')).toBe(
      `{"content":[${block}],"structuredContent":{"result":[1, 2]}}`,
    );
    expect(told('{"structuredContent":[1,2]}')).toBe(`{"structuredContent":{"result":[1,2]},"content":[${block}]}`);
    expect(told('{"structuredContent":[1,2],"content":[ {"type":"image"} ]}')).toBe(
      `{"structuredContent":{"result":[1,2]},"content":[ {"type":"image"} ,${block}]}`,
    );
  });

  it("is not taken for what stands deeper, or in a text", () => {
    for (const json of [
      `{${TEXT},"structuredContent":{"structuredContent":[1]}}`,
      `{${TEXT},"_meta":{"structuredContent":1}}`,
      '{"content":[{"type":"text","text":"{\\"structuredContent\\":[1]}"}]}',
    ]) {
      expect(told(json)).toBe(json);
    }
  });

  it("passes as it is where it cannot be read, or is too much to be read [bounded]", () => {
    const deep = `${"[".repeat(200)}${"]".repeat(200)}`;
    for (const json of ['{"structuredContent":[oops]}', `{"structuredContent":${deep}}`]) {
      expect(told(json)).toBe(json);
    }
  });
});
