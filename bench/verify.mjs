// Whether a reply is the right one. Every reply of a run goes through here, in as little time as a full check can take.

import { echoText } from "./requests.mjs";
import { bigText } from "./servers/answers.mjs";
import { resultOf } from "./servers/results.mjs";

/**
 * @param {{ kind: "echo" } | { kind: "big" } | { kind: "result", tool: string } | { kind: "list", tools: number }} expected
 * @returns {(connection: import("./replies.mjs").Connection) => string | undefined} what is wrong, if anything
 */
export function verifier(expected) {
  if (expected.kind === "echo") return check(echoFault);
  if (expected.kind === "result") return same(resultFault(resultOf(expected.tool)));
  const big = expected.kind === "big" ? bigText() : undefined;
  return same((message) => (big === undefined ? listFault(message, expected.tools) : textFault(message, big)));
}

const echoFault = (message, id) => textFault(message, echoText(id));

function resultFault(expected) {
  const wanted = JSON.stringify(expected);
  return ({ result }) => {
    const known = Object.fromEntries(Object.keys(expected).map((key) => [key, result?.[key]]));
    return JSON.stringify(known) === wanted ? undefined : "the result is another one";
  };
}

function textFault(message, text) {
  const content = message.result?.content;
  if (content?.length !== 1 || content[0].type !== "text") return "there is no text in it";
  if (message.result.isError === true) return "it is an error";
  return content[0].text === text ? undefined : `the text is another one: ${content[0].text.slice(0, 80)}`;
}

function listFault(message, count) {
  const names = message.result?.tools?.map(({ name }) => name) ?? [];
  if (names.length !== count) return `it has ${names.length} tools, and should have ${count}`;
  return new Set(names).size === count ? undefined : "it has a tool twice";
}

function check(faultOf) {
  return (connection) => {
    if (connection.status !== 200) return describe(connection, `its status is ${connection.status}`);
    const at = connection.message();
    if (at === undefined) return describe(connection, "there is no message in it");
    const message = JSON.parse(connection.body.toString("utf8", at.start, at.end));
    const fault = message.id === connection.id ? faultOf(message, connection.id) : `its id is ${message.id}`;
    return fault === undefined ? undefined : describe(connection, fault);
  };
}

/** For replies that differ in their id alone: one is checked in full, the next ones are compared with it byte by byte. */
function same(faultOf) {
  const inFull = check(faultOf);
  let known = Buffer.alloc(0);
  let idAt = 0;
  return (connection) => {
    const at = connection.status === 200 ? connection.message() : undefined;
    const { body } = connection;
    if (at !== undefined && at.end - at.start === known.length && known.length > 0) {
      const id = String(connection.id);
      const from = at.start + idAt;
      const after = from + id.length;
      if (
        body.latin1Slice(from, after) === id &&
        body.compare(known, 0, idAt, at.start, from) === 0 &&
        body.compare(known, idAt + id.length, known.length, after, at.end) === 0
      ) {
        return undefined;
      }
    }
    const fault = inFull(connection);
    if (fault !== undefined) return fault;
    const place = idPlace(body.subarray(at.start, at.end), connection.id);
    if (place >= 0) {
      known = Buffer.from(body.subarray(at.start, at.end));
      idAt = place;
    }
    return undefined;
  };
}

/** Where the id of the message stands: once, or we cannot say which of them it is. */
function idPlace(message, id) {
  const first = message.indexOf(String(id));
  return first >= 0 && message.indexOf(String(id), first + 1) < 0 ? first : -1;
}

function describe(connection, fault) {
  const { body, bodyStart, bodyEnd } = connection;
  const start = body.toString("utf8", bodyStart, Math.min(bodyEnd, bodyStart + 300));
  return `A wrong answer to ${connection.id}: ${fault}. HTTP ${connection.status}: ${start}`;
}
