// What the kernel says of a process: memory, descriptors, descendants. Linux only; reads /proc, and knows no gateway.

import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";

export const linux = process.platform === "linux";

export const MB = 1_000_000;

function statusKb(pid: number, field: string): number {
  const match = new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(readFileSync(`/proc/${pid}/status`, "latin1"));
  if (match?.[1] === undefined) throw new Error(`Process ${pid} has no ${field}.`);
  return Number(match[1]);
}

/** Resident memory, in bytes. */
export function rss(pid: number): number {
  return statusKb(pid, "VmRSS") * 1024;
}

/** What of it is the process's own, in bytes: pages of files that it has mapped are the kernel's, which takes them back at need. */
export function ownMemory(pid: number): number {
  return statusKb(pid, "RssAnon") * 1024;
}

/** The most that it was since resetPeak(). */
export function peakRss(pid: number): number {
  return statusKb(pid, "VmHWM") * 1024;
}

export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

/** Open descriptors, by what they are: `tcp`, other sockets (a child's pipes are), pipes, files. */
export function descriptors(pid: number): string[] {
  const kinds: string[] = [];
  const tcp = tcpInodes(pid);
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const link = readlinkSync(`/proc/${pid}/fd/${fd}`);
      const [, kind = link, inode = ""] = /^(\w+):\[(\d+)\]$/.exec(link) ?? [];
      kinds.push(kind === "socket" && tcp.has(inode) ? "tcp" : kind);
    } catch {
      // Closed meanwhile.
    }
  }
  return kinds.sort((a, b) => a.localeCompare(b));
}

function tcpInodes(pid: number): Set<string> {
  const lines = ["tcp", "tcp6"].flatMap((table) => contents(`/proc/${pid}/net/${table}`).split("\n").slice(1));
  return new Set(lines.map((line) => line.trim().split(/\s+/)[9] ?? ""));
}

interface Process {
  readonly pid: number;
  readonly state: string;
  readonly parent: number;
}

function processes(): Process[] {
  const all: Process[] = [];
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      // `pid (name) state ppid …`; the name may hold anything.
      const stat = readFileSync(`/proc/${name}/stat`, "latin1");
      const [state = "", parent = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      all.push({ pid: Number(name), state, parent: Number(parent) });
    } catch {
      // Gone meanwhile.
    }
  }
  return all;
}

/** Children that ended and were not collected. */
export function zombiesOf(pid: number): number[] {
  return processes()
    .filter(({ state, parent }) => state === "Z" && parent === pid)
    .map((process) => process.pid);
}

type Place = "environ" | "cmdline";

/** Live processes with one of `needles` in their environment or their arguments, but for this one. */
export function processesNaming(needles: readonly string[], places: readonly Place[]): number[] {
  return processes()
    .filter(({ pid, state }) => {
      if (state === "Z" || pid === process.pid) return false;
      const words = places.map((place) => contents(`/proc/${pid}/${place}`)).join("");
      return needles.some((needle) => words.includes(needle));
    })
    .map(({ pid }) => pid);
}

function contents(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

/** One line for whoever runs it: what was measured. */
export function report(fault: string, figures: string): void {
  process.stdout.write(`faults · ${fault}: ${figures}\n`);
}

export function megabytes(bytes: number): string {
  return `${(bytes / MB).toFixed(1)} MB`;
}
