// The load of the workload `mailbox`, in a process of its own: writers that send a frame each and wait for its answer, to
// a bare echo or to a broker. It is told by its parent, over IPC, where to and when to begin.

import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";
import { figuresOfRound, serveLoad } from "./rounds.mjs";

/** Runs rounds of `writers` workers. Each has a function that does one thing and resolves when it is answered. */
export function serveRounds({ open, worker }) {
  async function run(workers, count, maxMs) {
    const took = [];
    const begun = performance.now();
    let left = count;
    await Promise.all(
      workers.map(async ({ once }) => {
        while (left-- > 0 && performance.now() - begun < maxMs) {
          const at = performance.now();
          await once();
          took.push(performance.now() - at);
        }
      }),
    );
    return { took, ms: performance.now() - begun };
  }

  async function round(job, { warm, calls, maxMs }, ready) {
    const workers = await Promise.all(Array.from({ length: job.inFlight }, (_, n) => worker(job, n)));
    if (warm > 0) await run(workers, warm, maxMs);
    await ready();
    const made = await run(workers, calls, maxMs);
    for (const one of workers) one.close();
    return figuresOfRound(made);
  }

  serveLoad({ open, round });
}

let url;
/** Mailboxes of each round's own: nobody empties them where only deliveries are measured. */
let rounds = 0;

function connect() {
  const ws = new WebSocket(url, { perMessageDeflate: false, skipUTF8Validation: true });
  return new Promise((resolve, reject) => {
    ws.once("error", reject);
    ws.once("open", () => resolve(ws));
  });
}

async function greeted(address) {
  const ws = await connect();
  const welcome = new Promise((resolve) => ws.once("message", resolve));
  ws.send(JSON.stringify({ kind: "hello", agent: { session_id: address } }));
  if (JSON.parse(await welcome).kind !== "welcome") throw new Error(`${address} is not welcome.`);
  return ws;
}

async function echoWorker({ body }) {
  const ws = await connect();
  let done;
  ws.on("message", (data) => done(data));
  const once = () =>
    new Promise((resolve, reject) => {
      done = (data) => (data.length === body.length ? resolve() : reject(new Error("Another echo.")));
      ws.send(body);
    });
  return { once, close: () => ws.terminate() };
}

async function brokerWorker({ kind, body }, n) {
  if (n === 0) rounds++;
  const name = `${rounds}-${n}`;
  const ws = await greeted(`writer-${name}`);
  const taker = kind === "whole" ? await takerOf(`box-${name}`) : undefined;
  let answered;
  let next = 0;
  ws.on("message", (data) => answered(data.toString()));
  const once = async () => {
    const id = `m-${++next}`;
    const taken = taker?.next();
    const answer = await new Promise((resolve) => {
      answered = resolve;
      ws.send(`{"kind":"deliver","to":"box-${name}","message":{"id":"${id}","kind":"note","body":${body}}}`);
    });
    if (answer !== `{"kind":"delivered","id":"${id}"}`) throw new Error(`Not delivered: ${answer}`);
    if (taken !== undefined && (await taken) !== id) throw new Error("Another message was handed out.");
  };
  return {
    once,
    close() {
      ws.terminate();
      taker?.close();
    },
  };
}

async function takerOf(box) {
  const ws = await greeted(box);
  ws.send('{"kind":"subscribe"}');
  let came;
  ws.on("message", (data) => {
    const { message, reason } = JSON.parse(data.toString());
    if (message === undefined) throw new Error(`The taker was told: ${reason}`);
    ws.send(`{"kind":"ack","id":"${message.id}"}`);
    came(message.id);
  });
  const next = () =>
    new Promise((resolve) => {
      came = resolve;
    });
  return { next, close: () => ws.terminate() };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  serveRounds({
    open: async (message) => {
      ({ url } = message);
    },
    worker: (job, n) => (job.kind === "echo" ? echoWorker(job) : brokerWorker(job, n)),
  });
}
