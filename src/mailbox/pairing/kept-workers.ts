// The tokens that pairings gave to this user, each in a file of its own (0600), so that whoever has paired once need not
// again.

import { hash } from "node:crypto";
import { chmodSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PairedWorker } from "./redeem.js";

/** `root` is where the state of this user is. */
export function keepWorker(root: string, worker: PairedWorker): string {
  const folder = folderIn(root);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  const name = hash("sha256", `${worker.broker}\0${worker.mailbox}`, "hex").slice(0, 24);
  const path = join(folder, `${name}.json`);
  const made = `${path}.${process.pid}`;
  const { broker, id, token, mailbox } = worker;
  writeFileSync(made, `${JSON.stringify({ broker, id, token, mailbox })}\n`, { mode: 0o600 });
  renameSync(made, path);
  return path;
}

function folderIn(root: string): string {
  return join(root, "paired");
}
