// One POST with one request: the call, its way back and its answer. The hot path.

import type { ServerResponse } from "node:http";
import type { AgentCall } from "../../contracts/service.js";
import { replySize } from "../../protocol/arrived.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import type { RequestMessage } from "../../protocol/message.js";
import { type Reply, renderReply, type StreamReply, spliceLatin1 } from "../../protocol/reply.js";
import type { Accepts } from "../http/checks.js";
import type { Flight } from "../http/flights.js";
import { isLarge, writeLarge } from "../http/large-answer.js";
import { collect, jsonHeaders, pipeBody } from "../http/pipe-body.js";
import { Call, idText } from "../session/call.js";
import type { HttpSession } from "./http-session.js";
import { PostAnswer } from "./post-answer.js";

export class Exchange extends Call {
  readonly #answer: PostAnswer;
  readonly #idText: string;

  constructor(flight: Flight, session: HttpSession, message: RequestMessage, res: ServerResponse, accepts: Accepts) {
    super(session, message);
    this.#idText = idText(message);
    this.#answer = new PostAnswer(flight, session, res, accepts, this.#idText);
  }

  /** The request's own: read only where calls are traced. */
  get traceHeaders(): AgentCall["traceHeaders"] {
    return this.#answer.res.req.headers;
  }

  override get unreachable(): boolean {
    return this.#answer.lost;
  }

  /** Leaves nothing in flight, for a request that was refused before it began. */
  dismiss(): void {
    this.#answer.land();
  }

  notify(text: string): void {
    const stream = this.done ? undefined : this.#answer.stream();
    if (stream !== undefined) stream.send(text);
    else if (!this.#answer.lost) this.session.notify(text);
  }

  protected sendRequest(text: string): void {
    const stream = this.done ? undefined : this.#answer.stream();
    const { session } = this.#answer;
    if (stream !== undefined && (stream.attached || !session.listening)) stream.send(text);
    else session.notify(text);
  }

  protected write(reply: Reply): void {
    const stream = this.#answer.streamForReply();
    const limits = this.session.limits;
    if (reply.kind === "stream") this.#writeStream(reply);
    else if (reply.kind === "bytes" && replySize(reply) > limits.outputBytes) this.#tooLarge(replySize(reply));
    else if (stream !== undefined) {
      this.#answer.land();
      stream.finish(renderReply(reply, this.#idText));
    } else if (reply.kind === "bytes" && reply.latin1 !== undefined) {
      this.#answer.latin1(spliceLatin1(reply, reply.latin1, this.#idText));
    } else if (reply.kind === "bytes" && isLarge(reply)) {
      this.#answer.land();
      writeLarge(this.#answer.res, reply, this.#idText, limits);
    } else this.#answer.json(renderReply(reply, this.#idText));
  }

  #tooLarge(bytes: number): void {
    const { outputBytes } = this.session.limits;
    const fault = new Fault("limit", `The reply has ${bytes} bytes; the limit is ${outputBytes}.`);
    this.write({ kind: "error", error: toRpcError(fault) });
  }

  #writeStream(reply: StreamReply): void {
    const stream = this.#answer.streamForReply();
    const { res } = this.#answer;
    if (stream?.attached) {
      this.#answer.land();
      stream.finishStream(reply.open(this.#idText));
    } else if (stream !== undefined) {
      // The client is away and may come back: keep it if it is not too large for that.
      void collect(reply.open(this.#idText), this.session.limits.replayBytes).then((bytes) => {
        this.#answer.land();
        if (bytes === undefined) stream.abandon();
        else stream.finish(bytes);
      });
    } else {
      this.#answer.land();
      const size = reply.size?.(this.#idText);
      const body = reply.open(this.#idText);
      if (res.destroyed) {
        body.destroy();
        return;
      }
      res.writeHead(200, jsonHeaders(size));
      pipeBody(body, res, this.session.limits);
    }
  }

  protected abandon(): void {
    this.#answer.abandon();
  }
}
