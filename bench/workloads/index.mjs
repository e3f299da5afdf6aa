// The workloads, in the order in which they run.

import { bigHttp, bigStdio, smallHttp, smallStdio } from "./calls.mjs";
import { equipped } from "./equipped.mjs";
import { executor } from "./executor.mjs";
import { list } from "./list.mjs";
import { machines } from "./machines.mjs";
import { mailbox } from "./mailbox.mjs";
import { memory } from "./memory.mjs";
import { observe } from "./observe.mjs";
import { outbox } from "./outbox.mjs";
import { resultsHttp, resultsStdio } from "./results.mjs";
import { scaleServers, scaleSessions, scaleTools } from "./scale.mjs";
import { start } from "./start.mjs";
import { ten } from "./ten.mjs";

/**
 * @typedef {{
 *   name: string,
 *   summary: string,
 *   run: (context: object) => Promise<{
 *     rows?: import("../target.mjs").Row[],
 *     measures?: import("../target.mjs").Measure[],
 *   }>,
 * }} Workload
 * @type {Workload[]}
 */
export const workloads = [
  smallHttp,
  smallStdio,
  bigHttp,
  bigStdio,
  resultsHttp,
  resultsStdio,
  list,
  start,
  memory,
  scaleServers,
  scaleTools,
  scaleSessions,
  ten,
  equipped,
  observe,
  executor,
  mailbox,
  outbox,
  machines,
];
