// What arrives is what was sent, byte for byte, but for the ids and progress tokens that each hop owns.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectV1, waitForTools } from "./clients.js";
import { fixtureOver, type Gateway, type ServerEntry, startGateway, until } from "./harness.js";
import { lastOf, ODD_TOKENS, openHttpWire, openStdioWire, type Wire } from "./wire.js";

/** Answers as a server may write them; @ID@ is the id of the request. */
const ANSWERS: Record<string, string> = {
  plain: '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[]}}',
  "id last": '{"result":{"content":[{"type":"text","text":"x"}]},"jsonrpc":"2.0","id":@ID@}',
  "unknown members at the top":
    '{"x-before":{"a":[]},"jsonrpc":"2.0","id":@ID@,"x":null,"result":{},"x-after":"\\u0000"}',
  "unknown members everywhere":
    '{"jsonrpc":"2.0","id":@ID@,"result":{"x-r":1,"content":[{"x-c":2,"type":"text","text":"t","_meta":{"a/b":{}},' +
    '"annotations":{"x-a":[],"priority":0.50}},{"type":"x-unknown","payload":{"deep":[[[]]]}}],"isError":false,' +
    '"structuredContent":{"z":1,"a":2},"_meta":{"fixture/m":[1,2]}}}',
  "ids that are not its id":
    '{"x":{"id":999,"result":1},"result":{"id":5,"content":[{"type":"text","text":"\\",\\"id\\":7}"}]},"id":@ID@,"jsonrpc":"2.0"}',
  "numbers that JavaScript cannot hold":
    '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[],"structuredContent":{"big":12345678901234567890,' +
    '"one":1.0,"exp":1E400,"small":-0,"long":0.1000000000000000055511151231257827}}}',
  "text of all kinds":
    '{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"type":"text","text":"\\ud800 \\u2028 \u2028\u2029 \u0085 é ' +
    '😀 \\ud83d\\ude00 \\/ \\u0041 \\u0000 \u007f"}]}}',
  "white space": '{ "jsonrpc" : "2.0" ,\t"id" :  @ID@ , "result" : { "content" : [ ] } }',
  "an escaped key": '{"jsonrpc":"2.0","\\u0069d":@ID@,"result":{"content":[]}}',
  "an error with more in it":
    '{"error":{"x-e":true,"data":{"n":1.0,"list":[1,2]},"message":"no \\ud800","code":-32099},"id":@ID@,"jsonrpc":"2.0"}',
  "no content at all": '{"jsonrpc":"2.0","id":@ID@,"result":{}}',
};

const call = (id: string, tool: string, args: string, more = "") =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${tool}","arguments":${args}${more}}}`;

const LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';

const IDS = ["7", '"seven"', '"é\\u0041\\""', "9007199254740991"];

