// The limit for writes that survive: so many writers that each put a record and a text on disk, make the call, put the result
// beside the record and take the text away, on a bare LMDB with one sync for all that wait. No key, lane or receipt. It is its
// own load, told what to do by IPC as bench/mailbox-load.mjs is.

import { open } from "lmdb";
import { serveRounds } from "../mailbox-load.mjs";
import { Connection } from "../replies.mjs";
import { callRequest, FIRST_ID, setId } from "../requests.mjs";

/** About as many bytes as the outbox keeps of a write, of its call and of its result. */
const RECORD = JSON.stringify({ state: "queued", facts: "x".repeat(650) });
const TEXT = JSON.stringify({ method: "tools/call", arguments: "x".repeat(150) });
const RESULT = JSON.stringify({ result: "x".repeat(150) });

let env;
let url;
let next = 0;

serveRounds({
  open: async (message) => {
    ({ url } = message);
    // As the store opens it: one sync a commit, done when the promise resolves.
    env = open({ path: message.dir, noSubdir: false, overlappingSync: false, encoding: "string" });
  },
  worker: async ({ kind }) => {
    const connection = kind === "call" ? await Connection.open(url) : undefined;
    const call = connection === undefined ? async () => {} : caller(connection);
    return {
      async once() {
        const key = ++next;
        await env.batch(() => {
          env.put(["record", key], RECORD);
          env.put(["text", key], TEXT);
        });
        await call();
        await env.batch(() => {
          env.put(["record", key], RECORD);
          env.put(["result", key], RESULT);
          env.remove(["text", key]);
        });
      },
      close: () => connection?.close(),
    };
  },
});

function caller(connection) {
  const request = callRequest({ url, headers: {}, era: "legacy" }, "echo");
  setId(request, FIRST_ID + 1);
  connection.id = FIRST_ID + 1;
  return () =>
    new Promise((resolve, reject) => {
      connection.onReply = () => resolve();
      connection.onFault = reject;
      connection.send(request.bytes);
    });
}
