// Requests of servers that wait for this agent's answer. An answer is looked for in its own session and nowhere else.

import { createHash, randomBytes } from "node:crypto";
import { Fault } from "../../protocol/errors.js";
import { isObject, type JsonObject, type RpcId } from "../../protocol/jsonrpc.js";
import { type RequestMessage, type ResponseMessage, rewrite } from "../../protocol/message.js";
import type { EndpointLimits } from "./limits.js";

interface Question {
  readonly method: string;
  resolve(response: ResponseMessage): void;
  reject(fault: Fault): void;
}

/** What an agent must have declared before it is asked. */
const NEEDS: Readonly<Record<string, string>> = {
  "sampling/createMessage": "sampling",
  "elicitation/create": "elicitation",
  "roots/list": "roots",
};
const KNOWN: ReadonlySet<string> = new Set(Object.values(NEEDS));

/** Ids of an earlier run must not fit: an agent may answer late, to a gateway that has been restarted. */
const RUN = randomBytes(6).toString("base64url");

/** Between the rest of an id and what names its gateway; it is in neither. */
const AT = ".";

/** Names a gateway in the ids of its questions: who it is by name is for no agent to know. */
function tagOf(gateway: string): string {
  return createHash("sha256").update(`questions of ${gateway}`).digest("hex").slice(0, 16);
}

/** Those of `gateways` that an answer may be for: the one that asked, none where it is not there, all where the id names none. */
export function askersOf(id: RpcId | null, gateways: readonly string[]): readonly string[] {
  const tag = typeof id === "string" && id.includes(AT) ? id.slice(id.lastIndexOf(AT) + 1) : undefined;
  return tag === undefined ? gateways : gateways.filter((gateway) => tagOf(gateway) === tag);
}

export class SessionQuestions {
  readonly #limits: EndpointLimits;
  readonly #idEnd: string;
  readonly #pending = new Map<string, Question>();
  #next = 1;

  /** `gateway`: this one, where there are several. */
  constructor(limits: EndpointLimits, gateway?: string) {
    this.#limits = limits;
    this.#idEnd = gateway === undefined ? "" : AT + tagOf(gateway);
  }

  get size(): number {
    return this.#pending.size;
  }

  /** `send` puts a text on the way to the agent. */
  ask(
    request: RequestMessage,
    capabilities: JsonObject,
    signal: AbortSignal,
    send: (text: string) => void,
  ): Promise<ResponseMessage> {
    const { method } = request;
    const lacking = lackingFor(method, capabilities);
    if (lacking !== undefined) {
      const message = `The agent cannot be asked for ${method}: it did not declare ${lacking}.`;
      return Promise.reject(new Fault("no-caller", message));
    }
    if (signal.aborted) return Promise.reject(new Fault("cancelled", `${method} was taken back.`));
    if (this.#pending.size >= this.#limits.asksPerSession) {
      const message = `${this.#pending.size} requests of servers already wait for this agent's answer.`;
      return Promise.reject(new Fault("limit", message));
    }
    const id = `${RUN}-${this.#next++}${this.#idEnd}`;
    return new Promise((resolve, reject) => {
      const settle = () => {
        this.#pending.delete(id);
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
      };
      const takeBack = (fault: Fault) => {
        settle();
        send(cancelledText(id, fault.message));
        reject(fault);
      };
      const onAbort = () => takeBack(new Fault("cancelled", `${method} was taken back.`));
      const { askMs } = this.#limits;
      const timer = setTimeout(
        () => takeBack(new Fault("timeout", `The agent did not answer ${method} within ${askMs / 1000} s.`)),
        askMs,
      );
      timer.unref();
      signal.addEventListener("abort", onAbort, { once: true });
      this.#pending.set(id, {
        method,
        resolve: (response) => {
          settle();
          resolve(response);
        },
        reject: (fault) => {
          settle();
          reject(fault);
        },
      });
      send(rewrite(request, [{ path: ["id"], json: JSON.stringify(id) }]));
    });
  }

  /** False for an answer that nobody waits for: late, repeated or made up. */
  answered(response: ResponseMessage): boolean {
    const question = typeof response.id === "string" ? this.#pending.get(response.id) : undefined;
    if (question === undefined) return false;
    const wrong = wrongIn(response);
    if (wrong === undefined) question.resolve(response);
    else
      question.reject(
        new Fault("invalid", `The agent answered ${question.method} with ${wrong}. It was not passed on.`),
      );
    return true;
  }

  /** Nobody will answer what is open; `why` is a sentence. */
  rejectAll(why: string): void {
    for (const question of [...this.#pending.values()]) {
      question.reject(new Fault("closing", `${question.method} was not answered. ${why}`));
    }
  }
}

/**
 * What is wrong with an answer; undefined where it is a result or an error. Servers' parsers differ in what they make of anything
 * else, and some end a connection over it that other agents use too.
 */
function wrongIn({ result, error, members }: ResponseMessage): string | undefined {
  if (error === undefined) return isObject(result) ? undefined : 'a "result" that is no object';
  return members.some(({ key }) => key === "result") ? 'a "result" and an "error"' : undefined;
}

/**
 * What an agent would have to declare to be asked this; undefined where it has. A server may use what was negotiated,
 * and nothing else. So a method that we do not know (a vendor's, or one of a version to come) goes to agents with a
 * capability that we do not know, by which it may have been negotiated; of the others none could answer it.
 */
function lackingFor(method: string, capabilities: JsonObject): string | undefined {
  const need = Object.hasOwn(NEEDS, method) ? NEEDS[method] : undefined;
  if (need !== undefined) return isObject(capabilities[need]) ? undefined : `the capability "${need}"`;
  return Object.keys(capabilities).some((name) => !KNOWN.has(name)) ? undefined : "any capability that it could be of";
}

function cancelledText(requestId: string, reason: string): string {
  return JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId, reason } });
}
