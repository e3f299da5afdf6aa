// What the tiny servers answer, in both eras and on all transports. Knows messages; knows no pipe and no socket.

import { RESULT_TOOLS, resultOf } from "./results.mjs";

const MODERN = "2026-07-28";
const LEGACY = "2025-11-25";
const META = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"tiny","version":"1"}}`;
/** Long enough that no gateway reads the lists again during a run. */
const TTL_MS = 3_600_000;
const BIG_BYTES = 1024 * 1024;

/**
 * The text of `big`: ASCII, and some characters that JSON escapes, each of which has one usual spelling.
 * @returns {string}
 */
export function bigText() {
  const line = `{"row": 17, "path": "C:\\\\data\\\\in", "note": "all is well"}\n\tnext: 0123456789 abcdefghijklmnopqrstuvwxyz\n`;
  return line.repeat(Math.ceil(BIG_BYTES / line.length)).slice(0, BIG_BYTES);
}

/** The N named tools of a list, beside `echo` and `big`; each of them answers as `echo` does. */
export function toolNames(count) {
  const names = ["echo", "big"];
  for (let i = names.length; i < count; i++) names.push(`tool_${String(i).padStart(4, "0")}`);
  return names.slice(0, Math.max(count, 1));
}

/**
 * Each answer is one or two pieces, of which the second is the same for all calls: it is made once.
 * @param {{ era: "legacy" | "modern", tools: number, results: boolean }} options `results`: it has those tools as well
 * @returns {(message: any) => [string] | [string, Buffer] | undefined} undefined for what needs no answer
 */
export function answering({ era, tools, results }) {
  const modern = era === "modern";
  const extra = modern ? `,"resultType":"complete",${META}` : "";
  const cache = modern ? `,"ttlMs":${TTL_MS},"cacheScope":"public"` : "";
  const big = Buffer.from(`${JSON.stringify(bigText())}}]${extra}}}`);
  const names = results ? [...toolNames(tools), ...RESULT_TOOLS] : toolNames(tools);
  const list = JSON.stringify(names.map(definition));
  const prepared = new Map(
    names.filter((name) => RESULT_TOOLS.includes(name)).map((name) => [name, resultText(name, extra)]),
  );
  const opening = modern
    ? `{"supportedVersions":["${MODERN}"],"capabilities":{"tools":{}}${cache}${extra}}`
    : `"capabilities":{"tools":{}},"serverInfo":{"name":"tiny","version":"1"}}`;
  const opens = modern ? "server/discover" : "initialize";

  return (message) => {
    const { id, method, params } = message;
    if (id === undefined) return undefined;
    const head = `{"jsonrpc":"2.0","id":${typeof id === "number" ? id : JSON.stringify(id)},`;
    if (method === "tools/call") {
      if (params.name === "big") return [`${head}"result":{"content":[{"type":"text","text":`, big];
      const result = prepared.get(params.name);
      if (result !== undefined) return [`${head}"result":`, result];
      const text = JSON.stringify(params.arguments.text);
      return [`${head}"result":{"content":[{"type":"text","text":${text}}]${extra}}}`];
    }
    if (method === "tools/list") return [`${head}"result":{"tools":${list}${cache}${extra}}}`];
    if (method === "initialize" && !modern) {
      // As asked: a peer may speak an older version.
      const version = JSON.stringify(params?.protocolVersion ?? LEGACY);
      return [`${head}"result":{"protocolVersion":${version},${opening}}`];
    }
    if (method === opens) return [`${head}"result":${opening}}`];
    if (method === "ping") return [`${head}"result":{}}`];
    return [`${head}"error":{"code":-32601,"message":"Method not found"}}`];
  };
}

/** All that follows `"result":`, to the end of the message. */
function resultText(name, extra) {
  return Buffer.from(`${JSON.stringify(resultOf(name)).slice(0, -1)}${extra}}}`);
}

/** A tool as a list has it. */
export function definition(name) {
  return {
    name,
    title: `The tool ${name}`,
    description: `Answers with the text that it was given. One of the tools of the bench, called ${name}.`,
    inputSchema: {
      type: "object",
      properties: { text: { type: "string", description: "What to answer with." } },
      required: ["text"],
    },
    annotations: { readOnlyHint: true },
  };
}
