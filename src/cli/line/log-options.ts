// How much a gateway logs and in which form, by options of the verbs that start one. They go before the variables.

export const logOptions = {
  logLevel: {
    value: "LEVEL",
    choices: ["debug", "info", "warn", "error"],
    description: "How much is logged. Default: TOOLWAY_LOG_LEVEL, else info.",
  },
  logFormat: {
    value: "FORM",
    choices: ["text", "json"],
    description: "For people, or for machines. Default: TOOLWAY_LOG_FORMAT, else text.",
  },
} as const;

type Env = Readonly<Record<string, string | undefined>>;

interface LogInput {
  readonly logLevel?: string | undefined;
  readonly logFormat?: string | undefined;
}

/** The environment as it would be had the variables been set. */
export function withLogOptions(env: Env, { logLevel, logFormat }: LogInput): Env {
  return {
    ...env,
    ...(logLevel === undefined ? {} : { TOOLWAY_LOG_LEVEL: logLevel }),
    ...(logFormat === undefined ? {} : { TOOLWAY_LOG_FORMAT: logFormat }),
  };
}
