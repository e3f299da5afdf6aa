// The workloads, in the order in which they run.

import { bigHttp, bigStdio, smallHttp, smallStdio } from "./calls.mjs";

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
export const workloads = [smallHttp, smallStdio, bigHttp, bigStdio];
