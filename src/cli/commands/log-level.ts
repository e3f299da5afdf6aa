// `toolway log-level`: how much a running gateway logs.

import type { LogLevelAnswer } from "../../contracts/control/log-level.js";
import { demandGateway } from "../gateway/which.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit, usageError } from "../line/errors.js";
import { print, printJson } from "../line/io.js";
import { durationMs } from "../line/times.js";

const LEVELS = ["debug", "info", "warn", "error"];

export const logLevel = defineCommand({
  metadata: {
    name: "log-level",
    summary: "Shows or changes how much a running gateway logs.",
    description:
      "Shows or changes how much a running gateway logs. With --for it is as before after that time. At its start a gateway " +
      "takes --log-level, else TOOLWAY_LOG_LEVEL, else info.",
  },
  args: { level: { description: `One of ${LEVELS.join(", ")}. Without it, what it is now.`, completes: LEVELS } },
  options: {
    for: {
      value: "TIME",
      description: "For so long, at most a day: 30s, 10m, 2h. Default: until it is changed again.",
    },
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    { line: "toolway log-level debug --for 10m", note: "more, for ten minutes" },
    { line: "toolway log-level", note: "what it is now" },
  ],
  async handler(input, io) {
    const { level } = input;
    if (level !== undefined && !LEVELS.includes(level)) {
      throw usageError(`${level} is no level of the log: expected ${LEVELS.join(", ")}.`);
    }
    const forMs = millisecondsOf(input.for);
    if (level === undefined && forMs !== undefined)
      throw usageError("--for needs a level: toolway log-level debug --for 10m.");
    const client = await demandGateway(input, io);
    const answer = (await (level === undefined
      ? client.get("/log-level", io.signal)
      : client.post("/log-level", { level, forMs }, io.signal))) as LogLevelAnswer;
    if (input.json) printJson(io, answer);
    else
      print(
        io,
        answer.until === undefined ? answer.level : `${answer.level} until ${answer.until}, then ${answer.after}`,
      );
    return Exit.ok;
  },
});

function millisecondsOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = durationMs(text);
  if (ms === undefined || ms > 24 * 3_600_000)
    throw usageError(`--for ${text}: expected a time such as 30s, 10m or 2h, at most a day.`);
  return ms;
}
