// CPU time and memory of a process tree, from /proc. Linux alone has it.

import { readdirSync, readFileSync } from "node:fs";

/** USER_HZ, which is 100 on every Linux that Node runs on. */
const TICK_NS = 10_000_000;
/** The kernel rounds a process's user and system time to ticks, down. */
const TICKS_LOST = 2;
const KIB = 1024;

/** @returns {string | undefined} why nothing can be measured here */
export function unsupported() {
  if (process.platform === "linux") return undefined;
  return `The bench reads CPU time from /proc, which ${process.platform} does not have: run it on Linux.`;
}

function read(path) {
  try {
    return readFileSync(path, "latin1");
  } catch {
    // It ended since it was listed.
    return undefined;
  }
}

/** The fields of /proc/<pid>/stat after the name, which may hold anything; [0] is the state. */
function statOf(pid) {
  const text = read(`/proc/${pid}/stat`);
  return text?.slice(text.lastIndexOf(")") + 2).split(" ");
}

/** A process and all that descend from it. */
export function treeOf(root) {
  const children = new Map();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const parent = statOf(name)?.[1];
    if (parent === undefined) continue;
    const siblings = children.get(Number(parent)) ?? [];
    siblings.push(Number(name));
    children.set(Number(parent), siblings);
  }
  const tree = [root];
  for (let i = 0; i < tree.length; i++) tree.push(...(children.get(tree[i]) ?? []));
  return tree;
}

/**
 * `threads`: ns by thread; `processes`: ticks by process, of its ended threads and waited-for children too.
 * @typedef {{ threads: Map<string, number>, processes: Map<number, number> }} CpuReading
 * @returns {CpuReading}
 */
export function readCpu(root) {
  return readCpuOf(treeOf(root), true);
}

/** Of one process, without its children. @returns {CpuReading} */
export function readCpuAlone(pid) {
  return readCpuOf([pid], false);
}

function readCpuOf(pids, withEnded) {
  const threads = new Map();
  const processes = new Map();
  for (const pid of pids) {
    const stat = statOf(pid);
    if (stat === undefined) continue;
    const [user, system, childUser, childSystem] = stat.slice(11, 15).map(Number);
    processes.set(pid, user + system + (withEnded ? childUser + childSystem : 0));
    let tids = [];
    try {
      tids = readdirSync(`/proc/${pid}/task`);
    } catch {
      continue;
    }
    for (const tid of tids) {
      const ns = Number(read(`/proc/${pid}/task/${tid}/schedstat`)?.split(" ")[0] ?? Number.NaN);
      if (!Number.isNaN(ns)) threads.set(`${pid}/${tid}`, ns);
    }
  }
  return { threads, processes };
}

/**
 * The CPU time between two readings, in ns. Exact from the threads; where the processes' own account says that time is
 * missing there (threads or children that ended, a kernel without schedstat), that account, in steps of 10 ms.
 * @param {CpuReading} before @param {CpuReading} after
 */
export function cpuBetween(before, after) {
  let exact = 0;
  for (const [thread, ns] of after.threads) exact += ns - (before.threads.get(thread) ?? 0);
  let ticks = 0;
  for (const [pid, count] of after.processes) ticks += count - (before.processes.get(pid) ?? 0);
  const coarse = ticks * TICK_NS;
  const slack = TICKS_LOST * TICK_NS * after.processes.size;
  return coarse - exact > slack ? { ns: coarse, isCoarse: true } : { ns: exact, isCoarse: false };
}

/** Resident memory of a process tree, in bytes. */
export function readRss(root) {
  let bytes = 0;
  for (const pid of treeOf(root)) {
    const kib = /^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`) ?? "")?.[1];
    bytes += Number(kib ?? 0) * KIB;
  }
  return bytes;
}
