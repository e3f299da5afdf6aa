// The questions of servers that one modern call gathers, and the answers that its retries bring. It does no I/O and
// has no clock: when a round is sent, and where to, is call.ts.

import type { Fault } from "../../protocol/errors.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { locate, type RequestMessage, type ResponseMessage, toMessage } from "../../protocol/message.js";

interface Question {
  readonly request: RequestMessage;
  readonly resolve: (response: ResponseMessage) => void;
  readonly reject: (fault: Fault) => void;
}

export class CallQuestions {
  readonly #open = new Map<string, Question>();
  #next = 1;
  #unshown = false;

  get size(): number {
    return this.#open.size;
  }

  /** True where the agent has not been shown all that is open. */
  get unshown(): boolean {
    return this.#unshown && this.#open.size > 0;
  }

  /** The key under which the question goes out. */
  add(request: RequestMessage, resolve: Question["resolve"], reject: Question["reject"]): string {
    const key = `${KEY_WORDS[request.method] ?? "input"}-${this.#next++}`;
    this.#open.set(key, { request, resolve, reject });
    this.#unshown = true;
    return key;
  }

  /** The server no longer wants an answer. */
  drop(key: string): void {
    this.#open.delete(key);
  }

  /** `inputRequests` as JSON, with everything that is open. */
  show(): string {
    this.#unshown = false;
    const entries = [...this.#open].map(([key, { request }]) => {
      const at = locate(request, ["params"]);
      const params = at === undefined ? "{}" : request.text.slice(at.start, at.end);
      return `${JSON.stringify(key)}:{"method":${JSON.stringify(request.method)},"params":${params}}`;
    });
    return `{${entries.join(",")}}`;
  }

  /** Why the retry's `inputResponses` cannot be used, or undefined. Keys that nobody asked for are not looked at. */
  problem(retry: RequestMessage): string | undefined {
    const responses = retry.params?.["inputResponses"];
    if (responses === undefined) return undefined;
    if (!isObject(responses)) return '"inputResponses" is an object.';
    const doubled = doubledIn(retry);
    if (doubled !== undefined) return doubled;
    for (const [key, { request }] of this.#open) {
      if (!Object.hasOwn(responses, key)) continue;
      const shape = SHAPES[request.method];
      const value = responses[key];
      if (!isObject(value) || shape?.(value) === false) {
        return `inputResponses[${JSON.stringify(key)}] is not a result of ${request.method}.`;
      }
    }
    return undefined;
  }

  /** Gives the answers to whom they belong. What is still open afterwards is to be shown again. */
  answer(retry: RequestMessage): void {
    const responses = retry.params?.["inputResponses"];
    if (isObject(responses)) {
      for (const [key, question] of [...this.#open]) {
        if (!Object.hasOwn(responses, key)) continue;
        this.#open.delete(key);
        question.resolve(toResponse(retry, key, responses[key]));
      }
    }
    this.#unshown = true;
  }

  rejectAll(fault: Fault): void {
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { reject } of open) reject(fault);
  }
}

/** What is wrong where two members have one name: nobody could say which is meant. */
function doubledIn(retry: RequestMessage): string | undefined {
  try {
    locate(retry, ["params", "inputResponses", ""]);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

const KEY_WORDS: Readonly<Record<string, string>> = {
  "elicitation/create": "elicitation",
  "sampling/createMessage": "sampling",
  "roots/list": "roots",
};

/** What a legacy server may rely on when it reads the answer. */
const SHAPES: Readonly<Record<string, (value: JsonObject) => boolean>> = {
  "elicitation/create": ({ action, content }) =>
    (action === "accept" || action === "decline" || action === "cancel") &&
    (content === undefined || isObject(content)),
  "sampling/createMessage": ({ role, content }) =>
    typeof role === "string" && typeof content === "object" && content !== null,
  "roots/list": ({ roots }) => Array.isArray(roots),
};

/** Keeps the agent's own text where it can be found, so that nothing of it is lost on the way. */
function toResponse(retry: RequestMessage, key: string, value: unknown): ResponseMessage {
  const at = locate(retry, ["params", "inputResponses", key]);
  const json = at === undefined ? JSON.stringify(value) : retry.text.slice(at.start, at.end);
  const text = `{"jsonrpc":"2.0","id":0,"result":${json}}`;
  return toMessage(text, { jsonrpc: "2.0", id: 0, result: value }) as ResponseMessage;
}

/** The capabilities that a client must have declared before it is asked this; undefined where it has. */
export function lackingFor(request: RequestMessage, capabilities: JsonObject): JsonObject | undefined {
  const { method, params } = request;
  if (method === "roots/list") return isObject(capabilities["roots"]) ? undefined : { roots: {} };
  if (method === "sampling/createMessage") {
    const { sampling } = capabilities;
    const tools = params?.["tools"] !== undefined || params?.["toolChoice"] !== undefined;
    if (isObject(sampling) && (!tools || isObject(sampling["tools"]))) return undefined;
    return { sampling: tools ? { tools: {} } : {} };
  }
  const { elicitation } = capabilities;
  if (params?.["mode"] === "url") {
    return isObject(elicitation) && isObject(elicitation["url"]) ? undefined : { elicitation: { url: {} } };
  }
  // An empty object means forms, as it always did.
  const form = isObject(elicitation) && (isObject(elicitation["form"]) || !isObject(elicitation["url"]));
  return form ? undefined : { elicitation: {} };
}

/** The only questions that can stand in an `input_required` result. */
export function isInputRequest(method: string): boolean {
  return Object.hasOwn(KEY_WORDS, method);
}
