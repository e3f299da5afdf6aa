import { Readable } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import { TestService } from "../../../test/fixtures/endpoint/service.js";
import { TestClock } from "../../../test/fixtures/test-clock.js";
import { until } from "../../../test/fixtures/wait.js";
import type { MailboxAnswer, MailboxCall } from "../../contracts/mailbox.js";
import { Meta, MODERN_VERSION } from "../../protocol/modern.js";
import { type Reply, resultBytes, type StreamReply } from "../../protocol/reply.js";
import { HeldBytes } from "../../runtime/memory/held-bytes.js";
import { createSealer } from "../../runtime/seal.js";
import type { EndpointLimits } from "../session/limits.js";
import { MailboxEndpoint } from "./endpoint.js";

const principal = { id: "mailbox/worker-1", role: "dev" };

function open(service: TestService, limits: Partial<EndpointLimits> = {}, held = new HeldBytes()) {
  const failures: unknown[] = [];
  const endpoint = new MailboxEndpoint({
    service,
    sealer: createSealer(Buffer.alloc(32, 1)),
    limits,
    held,
    clock: new TestClock(),
    lists: () => ({ unread: [], areAnyRead: true }),
    scope: () => "one",
    failed: (error) => void failures.push(error),
  });
  const ask = async (body: string): Promise<MailboxAnswer> => {
    const answers: MailboxAnswer[] = [];
    const call: MailboxCall = {
      principal,
      body,
      begin: () => Promise.resolve(),
      notify() {},
      reply: (answer) => void answers.push(answer),
      onCancel: undefined,
    };
    endpoint.serve(call);
    await until(() => answers.length > 0);
    return answers[0] as MailboxAnswer;
  };
  return { endpoint, failures, ask };
}

