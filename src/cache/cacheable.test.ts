import { describe, expect, it } from "vitest";
import { ownToolName } from "../contracts/names.js";
import { parseMessage, type RequestMessage } from "../protocol/message.js";
import { type BytesReply, type Reply, renderReply, resultBytes } from "../protocol/reply.js";
import { findAnchor } from "../protocol/reply-id.js";
import { aged, freshReply, MAX_REPLY_BYTES, requestHash } from "./cacheable.js";

function call(params: string, method = "tools/call"): RequestMessage {
  return parseMessage(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`) as RequestMessage;
}

function hash(params: string, tool = "t"): string | undefined {
  return requestHash(call(params), ownToolName(tool));
}

function modern(json: string): BytesReply {
  return { ...resultBytes(json), era: "modern" };
}

describe("requestHash", () => {
  const plain = hash('{"name":"x","arguments":{"a":1,"b":[true]}}');

  it.each([
    ["another order", '{"arguments":{"b":[true],"a":1},"name":"x"}'],
    ["white space", '{ "name" : "x" , "arguments" : { "a" : 1 , "b" : [ true ] } }'],
    ["another spelling", '{"name":"x","arguments":{"\\u0061":1.0,"b":[true]}}'],
    ["another alias of the tool", '{"name":"srv_x","arguments":{"a":1,"b":[true]}}'],
    [
      "_meta",
      '{"name":"x","arguments":{"a":1,"b":[true]},"_meta":{"progressToken":7,"traceparent":"00-1-2-01","x":{"y":1}}}',
    ],
  ])("%s makes no difference", (_what, params) => {
    expect(plain).toMatch(/^[\w-]{43}$/);
    expect(hash(params)).toBe(plain);
  });

  it.each([
    ["an argument", '{"name":"x","arguments":{"a":2,"b":[true]}}'],
    ["a type", '{"name":"x","arguments":{"a":"1","b":[true]}}'],
    ["no arguments", '{"name":"x"}'],
    ["a param that we do not know", '{"name":"x","arguments":{"a":1,"b":[true]},"mode":"fast"}'],
  ])("%s makes a difference", (_what, params) => {
    expect(hash(params)).not.toBe(plain);
  });

  it("tells integers apart that a double cannot", () => {
    const of = (n: string) => hash(`{"name":"x","arguments":{"id":${n}}}`);
    expect(of("12345678901234567890")).not.toBe(of("12345678901234567891"));
    expect(of("9007199254740993")).not.toBe(of("9007199254740992"));
  });

  it("tells tools, methods and uris apart", () => {
    const all = [
      hash('{"name":"x","uri":"a"}', "t"),
      hash('{"name":"x","uri":"a"}', "u"),
      requestHash(call('{"uri":"a"}', "resources/read"), undefined),
      requestHash(call('{"uri":"b"}', "resources/read"), undefined),
      requestHash(call('{"uri":"a"}', "prompts/get"), undefined),
    ];
    expect(new Set(all).size).toBe(all.length);
  });

  it.each([
    ["answers to questions", '{"name":"x","inputResponses":{}}'],
    ["a state", '{"name":"x","requestState":"s"}'],
    ["an argument that is there twice", '{"name":"x","arguments":{"a":1,"a":2}}'],
    ["half of a surrogate pair", '{"name":"x","arguments":{"a":"\\ud800"}}'],
  ])("there is none for %s", (_what, params) => {
    expect(hash(params)).toBeUndefined();
  });

  it("params with two members of one name are refused, as they are when they are sent", () => {
    expect(() => hash('{"name":"x","arguments":{"a":1},"arguments":{"a":2}}')).toThrow("Duplicate");
  });
});

describe("freshReply", () => {
  it.each([
    ["public", "public"],
    ["private", "private"],
    ["shared", "private"],
  ] as const)("cacheScope %s is %s", (said, scope) => {
    const reply = modern(`{"resultType":"complete","ttlMs":5000,"cacheScope":"${said}","content":[]}`);
    expect(freshReply(reply, false)).toMatchObject({ ttlMs: 5000, scope });
  });

  it("a legacy server's is kept where the config marks the tool, and nowhere else", () => {
    const reply = resultBytes('{"ttlMs":5000,"content":[]}');
    expect(freshReply(reply, true)).toMatchObject({ ttlMs: 5000, scope: "private" });
    expect(freshReply(reply, false)).toBeUndefined();
    expect(freshReply({ ...reply, afterRounds: true }, true)).toBeUndefined();
  });

  it("without a scope it is private", () => {
    expect(freshReply(modern('{"ttlMs":1,"contents":[]}'), false)).toMatchObject({ scope: "private" });
  });

  const kept = '{"resultType":"complete","ttlMs":5000,"cacheScope":"public"}';
  const error: Reply = { kind: "error", error: { code: 1, message: '"ttlMs":5000' } };
  it.each<[string, Reply]>([
    ["an error of ours", error],
    ["a result of ours", { kind: "result", result: { ttlMs: 5000 } }],
    ["a stream", { kind: "stream", era: "modern", open: () => expect.fail() }],
    ["a legacy server's", resultBytes(kept)],
    ["one that cost answers of the agent", { ...modern(kept), afterRounds: true } as BytesReply],
    ["no time", modern('{"cacheScope":"public"}')],
    ["a time somewhere inside", modern('{"structuredContent":{"ttlMs":5000}}')],
    ["no time left", modern('{"ttlMs":0,"cacheScope":"public"}')],
    ["a negative time", modern('{"ttlMs":-5}')],
    ["a time that is no number", modern('{"ttlMs":"5000"}')],
    ["a time without end", modern('{"ttlMs":1e999}')],
    ["two times", modern('{"ttlMs":5000,"ttlMs":1}')],
    ["a failed tool", modern('{"isError":true,"ttlMs":5000}')],
    ["a question", modern('{"resultType":"input_required","ttlMs":5000}')],
    ["a task", modern('{"resultType":"task","ttlMs":5000}')],
    ["a result that is no object", modern('["ttlMs",{"ttlMs":5000}]')],
    ["broken JSON", modern('{"ttlMs":5000')],
    ["broken text", { ...modern(kept), bytes: Buffer.concat([modern(kept).bytes, Buffer.from([0x20, 0xff])]) }],
    ["a large one", modern(`{"ttlMs":5000,"x":"${"x".repeat(MAX_REPLY_BYTES)}"}`)],
    [
      "a server's error",
      { ...modern("{}"), bytes: Buffer.from('{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":"","ttlMs":5}}') },
    ],
  ])("does not keep %s", (_what, reply) => {
    expect(freshReply(reply, false)).toBeUndefined();
  });
});

describe("aged", () => {
  it.each([
    ["id first", '{"jsonrpc":"2.0","id":7,"result":{"x":"é😀","ttlMs": 60000 ,"y":1.0}}'],
    ["id last", '{"jsonrpc":"2.0","result":{"x":"é😀","ttlMs":6e4,"y":1.0},"id":7}'],
  ])("takes the age off, and leaves the rest as it was written: %s", (_where, text) => {
    const bytes = Buffer.from(text);
    const anchor = findAnchor(bytes);
    const fresh = freshReply({ kind: "bytes", era: "modern", bytes, idStart: 0, idEnd: 0, ...anchor }, false);
    if (fresh === undefined) throw new Error("not kept");
    const younger = aged(fresh, 1000.4);
    expect(younger.era).toBe("modern");
    const expected = text.replace(/60000|6e4/, "58999").replace('"id":7', '"id":"mine"');
    expect(renderReply(younger, '"mine"').toString()).toBe(expected);
    expect(renderReply(aged(fresh, 99_999), "1").toString()).toContain('"ttlMs":');
    expect(JSON.parse(renderReply(aged(fresh, 99_999), "1").toString())).toMatchObject({ result: { ttlMs: 0 } });
  });
});

it("a reply that has aged is not sent as the text it came with", () => {
  const reply = modern('{"ttlMs":5000}');
  const fresh = freshReply({ ...reply, latin1: reply.bytes.toString("latin1") }, false);
  expect(fresh && aged(fresh, 1_000)).toMatchObject({ latin1: undefined });
});
