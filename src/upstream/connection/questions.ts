// A server's requests to an agent (sampling, elicitation, roots) while they wait for their answer.
// Which agent is asked is the connection's decision; how it is reached is the Caller's.

import type { Caller } from "../../contracts/caller.js";
import { toRpcError } from "../../protocol/errors.js";
import type { RpcError, RpcId } from "../../protocol/jsonrpc.js";
import {
  locate,
  type NotificationMessage,
  parseMessage,
  type RequestMessage,
  type ResponseMessage,
  rewrite,
} from "../../protocol/message.js";

/** Questions of one server at a time: more is a server gone wild, not one that needs answers. */
const MAX_OPEN_QUESTIONS = 100;

interface Question {
  readonly caller: Caller;
  readonly abort: AbortController;
  /** The progress token that the agent sees, and the server's own, as JSON. */
  readonly token: { readonly ours: string; readonly json: string } | undefined;
}

const PROGRESS_TOKEN = ["params", "_meta", "progressToken"];

/** Servers choose their tokens without knowing of each other; an agent must see different ones. */
let tokens = 0;

export class Questions {
  readonly #open = new Map<RpcId, Question>();
  readonly #send: (text: string) => void;

  constructor(send: (text: string) => void) {
    this.#send = send;
  }

  /** Asks, and sends the answer (or why there is none) to the server under the server's own id. */
  ask(request: RequestMessage, caller: Caller): void {
    const { id } = request;
    if (this.#open.size >= MAX_OPEN_QUESTIONS || this.#open.has(id)) {
      const message = this.#open.has(id) ? `Request id ${id} is in use.` : "Too many open requests to agents.";
      this.refuse(request, { code: -32600, message });
      return;
    }
    const abort = new AbortController();
    const at = locate(request, PROGRESS_TOKEN);
    const json = at === undefined ? undefined : request.text.slice(at.start, at.end);
    const token = json === undefined ? undefined : { ours: `question-${++tokens}`, json };
    this.#open.set(id, { caller, abort, token });
    caller.ask(token === undefined ? request : withToken(request, token.ours), abort.signal).then(
      (response) => this.#answer(request, response),
      (error: unknown) => {
        // A request that the server took back has no answer.
        if (this.#open.delete(id) && !abort.signal.aborted) this.refuse(request, toRpcError(error));
      },
    );
  }

  refuse(request: RequestMessage, error: RpcError): void {
    this.#send(`{"jsonrpc":"2.0","id":${idText(request)},"error":${JSON.stringify(error)}}`);
  }

  /** The server no longer wants the answer. */
  cancel(id: unknown): void {
    const question = typeof id === "string" || typeof id === "number" ? this.#open.get(id) : undefined;
    question?.abort.abort();
  }

  /** Progress that an agent reports on a question of ours is passed on; false where it is none of ours. */
  progress(sessionKey: string, message: NotificationMessage): boolean {
    const reported = message.params?.["progressToken"];
    for (const { caller, token } of this.#open.values()) {
      if (token === undefined || token.ours !== reported || caller.sessionKey !== sessionKey) continue;
      try {
        this.#send(rewrite(message, [{ path: ["params", "progressToken"], json: token.json }]));
      } catch {
        // Two tokens in one notification: there is nobody to tell, and nothing is lost.
      }
      return true;
    }
    return false;
  }

  /** Whether an agent is being asked: the call that it is about cannot go on meanwhile. */
  isAsking(sessionKey: string): boolean {
    for (const { caller } of this.#open.values()) if (caller.sessionKey === sessionKey) return true;
    return false;
  }

  abortAll(): void {
    for (const question of this.#open.values()) question.abort.abort();
    this.#open.clear();
  }

  #answer(request: RequestMessage, response: ResponseMessage): void {
    if (!this.#open.delete(request.id)) return;
    this.#send(rewrite(response, [{ path: ["id"], json: idText(request) }]));
  }
}

function withToken(request: RequestMessage, token: string): RequestMessage {
  const text = rewrite(request, [{ path: PROGRESS_TOKEN, json: JSON.stringify(token) }]);
  return parseMessage(text) as RequestMessage;
}

/** The id as the server wrote it: 1.0 stays 1.0. */
function idText(request: RequestMessage): string {
  const at = locate(request, ["id"]);
  return at === undefined ? JSON.stringify(request.id) : request.text.slice(at.start, at.end);
}
