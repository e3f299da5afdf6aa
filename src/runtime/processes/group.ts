// One child's process group: signals to all of it, and the certain end of it. It knows nothing of messages.

import { type ChildProcess, spawn } from "node:child_process";
import { systemClock } from "../clock.js";
import { resultWithin, sleep } from "../wait.js";
import type { Reaper } from "./reaper.js";
import { groupIsAlive } from "./reaper-marker.js";

/** How often to look whether the group is empty: no event tells of grandchildren. */
const POLL_MS = 20;

/** After SIGKILL a process ends as soon as it leaves the kernel; one that does not (a dead disk) is not waited for. */
const KILLED_WAIT_MS = 2_000;

export class ProcessGroup {
  readonly #child: ChildProcess;
  readonly #pgid: number;
  readonly #marker: string;
  readonly #reaper: Reaper;
  /** Resolves when the leader was collected: from then on the number is ours only while members are left. */
  readonly #exited: Promise<void>;
  #leaderGone = false;
  #over: Promise<void> | undefined;

  constructor(child: ChildProcess, pgid: number, marker: string, reaper: Reaper) {
    this.#child = child;
    this.#pgid = pgid;
    this.#marker = marker;
    this.#reaper = reaper;
    reaper.adopt(pgid);
    this.#exited = new Promise((resolve) => {
      child.once("exit", () => {
        this.#leaderGone = true;
        resolve();
      });
    });
  }

  /** Whether the leader ends within `ms`. */
  async exits(ms: number): Promise<boolean> {
    if (this.#leaderGone) return true;
    await resultWithin(this.#exited, ms);
    return this.#leaderGone;
  }

  /**
   * Signals all members. After the leader's end it is called only in the turn of its exit event, or right after we saw
   * live members: else the number may be another's.
   */
  signal(signal: "SIGTERM" | "SIGKILL"): void {
    try {
      if (process.platform === "win32") this.#signalTree();
      else process.kill(-this.#pgid, signal);
    } catch {
      // ESRCH: nobody is left. EPERM: what is left changed its user, and cannot be signalled by us.
    }
  }

  /** Windows has neither groups nor SIGTERM: the tree is ended by the system's own tool. */
  #signalTree(): void {
    if (this.#leaderGone) return;
    const killer = spawn("taskkill", ["/pid", String(this.#pgid), "/T", "/F"], { stdio: "ignore", windowsHide: true });
    killer.on("error", () => this.#child.kill());
  }

  /** Sends SIGTERM, and kills whoever is left after the grace. Resolves when all are gone. */
  async terminate(graceMs: number): Promise<void> {
    if (!this.#leaderGone || (await this.#alive())) {
      this.signal("SIGTERM");
      if (!(await this.#empties(graceMs))) return this.kill();
    }
    this.#over ??= this.#sweep();
    return this.#over;
  }

  /**
   * Kills all that is left, in the group and outside of it. It is called while the number is certainly ours: see
   * signal(). Resolves when nothing is left; a second call does no harm.
   */
  kill(): Promise<void> {
    if (this.#over === undefined) {
      this.signal("SIGKILL");
      this.#over = this.#sweep();
    }
    return this.#over;
  }

  /** The group is empty or was killed: nothing is signalled by its number any more, only by the marker. */
  async #sweep(): Promise<void> {
    this.#reaper.release(this.#pgid);
    await this.#empties(KILLED_WAIT_MS);
    await this.#reaper.kill(this.#marker);
  }

  async #empties(ms: number): Promise<boolean> {
    const end = systemClock.now() + ms;
    if (!(await this.exits(ms))) return false;
    while (await this.#alive()) {
      if (systemClock.now() >= end) return false;
      await sleep(POLL_MS);
    }
    return true;
  }

  async #alive(): Promise<boolean> {
    return process.platform !== "win32" && (await groupIsAlive(this.#pgid));
  }
}