describe.each(["stdio", "http"] as const)("what comes from a server over %s", (kind) => {
  let gateway: Gateway;
  let entry: ServerEntry;

  beforeAll(async () => {
    entry = await fixtureOver(kind, "fidelity");
    gateway = await startGateway({ mcpServers: { fidelity: entry } });
    const client = await connectV1(gateway.url);
    await waitForTools(client, "echo_raw");
    await client.close();
  });

  const agents: Record<string, () => Promise<Wire>> = {
    HTTP: () => openHttpWire(gateway.url),
    stdio: () => openStdioWire(gateway),
  };

  describe.each(Object.entries(agents))("and goes to an agent over %s", (_agent, connect) => {
    let wire: Wire;

    beforeAll(async () => {
      wire = await connect();
      await until("the tools", async () => lastOf(await wire.send(LIST)).includes("echo_raw"));
    });

    afterAll(() => wire.close());

    it.each(Object.entries(ANSWERS))("keeps an answer as it is: %s", async (_name, template) => {
      for (const id of IDS) {
        const answer = await wire.send(call(id, "answer", JSON.stringify({ template })));
        expect(lastOf(answer)).toBe(template.replace("@ID@", () => id));
      }
    });

    it("keeps deep results as they are", async () => {
      const levels = 100;
      const deep = `${"[".repeat(levels)}${"]".repeat(levels)}`;
      expect(lastOf(await wire.send(call("1", "deep", `{"levels":${levels}}`)))).toBe(
        `{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"deep":${deep}}}}`,
      );
    });

    it.each([3_000, 70_000, 8 * 1024 * 1024])("keeps a result of %i bytes as it is", async (bytes) => {
      const answer = lastOf(await wire.send(call('"big"', "big", `{"bytes":${bytes}}`)));
      const unit = 'a"\\\u2028é😀';
      const filler = JSON.stringify(unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit))));
      const wanted = `{"result":{"content":[{"type":"text","text":${filler}}],"x":1.0},"jsonrpc":"2.0","id":"big"}`;
      // Not toBe: a difference of 8 MiB would be printed.
      expect(answer.length).toBe(wanted.length);
      expect(answer === wanted).toBe(true);
    });

    it("requests arrive as they were sent [agent-11]", async () => {
      const request = (id: string) =>
        `{"x-top":[1.0],"params":{"x-p":{"n":12345678901234567890},"_meta":{"a/b":1.50,"traceparent":"00-1-2-03"},` +
        `"arguments":{"z":"\\ud800 \u2028 é","a":-0,"id":3,"id2":[[]]},"name":"echo_raw"},"id":${id},` +
        `"method":"tools/call","jsonrpc":"2.0"}`;
      const { result } = JSON.parse(lastOf(await wire.send(request('"mine"')))) as {
        result: { content: [{ text: string }] };
      };
      const arrived = result.content[0].text;
      const id = /,"id":(\d+),"method"/.exec(arrived)?.[1] ?? "none";
      expect(arrived).toBe(request(id));
    });

    it("progress keeps everything but its token, which is the agent's again, as it was written [eras-meet]", async () => {
      const notification =
        '{"x-n":1.0,"method":"notifications/progress","params":{"x-p":{"a":[]},"progress":0.50,"progressToken":@TOKEN@,' +
        '"_meta":{"a/b":1}},"jsonrpc":"2.0"}';
      const args = JSON.stringify({ notification, template: ANSWERS["plain"] });
      for (const token of ODD_TOKENS) {
        const answer = await wire.send(call("5", "notify_first", args, `,"_meta":{"progressToken":${token}}`));
        expect(answer.messages).toContain(notification.replace("@TOKEN@", token));
        expect(lastOf(answer)).toBe(ANSWERS["plain"]?.replace("@ID@", "5"));
      }
    });

    it("log messages of a call keep everything", async () => {
      const notification =
        '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":{"n":1.0},"x-m":[1]},"x":0}';
      const args = JSON.stringify({ notification, template: ANSWERS["plain"] });
      const answer = await wire.send(call("6", "notify_first", args, ',"_meta":{"progressToken":1}'));
      expect(answer.messages).toContain(notification);
    });

    it("tools are listed as their server wrote them", async () => {
      const list = lastOf(await wire.send(LIST));
      expect(list).toContain(
        '{"x-unknown":{"a":[1.0,-0,1E2,12345678901234567890]},"inputSchema":{"type":"object","x-schema":1.50,',
      );
      expect(list).toContain(
        '"annotations":{"readOnlyHint":true,"x-hint":"h"},"_meta":{"fixture/meta":{"n":9007199254740993}},"name":"echo_raw"}',
      );
    });

    it("an unknown method reaches the only server, and its error comes back", async () => {
      const answer = lastOf(await wire.send('{"jsonrpc":"2.0","id":"u","method":"x/unknown","params":{"a":1}}'));
      expect(answer).toBe('{"jsonrpc":"2.0","id":"u","error":{"code":-32601,"message":"No x/unknown","x-error":1}}');
    });
  });

  it("a request written over several lines arrives whole", async () => {
    const wire = await openHttpWire(gateway.url);
    const pretty = JSON.stringify(JSON.parse(call("8", "echo_raw", '{"a":1}')), null, 2).replace('"a": 1', '"a": 1.50');
    const { result } = JSON.parse(lastOf(await wire.send(pretty))) as { result: { content: [{ text: string }] } };
    expect(result.content[0].text).toMatch(/"a": 1\.50/);
  });

  it.runIf(kind === "http")("an answer written over several lines is one message on stdio", async () => {
    const wire = await openStdioWire(gateway);
    const template = '{\n  "jsonrpc": "2.0",\n  "id": @ID@,\r\n  "result": {\n    "content": [],\n    "n": 1.0\n  }\n}';
    const answer = lastOf(await wire.send(call("9", "answer", JSON.stringify({ template }))));
    expect(answer).toMatch(/"n": 1\.0/);
    expect(JSON.parse(answer)).toEqual({ jsonrpc: "2.0", id: 9, result: { content: [], n: 1 } });
  });
});
