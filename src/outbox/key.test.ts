// What the key of a write counts for, by the text of its call.

import { expect, it } from "vitest";
import type { OwnToolName } from "../contracts/names.js";
import type { KeyPlace } from "../contracts/outbox.js";
import type { AgentCall } from "../contracts/service.js";
import { parseMessage, type RequestMessage } from "../protocol/message.js";
import { Meta } from "../protocol/modern.js";
import { keyedCall, laneOf, placedText, withoutAgent } from "./key.js";

const TO = { server: "tracker", tool: "create" as OwnToolName, principal: "anna" };

function keyed(args: string, path = ["request_id"]) {
  const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":${args}}}`;
  const place: KeyPlace = { in: "argument", path };
  return keyedCall(parseMessage(text) as RequestMessage, TO, place);
}

it("two calls under one key that differ in an integer above 2^53 are two [no-double-effect]", () => {
  const hashOf = (n: string) => keyed(`{"request_id":"mine","n":${n}}`).argumentsHash;
  expect(hashOf("9007199254740993")).not.toBe(hashOf("9007199254740992"));
  expect(hashOf("9007199254740993")).toBe(hashOf("9007199254740993"));
});

it("arguments count without their key, wherever it stands among them and however they are written", () => {
  const plain = keyed('{"a":[1],"b":"x"}').argumentsHash;
  for (const args of [
    '{"request_id":"mine","a":[1],"b":"x"}',
    '{ "request_id" : "mi,ne" , "a":[1], "b":"x" }',
    '{"a":[1.0],"request_id":"mine","b":"x"}',
    '{"b":"\\u0078","a":[1] , "request\\u005fid" : "mine" }',
  ]) {
    expect(keyed(args).argumentsHash).toBe(plain);
  }
  const nested = (args: string) => keyed(args, ["meta", "key"]).argumentsHash;
  expect(nested('{"a":1,"meta":{"key":"mine"}}')).toBe(nested('{"meta":{ "key":"other" },"a":1}'));
  expect(nested('{"a":1,"meta":{"key":"mine","z":2}}')).not.toBe(nested('{"a":1,"meta":{"key":"mine"}}'));
});

it("in the stead of a key that is no text one is made, the same for the same value: a repeat is no second write [no-double-effect]", () => {
  const of = (value: string) => keyed(`{"request_id":${value}}`);
  const values = ["5", "9007199254740993", "9007199254740992", "true", '{"a":1}', "[]"];
  const keys = values.map((value) => of(value).key);
  expect(new Set(keys).size).toBe(values.length);
  for (const [n, value] of values.entries()) {
    const { key, isMinted, message, keyHash } = of(value);
    expect([key, isMinted]).toEqual([keys[n], true]);
    // The server is given a text, as with any key of ours.
    expect(message.params?.["arguments"]).toEqual({ request_id: keyHash });
  }
  expect(of('{ "a" : 1.0 }').key).toBe(of('{"a":1}').key);
  for (const nothing of ["null", '""']) {
    expect(of(nothing).isMinted).toBe(true);
    expect(of(nothing).key).not.toBe(of(nothing).key);
  }
});

it("long arguments count as they are written, and are not put in order while everybody waits [bounded]", () => {
  const long = Array.from({ length: 20_000 }, (_, n) => `"member ${n}"`).join(",");
  const hashOf = (args: string) => keyed(args).argumentsHash;
  expect(hashOf(`{"request_id":"mine","a":[${long}]}`)).toBe(hashOf(`{"request_id":"other","a":[${long}]}`));
  expect(hashOf(`{"request_id":"mine","a":[${long}]}`)).not.toBe(hashOf(`{"request_id":"mine","a":[${long} ]}`));
  expect(hashOf(`{"request_id":"mine","a":[${long}],"b":1}`)).not.toBe(hashOf(`{"request_id":"mine","a":[${long}]}`));
});

it("a lane is not told from a name that stands twice, of a long call either: the server might take the other [lane-order]", () => {
  const of = (args: string) => {
    const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":${args}}}`;
    return laneOf(parseMessage(text) as RequestMessage, "anna", { by: "argument", path: ["account"] });
  };
  const long = "x".repeat(100_000);
  expect(of(`{"account":"a","text":"${long}"}`)).toBe('account "a"');
  expect(() => of(`{"account":"a","text":"${long}","account":"b"}`)).toThrow();
});