describe("the endpoint of a mailbox", () => {
  it("answers a bare request that fails inside, and tells the operator [told-why]", async () => {
    const service = new TestService();
    service.handle = (call) => call.reply({ ...resultBytes("{no JSON"), era: "modern" });
    const { ask, failures } = open(service);
    for (const body of ['{"op":"manifest"}', '{"op":"call","tool":"echo","arguments":{}}']) {
      expect(await ask(body)).toEqual({ kind: "body", json: expect.stringContaining("its log has the details") });
    }
    expect(failures).toHaveLength(2);
  });

  it("reads what a bare call gives its tool once, and passes it on as it was written", async () => {
    const service = new TestService();
    const sent: string[] = [];
    service.handle = (call) => {
      sent.push(call.message.text);
      call.reply(resultBytes('{"content":[]}'));
    };
    const { ask } = open(service);
    const parsing = vi.spyOn(JSON, "parse");
    try {
      await ask('{"op":"call","tool":"echo","arguments":{"n":1e3,"text":"long"}}');
      expect(parsing.mock.calls.filter(([text]) => text.includes("1e3"))).toHaveLength(1);
    } finally {
      parsing.mockRestore();
    }
    expect(sent).toEqual([expect.stringContaining('"arguments":{"n":1e3,"text":"long"}')]);
  });

  it("answers with no more than `outputBytes`, however the reply comes; what is larger is an error that names the limit [bounded]", async () => {
    const service = new TestService();
    const { ask } = open(service, { outputBytes: 1_000 });
    const meta = { [Meta.version]: MODERN_VERSION, [Meta.capabilities]: {} };
    const params = { name: "echo", arguments: {}, _meta: meta };
    const body = JSON.stringify({ op: "rpc", message: { jsonrpc: "2.0", id: 1, method: "tools/call", params } });
    const replyOf = (bytes: number) => `{"resultType":"complete","text":"${"x".repeat(bytes)}"}`;
    const opened: Readable[] = [];
    const streamOf = (bytes: number, isKnown: boolean): StreamReply => {
      const whole = (id: string) => `{"jsonrpc":"2.0","id":${id},"result":${replyOf(bytes)}}`;
      const open = (id: string) => {
        const stream = Readable.from([Buffer.from(whole(id))]);
        opened.push(stream);
        return stream;
      };
      return { kind: "stream", era: "modern", open, ...(isKnown ? { size: (id) => whole(id).length } : {}) };
    };
    const replies: ((bytes: number) => Reply)[] = [
      (bytes) => ({ ...resultBytes(replyOf(bytes)), era: "modern" }),
      (bytes) => streamOf(bytes, true),
      (bytes) => streamOf(bytes, false),
    ];
    const said = await Promise.all(
      replies.flatMap((reply) =>
        [800, 1_001].map(async (bytes) => {
          service.handle = (call) => call.reply(reply(bytes));
          const answer = await ask(body);
          return answer.kind === "response" ? answer.bytes.toString() : "no response";
        }),
      ),
    );
    const limit = expect.stringMatching(/The reply has 1\d{3} bytes; the limit is 1000/);
    const brokeOff = expect.stringContaining("The reply broke off on its way. The call may have taken effect.");
    const good = expect.stringContaining(replyOf(800));
    expect(said).toEqual([good, limit, good, limit, good, brokeOff]);
    await until(() => opened.every((stream) => stream.destroyed));
  });

  it("takes no body with more values, levels or names than a body has over HTTP, and parses none of them [bounded]", async () => {
    const { ask, endpoint } = open(new TestService());
    const objects = `[${"{},".repeat(200_000)}{}]`;
    const deep = `${"[".repeat(129)}${"]".repeat(129)}`;
    const long = `"${"x".repeat(70_000)}"`;
    const names = `{${Array.from({ length: 30_000 }, (_, n) => `"${n}":1`).join()}}`;
    const parsing = vi.spyOn(JSON, "parse");
    try {
      for (const [args, why] of [
        [objects, "the body has more than 200000 values (members and elements)"],
        [deep, "the body is nested deeper than 128 levels"],
        [`[${long},${deep}]`, "the body is nested deeper than 128 levels"],
        [names, "the body has more than 20000 different names of members"],
      ]) {
        const answer = await ask(`{"op":"call","tool":"echo","arguments":${args}}`);
        expect(answer.kind === "body" && answer.json.slice(0, 200)).toBe(`{"error":"bad mcp request: ${why}"}`);
        endpoint.notified(principal, `{"op":"notification","message":${args}}`);
      }
      expect(parsing.mock.calls.filter(([text]) => text.length > 200)).toEqual([]);
    } finally {
      parsing.mockRestore();
    }
    const text = await ask(JSON.stringify({ op: "call", tool: "echo", arguments: `{"a":${objects}}` }));
    expect(text).toEqual({
      kind: "body",
      json: expect.stringContaining('the text of \\"arguments\\" has more than 200000'),
    });
  });

  it("counts a message by its many small values as well, while it is kept [bounded]", async () => {
    const held = new HeldBytes();
    const service = new TestService();
    let used = 0;
    service.handle = (call) => {
      used = held.used;
      call.reply(resultBytes('{"content":[]}'));
    };
    const { ask } = open(service, {}, held);
    const meta = { [Meta.version]: MODERN_VERSION, [Meta.capabilities]: {} };
    const params = { name: "echo", arguments: { all: Array.from({ length: 20_000 }, () => ({})) }, _meta: meta };
    const body = JSON.stringify({ op: "rpc", message: { jsonrpc: "2.0", id: 1, method: "tools/call", params } });
    await ask(body);
    // 64 bytes for each of them.
    expect(used).toBeGreaterThan(3 * body.length + 20_000 * 64);
    expect(held.used).toBe(0);
  });

  it("passes an agent's notification to the servers as it was written, and takes nothing else for one", () => {
    const service = new TestService();
    const { endpoint, failures } = open(service);
    const text = '{"jsonrpc":"2.0","method":"notifications/mood","params":{"n":1e3}}';
    endpoint.notified(principal, `{"op":"notification","message":${text}}`);
    endpoint.notified(principal, '{"op":"notification","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}');
    endpoint.notified(principal, '{"op":"notification"}');
    endpoint.notified(principal, "no JSON");
    expect(service.notifications.map((one) => one.text)).toEqual([text]);
    expect(failures).toEqual([]);
  });
});
