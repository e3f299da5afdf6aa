// What the log says of a kept write: one line when it is queued, and one when it has ended. Never its arguments.

import type { KeptWrite } from "./lanes/lane.js";
import { STATE_WORDS } from "./lanes/write.js";

export function logWrite(write: KeptWrite, log: (level: "info" | "warn", text: string) => void): void {
  const { state, why } = write;
  // What its agent is told as the result of its call was never kept from it: the log of calls has it.
  if (state === "done" || state === "failed") {
    if (!write.isQueueLogged && !write.isTold) return;
    if (state === "done") log("info", `outbox: ${named(write)} was delivered`);
    else log("warn", `outbox: ${named(write)} ${STATE_WORDS.failed}: ${why ?? ""}`);
  } else if (state === "queued") {
    // It is tried again and again while its server is away: that is one wait.
    if (!write.isQueueLogged) log("info", `outbox: ${named(write)} is queued: ${why ?? "others are before it"}`);
    write.isQueueLogged = true;
  } else if (write.isOver) log("warn", `outbox: ${named(write)} ${STATE_WORDS[state]}: ${why ?? ""}`);
}

function named({ facts }: KeptWrite): string {
  return `${facts.tool} of server "${facts.server}" (receipt ${facts.id})`;
}