it("a key in `_meta` goes upstream as a hash over principal, server, tool and key, so that those of two agents never meet [no-double-effect]", () => {
  const of = (to: typeof TO, meta: string) => {
    const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":${meta},"arguments":{"n":1}}}`;
    return keyedCall(parseMessage(text) as RequestMessage, to, { in: "meta", path: ["x/key"] });
  };
  const given = of(TO, '{"x/key":"mine","a/b":1}');
  expect(given).toMatchObject({ key: "mine", isMinted: false, sentKey: given.keyHash });
  expect(given.keyHash).toMatch(/^[\w-]{43}$/);
  expect(JSON.parse(given.message.text).params._meta).toEqual({ "x/key": given.keyHash, "a/b": 1 });
  // Given under the word for any server, it is the same key.
  const ownWord = of(TO, '{"toolway/idempotencyKey":"mine"}');
  expect(JSON.parse(ownWord.message.text).params._meta["x/key"]).toBe(given.keyHash);
  const others = [
    { ...TO, principal: "bert" },
    { ...TO, server: "wiki" },
    { ...TO, tool: "delete" as OwnToolName },
  ].map((to) => of(to, '{"x/key":"mine"}').sentKey);
  expect(new Set([given.keyHash, of(TO, '{"x/key":"another"}').sentKey, ...others]).size).toBe(5);
  const minted = of(TO, "{}");
  expect([minted.isMinted, JSON.parse(minted.message.text).params._meta]).toEqual([true, { "x/key": minted.keyHash }]);
});

it("a call with its key, and one without its agent, are as if they had been read so", () => {
  const request = (params: string) =>
    parseMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`) as RequestMessage;
  const places: (KeyPlace | undefined)[] = [
    undefined,
    { in: "argument", path: ["request_id"] },
    { in: "argument", path: ["deep", "er", "key"] },
    { in: "meta", path: ["x/key"] },
  ];
  const able = '"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}';
  for (const params of [
    '{"name":"t"}',
    '{ "arguments" : {} , "name" : "t" }',
    '{"name":"t","arguments":{"request_id":5,"deep":{"a":9007199254740993}}}',
    '{"_meta":{"progressToken":1},"name":"t","arguments":{"request_id":"mine"}}',
    `{"_meta":{"a":1,"progressToken":"p",${able}},"name":"t"}`,
    `{"name":"t","_meta":{${able},"b":[2]},"z":0}`,
  ]) {
    for (const place of places) {
      const { message } = keyedCall(request(params), TO, place);
      const alone = withoutAgent(message);
      const given = { ...Object(message.params?.["_meta"]) };
      delete given["progressToken"];
      if (given[Meta.capabilities] !== undefined) given[Meta.capabilities] = {};
      // Whatever it was able to, nobody is there to be asked or told; all else of it goes on.
      expect(JSON.parse(alone.text).params._meta ?? {}).toEqual(given);
      for (const one of [message, alone]) {
        const read = parseMessage(one.text) as RequestMessage;
        expect({ ...one, inParams: one.inParams ?? read.inParams }).toEqual(read);
      }
    }
  }
});

it("a call is kept with its place in a trace, and else as it came [spans-by-convention]", () => {
  const placed = (meta: string, trace: object | undefined) => {
    const message = parseMessage(
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"${meta}}}`,
    ) as RequestMessage;
    const text = placedText(message, { notes: { trace } } as unknown as AgentCall);
    return [message.text, text] as const;
  };
  const trace = { metaTraceparent: "00-a-b-01", metaTracestate: undefined };
  const [untraced, same] = placed(',"_meta":{"traceparent":"00-c-d-00"}', undefined);
  expect(same).toBe(untraced);
  expect(JSON.parse(placed("", trace)[1]).params).toEqual({ name: "t", _meta: { traceparent: "00-a-b-01" } });
  expect(placed(',"_meta":{"x":9007199254740993,"traceparent":"00-c-d-01"}', trace)[1]).toContain(
    '"_meta":{"x":9007199254740993,"traceparent":"00-a-b-01"}',
  );
  // Whoever sends it refuses it.
  const [twice, kept] = placed(',"_meta":{"traceparent":"1","traceparent":"2"}', trace);
  expect(kept).toBe(twice);
});
