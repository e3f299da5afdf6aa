// What a Node process can say of itself, under the names that dashboards for Node know.

import { readdirSync, readFileSync } from "node:fs";
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { type Gauge, gauge } from "./series.js";

const NANOSECONDS = 1e9;
const MICROSECONDS = 1e6;
/** How often the loop is looked at: a stall of 50 ms must be seen. */
const RESOLUTION_MS = 20;

/** Watches the event loop from the first time somebody asks, until it is closed. */
export class ProcessGauges {
  #loop: IntervalHistogram | undefined;

  /** The monitor would go on in a program whose gateway has ended. */
  close(): void {
    this.#loop?.disable();
    this.#loop = undefined;
  }

  read(): Gauge[] {
    const { rss, heapTotal, heapUsed, external } = process.memoryUsage();
    const { userCPUTime, systemCPUTime } = process.resourceUsage();
    const counter = (name: string, help: string, value: number): Gauge => ({
      ...gauge(name, help, value),
      kind: "counter",
    });
    const user = userCPUTime / MICROSECONDS;
    const system = systemCPUTime / MICROSECONDS;
    return [
      counter("process_cpu_user_seconds_total", "CPU time of the program.", user),
      counter("process_cpu_system_seconds_total", "CPU time of the system for it.", system),
      counter("process_cpu_seconds_total", "CPU time, user and system.", user + system),
      gauge("process_resident_memory_bytes", "Resident memory.", rss),
      gauge("process_start_time_seconds", "When it started, since 1970.", performance.timeOrigin / 1_000),
      gauge("nodejs_heap_size_total_bytes", "The heap of the program.", heapTotal),
      gauge("nodejs_heap_size_used_bytes", "What of it is in use.", heapUsed),
      gauge("nodejs_external_memory_bytes", "Memory of buffers.", external),
      {
        name: "nodejs_version_info",
        help: "1; the label says which Node it is.",
        values: [[[["version", process.version]], 1]],
      },
      ...openFiles(),
      ...this.#lag(),
    ];
  }

  /** Since it was asked last. The first time there is nothing to say. */
  #lag(): Gauge[] {
    const loop = this.#loop;
    if (loop === undefined) {
      this.#loop = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
      this.#loop.enable();
      return [];
    }
    const lag = (name: string, help: string, ns: number): Gauge => {
      // The monitor counts its own interval too.
      const seconds = Math.max(0, ns / NANOSECONDS - RESOLUTION_MS / 1_000);
      return gauge(name, help, Number.isFinite(seconds) ? seconds : 0);
    };
    const gauges = [
      lag("nodejs_eventloop_lag_seconds", "How late timers were, on average.", loop.mean),
      lag("nodejs_eventloop_lag_min_seconds", "How late the earliest was.", loop.min),
      lag("nodejs_eventloop_lag_mean_seconds", "How late timers were, on average.", loop.mean),
      lag("nodejs_eventloop_lag_max_seconds", "How late the latest was.", loop.max),
      lag("nodejs_eventloop_lag_p50_seconds", "Half of them were no later.", loop.percentile(50)),
      lag("nodejs_eventloop_lag_p90_seconds", "90 of 100 were no later.", loop.percentile(90)),
      lag("nodejs_eventloop_lag_p99_seconds", "99 of 100 were no later.", loop.percentile(99)),
    ];
    loop.reset();
    return gauges;
  }
}

/** Where the system says it; elsewhere these are absent. */
function openFiles(): Gauge[] {
  try {
    // The one that is open while they are counted is not.
    const open = readdirSync("/proc/self/fd").length - 1;
    const most = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return [
      gauge("process_open_fds", "Open files and connections.", open),
      ...(most === undefined ? [] : [gauge("process_max_fds", "So many may be.", Number(most))]),
    ];
  } catch {
    return [];
  }
}
