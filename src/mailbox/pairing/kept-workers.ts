// The tokens that pairings gave to this user, each in a file of its own (0600), so that whoever has paired once need not
// again.

import { hash } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isObject } from "../../protocol/jsonrpc.js";
import type { PairedWorker } from "./redeem.js";

/** Nobody pairs more machines than this; a folder with more is not ours. */
const MAX_KEPT = 1_000;

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

/** Those for a mailbox, of one broker or of all. */
export function keptWorkers(root: string, mailbox: string, broker?: string): PairedWorker[] {
  return allKeptWorkers(root).filter(
    (one) => one.mailbox === mailbox && (broker === undefined || plain(broker) === plain(one.broker)),
  );
}

export function allKeptWorkers(root: string): PairedWorker[] {
  let names: string[];
  try {
    names = readdirSync(folderIn(root)).filter((name) => name.endsWith(".json"));
  } catch {
    // Nobody has paired here.
    return [];
  }
  return names.slice(0, MAX_KEPT).flatMap((name) => read(join(folderIn(root), name)) ?? []);
}

/** An address is the same with and without the path that goes without saying. */
function plain(broker: string): string {
  return broker.replace(/\/$/, "").replace(/\/mailboxes$/, "");
}

function folderIn(root: string): string {
  return join(root, "paired");
}

/** Undefined for a file that is not whole, or not ours. */
function read(path: string): PairedWorker | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (!isObject(value)) return undefined;
    const { broker, id, token, mailbox } = value;
    if (typeof broker !== "string" || typeof id !== "string") return undefined;
    return typeof token === "string" && typeof mailbox === "string" ? { broker, id, token, mailbox } : undefined;
  } catch {
    return undefined;
  }
}
