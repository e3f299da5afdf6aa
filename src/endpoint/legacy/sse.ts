// The old HTTP+SSE transport of 2024-11-05: one GET stream is the session, messages come by POST to the address
// that its first event names. Nothing of it survives the stream.

import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principal } from "../../contracts/caller.js";
import type { Service } from "../../contracts/service.js";
import { Fault, LIMIT, SESSION_NOT_FOUND } from "../../protocol/errors.js";
import type { Message } from "../../protocol/message.js";
import type { Clock } from "../../runtime/clock.js";
import { type BodyReading, type PostReceiver, readPost } from "../http/read-post.js";
import { STILL_MS } from "../http/slow-readers.js";
import { EVENT_STREAM_HEADERS, KEEP_ALIVE } from "../http/sse.js";
import { accepted, refuse } from "../http/write-reply.js";
import { EVENTS, PipeOut } from "../stdio/out.js";
import { PipePeer } from "../stdio/peer.js";

interface SseStream {
  readonly peer: PipePeer;
  readonly out: PipeOut;
  readonly res: ServerResponse;
  /** How long its reader may stand still; 0 for ever. */
  stillMs: number;
}

export class LegacySse {
  readonly #service: Service;
  readonly #reading: BodyReading;
  readonly #clock: Clock;
  readonly #streams = new Map<string, SseStream>();

  constructor(service: Service, reading: BodyReading, clock: Clock) {
    this.#service = service;
    this.#reading = reading;
    this.#clock = clock;
  }

  get size(): number {
    return this.#streams.size;
  }

  get inFlight(): number {
    let calls = 0;
    for (const stream of this.#streams.values()) calls += stream.peer.inFlight;
    return calls;
  }

  open(res: ServerResponse, principal: Principal, scope: string | undefined): void {
    const { limits, held, failed } = this.#reading;
    if (this.#streams.size >= limits.sessions) {
      refuse(res, 503, LIMIT, "All sessions that this endpoint can hold are in use. Try again later.");
      return;
    }
    const key = randomBytes(24).toString("base64url");
    const out = new PipeOut(res, EVENTS, limits, held, principal.id);
    const peer = new PipePeer({
      service: this.#service,
      principal,
      scope,
      limits,
      clock: this.#clock,
      out,
      failed,
    });
    this.#streams.set(key, { peer, out, res, stillMs: 0 });
    res.writeHead(200, EVENT_STREAM_HEADERS as string[]);
    res.write(`event: endpoint\ndata: /messages?session=${key}\n\n`);
    res.on("close", () => {
      this.#streams.delete(key);
      peer.close(new Fault("closing", "The agent has gone."));
    });
  }

  /** The address alone proves nothing: whoever posts must be the principal that opened the stream. */
  post(req: IncomingMessage, res: ServerResponse, principal: Principal, query: string): void {
    const key = new URLSearchParams(query).get("session") ?? "";
    const stream = this.#streams.get(key);
    if (stream === undefined || stream.peer.principal.id !== principal.id) {
      refuse(res, 404, SESSION_NOT_FOUND, "No such session, or its stream has ended. Open /sse again.");
    } else if (stream.out.full) {
      refuse(res, 429, LIMIT, "The stream of this session is not read fast enough. Try again later.");
    } else readPost(new SsePost(req, res, stream.peer), this.#reading);
  }

  /** While memory is short, a reader that takes nothing of what waits for it is cut. */
  watchReaders(isShort: boolean): void {
    for (const stream of this.#streams.values()) {
      const { out, res } = stream;
      out.recount();
      if (out.overflowing) res.destroy();
      const stillMs = isShort && out.isBehind ? STILL_MS : 0;
      if (stream.stillMs === stillMs) continue;
      stream.stillMs = stillMs;
      res.setTimeout(stillMs);
    }
  }

  /** Sends a comment at each tick, which comes every few seconds. */
  keepAlive(): void {
    for (const { res, out } of this.#streams.values()) {
      if (out.overflowing) res.destroy();
      else if (!out.full && !out.busy) res.write(KEEP_ALIVE);
    }
  }

  closePrincipals(ended: (principal: Principal) => boolean, fault: Fault): void {
    for (const stream of this.#streams.values()) if (ended(stream.peer.principal)) this.#end(stream, fault);
  }

  closeAll(): void {
    for (const stream of this.#streams.values()) this.#end(stream, new Fault("closing", "The gateway is closing."));
  }

  #end({ peer, res }: SseStream, fault: Fault): void {
    peer.close(fault);
    res.end();
  }
}

/** The answer is always 202; what there is to say goes onto the stream. */
class SsePost implements PostReceiver {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly #peer: PipePeer;

  get principal(): Principal {
    return this.#peer.principal;
  }

  constructor(req: IncomingMessage, res: ServerResponse, peer: PipePeer) {
    this.req = req;
    this.res = res;
    this.#peer = peer;
  }

  onMessage(message: Message): void {
    accepted(this.res);
    this.#peer.take(message);
  }

  onBatch(messages: readonly Message[]): void {
    accepted(this.res);
    this.#peer.takeBatch(messages);
  }
}
