// The limit for what is to be on disk: appends to an LMDB, each resolved when it is synced, of so many writers that each
// wait for theirs. It is its own load, told what to do by IPC as bench/mailbox-load.mjs is.

import { open } from "lmdb";
import { serveRounds } from "../mailbox-load.mjs";

let env;
let next = 0;

serveRounds({
  open: async ({ dir }) => {
    // As the store opens it: one sync a commit, done when the promise resolves.
    env = open({ path: dir, noSubdir: false, overlappingSync: false, encoding: "string" });
  },
  worker: async ({ body }) => ({
    once: async () => {
      await env.put(++next, body);
    },
    close() {},
  }),
});
