// The load of the workload `executor`, in a process of its own: makes HTTP requests by one way (directly, through the
// bare tunnel, through an executor), and checks what comes. Its CPU is the near end's. It is told what to do by IPC.

import { Agent, request } from "node:http";
import { figuresOfRound, serveLoad } from "./rounds.mjs";

const PIECE = 64 * 1024;
const MIB = 1024 * 1024;
const SMALL_BYTES = JSON.stringify({ ok: true, text: "x".repeat(100) }).length;

/** The rule of bench/servers/bodies.mjs. */
const byteAt = (offset) => ((offset % PIECE) * 31 + ((offset % PIECE) >> 8)) & 0xff;

/** How a way is opened: to a function that makes a request and tells a reader of the body. */
const WAYS = {
  direct: async () => {
    const agent = new Agent({ keepAlive: true });
    return (url, reader) => {
      const out = request(url, { agent }, (reply) => {
        reply.on("data", (chunk) => reader.onData(chunk));
        reply.on("end", () => reader.onEnd());
      });
      out.on("error", (error) => reader.onError(error));
      out.end();
    };
  },
  tunnel: async ({ url }) => (await import("./limits/tunnel-near.mjs")).openTunnel(url),
  toolway: async ({ url, token, library }) => {
    const { connectExecutor } = await import(library);
    const client = await connectExecutor({ url, token });
    return (target, reader) => client.start({ method: "GET", url: target, headers: [] }, reader);
  },
};

/** One request at a time, over and over: its callbacks are its own, and made once. */
class Worker {
  #begun = 0;
  #offset = 0;
  #bytes = 0;
  #isBody = false;

  constructor(make, onDone, onFailed) {
    this.make = make;
    this.onDone = onDone;
    this.onFailed = onFailed;
  }

  ask(url, bytes, isBody) {
    this.#begun = performance.now();
    this.#offset = 0;
    this.#bytes = bytes;
    this.#isBody = isBody;
    this.make(url, this);
  }

  onHead(status) {
    if (status !== 200) this.onFailed(new Error(`The answer has status ${status}.`));
  }

  onData(chunk) {
    // Both ends of each chunk: one that is lost, doubled or moved does not fit, and it costs next to nothing.
    const last = this.#offset + chunk.length - 1;
    if (this.#isBody && (chunk[0] !== byteAt(this.#offset) || chunk[chunk.length - 1] !== byteAt(last))) {
      this.onFailed(new Error(`A wrong byte between ${this.#offset} and ${last}.`));
    }
    this.#offset += chunk.length;
  }

  onEnd() {
    if (this.#offset !== this.#bytes) this.onFailed(new Error(`${this.#offset} bytes came of ${this.#bytes}.`));
    else this.onDone(this, performance.now() - this.#begun);
  }

  onError(error) {
    this.onFailed(error);
  }
}

let make;
let origin;

/** Requests until `count` are done or the time is over. Resolves to how long each took, and all together. */
function run({ kind, bodyBytes, inFlight }, count, maxMs) {
  const isBody = kind === "body";
  const url = isBody ? `${origin}/body/${bodyBytes}` : `${origin}/small`;
  const bytes = isBody ? bodyBytes : SMALL_BYTES;
  return new Promise((resolve, reject) => {
    const took = [];
    const begun = performance.now();
    let asked = 0;
    let busy = 0;
    const next = (worker) => {
      if (asked >= count || performance.now() - begun > maxMs) {
        if (busy === 0) resolve({ took, ms: performance.now() - begun });
        return;
      }
      asked++;
      busy++;
      worker.ask(url, bytes, isBody);
    };
    const done = (worker, ms) => {
      busy--;
      took.push(ms);
      // Not within the last one's callback.
      queueMicrotask(() => next(worker));
    };
    for (let i = 0; i < Math.min(inFlight, count); i++) next(new Worker(make, done, reject));
  });
}

serveLoad({
  open: async ({ way, ...more }) => {
    origin = more.origin;
    make = await WAYS[way](more);
  },
  round: async (job, { warm, calls, maxMs }, ready) => {
    if (warm > 0) await run(job, warm, maxMs);
    await ready();
    const made = await run(job, calls, maxMs);
    const { length } = made.took;
    return figuresOfRound(made, job.kind === "body" ? (length * job.bodyBytes) / MIB : length);
  },
});
