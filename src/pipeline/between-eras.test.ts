// What is read of a call on its way between the eras: how often, and of which text.

import { beforeEach, expect, it, vi } from "vitest";
import { StandInServer, setUpPipeline, tools } from "../../test/fixtures/pipeline.js";
import type { Caller } from "../contracts/caller.js";
import type { UpstreamCall } from "../contracts/upstream.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { parseMessage, type RequestMessage, type ResponseMessage } from "../protocol/message.js";
import { Meta } from "../protocol/modern.js";
import { type BytesReply, resultBytes } from "../protocol/reply.js";
import { ModernSide, unsharedParts } from "../upstream/modern/side.js";
import { WITHOUT_SENDER } from "../upstream/modern/translate.js";

const MARK = "an argument that is long";
const { parse } = JSON;
const { indexOf } = String.prototype;
/** How often the text with the argument was parsed, and how often somebody who looked for members went over it. */
let times = { parsed: 0, walked: 0 };
const ONCE = { parsed: 1, walked: 1 };

beforeEach(() => {
  times = { parsed: 0, walked: 0 };
  const parsing = vi.spyOn(JSON, "parse").mockImplementation((text: string, reviver) => {
    if (text.includes(MARK)) times.parsed++;
    return parse(text, reviver);
  });
  // The end of a string is looked for from its first character on.
  const walking = vi.spyOn(String.prototype, "indexOf").mockImplementation(function (this: string, wanted, from) {
    if (wanted === '"' && this.startsWith(MARK, from)) times.walked++;
    return indexOf.call(this, wanted, from);
  });
  return () => {
    parsing.mockRestore();
    walking.mockRestore();
  };
});

/** A server whose connection speaks one of the eras. */
class EraServer extends StandInServer {
  readonly texts: string[] = [];
  answers: BytesReply[] = [];
  readonly #side: ModernSide | undefined;
  #id = 0;

  constructor(era: "legacy" | "modern") {
    super("docs");
    if (era === "legacy") return;
    const direct = { send: (call: UpstreamCall) => this.#write(call), cancel: () => {} };
    const rest = { now: () => 0, direct, onNotification: () => {}, onOtherEra: () => {} };
    this.#side = new ModernSide(unsharedParts(), true, { name: "gateway" }, rest);
  }

  override send(call: UpstreamCall): void {
    if (this.#side === undefined || !this.#side.send(call)) this.#write(call);
  }

  #write(call: UpstreamCall): void {
    const changes = this.#side?.changes(call) ?? (call.caller?.era === "modern" ? WITHOUT_SENDER : undefined);
    this.texts.push(call.render(++this.#id, changes));
    this.#side?.headers(call);
    call.reply(this.answers.shift() ?? resultBytes('{"content":[],"resultType":"complete"}'));
  }

  get paramsSent(): JsonObject[] {
    return this.texts.map((text) => (parse(text) as { params: JsonObject }).params);
  }
}

const SENDER = { [Meta.version]: "2026-07-28", [Meta.capabilities]: {}, [Meta.clientInfo]: { name: "agent" } };

async function call(server: EraServer, era: "legacy" | "modern", answer: JsonObject = {}) {
  const { pipeline } = setUpPipeline([server]);
  pipeline.fromServers.onList("docs", "tools", tools("find"));
  const caller: Caller = {
    principal: { id: "ada", role: "default" },
    sessionKey: "ada",
    era,
    logLevel: undefined,
    version: "2025-11-25",
    capabilities: { elicitation: {} },
    clientInfo: { name: "agent" },
    setLogLevel: () => {},
    notify: () => {},
    ask: async () => parseMessage(JSON.stringify({ jsonrpc: "2.0", id: "x", result: answer })) as ResponseMessage,
  };
  const _meta = era === "modern" ? { ...SENDER, progressToken: 7 } : { progressToken: 7 };
  const params = { _meta, name: "docs__find", arguments: { text: MARK } };
  const message = parseMessage(JSON.stringify({ jsonrpc: "2.0", id: "mine", method: "tools/call", params }));
  await new Promise((reply) => {
    pipeline.handle({ caller, message: message as RequestMessage, scope: undefined, reply, onCancel: undefined });
  });
}

const ERAS = [
  ["legacy", "legacy", { progressToken: 1 }],
  ["modern", "modern", { ...SENDER, [Meta.clientInfo]: { name: "gateway" }, progressToken: 1 }],
  ["modern", "legacy", { progressToken: 1 }],
  [
    "legacy",
    "modern",
    {
      ...SENDER,
      [Meta.clientInfo]: { name: "gateway" },
      [Meta.capabilities]: { elicitation: {} },
      progressToken: 1,
    },
  ],
] as const;

it.each(ERAS)(
  "a call of a %s agent at a %s server is read when it comes, and never again",
  async (agent, era, meta) => {
    const server = new EraServer(era);
    await call(server, agent);
    // Parsed once, and once looked through for where its members stand.
    expect(times).toEqual(ONCE);
    expect(server.paramsSent).toEqual([{ _meta: meta, name: "find", arguments: { text: MARK } }]);
  },
);

it("a call that goes on with its agent's answers is not read again for any round", async () => {
  const server = new EraServer("modern");
  const inputRequests = { which: { method: "elicitation/create", params: { message: "Which?" } } };
  const asks = JSON.stringify({ resultType: "input_required", inputRequests, requestState: "s-1" });
  server.answers = [resultBytes(asks), resultBytes(asks)];
  await call(server, "legacy", { action: "accept", content: { a: 1 } });
  expect(times).toEqual(ONCE);
  const [first, ...others] = server.paramsSent;
  const given = { inputResponses: { which: { action: "accept", content: { a: 1 } } }, requestState: "s-1" };
  expect(first).not.toHaveProperty("inputResponses");
  expect(others).toEqual([
    { ...first, ...given, _meta: { ...(first?.["_meta"] as JsonObject), progressToken: 2 } },
    { ...first, ...given, _meta: { ...(first?.["_meta"] as JsonObject), progressToken: 3 } },
  ]);
});
