// The words that the bench's parts share: what is measured (targets), on what (setups), and what comes out (results).
// Types, and which limit is for which transport.

/**
 * One MCP server behind a target. HTTP setups have `url`, stdio setups `command` and `args`.
 * @typedef {{ name: string, url?: string, command?: string, args?: string[] }} ServerEntry
 */

/**
 * What a target is put in front of.
 * - `answers`: how the HTTP servers answer; a target answers as it likes. `json` for stdio.
 * - `era`: of the load and of the servers alike.
 * - `servers`: one tiny server as a rule; many for lists and scaling.
 * - `workDir`: an empty directory of the target's own, for configs and state; the bench removes it.
 * - `names`: the servers' own tool names that the load is going to use, such as `["echo"]`.
 * - `list`: only for the limit `list`: the `result` of tools/list that it serves, as JSON.
 * - `cli`: only for the target `toolway`: the command line program to start, in place of dist's.
 * @typedef {{
 *   upstream: "http" | "stdio",
 *   answers: "json" | "sse",
 *   era: "legacy" | "modern",
 *   servers: ServerEntry[],
 *   workDir: string,
 *   names: string[],
 *   list?: string,
 *   cli?: string,
 * }} Setup
 */

/**
 * A target that listens.
 * - `url`: where the load posts to, such as `http://127.0.0.1:4000/mcp`.
 * - `pid`: the root of the process tree that is charged; undefined where nothing is (the limit `direct`).
 * - `alsoCharged`: the roots of further trees that do a part of its work.
 * - `headers`: sent with each request, such as Authorization.
 * - `toolName`: a server's tool as the target calls it.
 * - `sessions`: the load sends `initialize` first, and Mcp-Session-Id from then on, if it was given one.
 * @typedef {{
 *   url: string,
 *   pid: number | undefined,
 *   alsoCharged?: number[],
 *   headers: Record<string, string>,
 *   toolName: (server: string, tool: string) => string,
 *   sessions: boolean,
 *   stop: () => Promise<void>,
 * }} Running
 */

/**
 * Something to measure. `start` resolves when the target accepts connections and its servers are ready for a call.
 * @typedef {{
 *   name: string,
 *   group: "limit" | "toolway" | "peer",
 *   supports: (setup: Setup) => boolean,
 *   start: (setup: Setup) => Promise<Running>,
 * }} Target
 */

/**
 * One target in one case of a workload. `cpuUs` is the median over the rounds, of the CPU that the target's process
 * tree used for one call, or for one `unit` where the row names one; `ratios` are the rounds' `cpuUs` against the limit `against` in the same round, `ratio` their
 * median. `direct` charges nobody: its `cpuUs` is 0.
 * @typedef {{
 *   workload: string,
 *   upstream: "http" | "stdio" | "executor" | "broker",
 *   answers?: "json" | "sse",
 *   era?: "legacy" | "modern",
 *   inFlight: number,
 *   unit?: "MiB",
 *   target: string,
 *   group: "limit" | "toolway" | "peer",
 *   cpuUs: number,
 *   cpuRounds: number[],
 *   callsPerSec: number,
 *   p50Ms: number,
 *   p99Ms: number,
 *   calls: number,
 *   verified: number,
 *   against?: string,
 *   ratio?: number,
 *   ratios?: number[],
 *   variant?: string,
 * }} Row
 */

/**
 * A figure that is not of calls: `start` and `firstCall` in ms, `rssIdle` in MB, `rssPerSession` in kB.
 * `value` is the median of `rounds`.
 * @typedef {{
 *   measure: "start" | "firstCall" | "rssIdle" | "rssPerSession",
 *   target: string,
 *   group: "limit" | "toolway" | "peer",
 *   value: number,
 *   unit: "ms" | "MB" | "kB",
 *   rounds: number[],
 *   against?: string,
 *   ratio?: number,
 *   ratios?: number[],
 * }} Measure
 */

/**
 * A goal and what was measured: met where `value <= limit`. `value` is undefined where this run did not measure it.
 * @typedef {{ goal: string, limit: number, value: number | undefined, unit: string, met: boolean | undefined }} Goal
 */

/**
 * @typedef {{
 *   machine: { node: string, cpus: string, kernel: string },
 *   rows: Row[],
 *   measures: Measure[],
 *   goals: Goal[],
 * }} Results
 */

/** What a target is measured against, over each transport. */
export const LIMIT_OF = { http: "pass-through", stdio: "bridge" };
