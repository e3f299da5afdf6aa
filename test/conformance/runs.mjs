// What is run: each entry is a column of the table. It starts nothing.

const LEGACY = "2025-11-25";
const MODERN = "2026-07-28";

/** The gateway over the fixture, which speaks `era` alone. */
const over = (requirements, era, kind, title) => ({
  name: `${requirements.slice(0, 4)}-${eraName(requirements) === era ? "" : `on-${era}-`}${kind}`,
  title,
  requirements,
  leg: "server",
  through: "gateway",
  server: { kind, file: "conformance.mjs", era },
  // Across the eras, what the protocol cannot carry is listed; in one era everything is carried.
  ...(eraName(requirements) === era ? {} : { baseline: `${requirements} over a ${era} server` }),
});

/** The same over a server of both eras: over HTTP each agent meets it in its own, so everything is carried. */
const overBoth = (requirements) => ({
  name: `${requirements.slice(0, 4)}-on-both-http`,
  title: `${eraName(requirements)} agents, an HTTP server of both eras`,
  requirements,
  leg: "server",
  through: "gateway",
  server: { kind: "http", file: "conformance.mjs", era: "both" },
});

const direct = (requirements, era) => ({
  name: `direct-${requirements.slice(0, 4)}`,
  title: `the ${era} fixture itself, without a gateway`,
  requirements,
  leg: "server",
  through: "direct",
  server: { kind: "http", file: "conformance.mjs", era },
});

/** The suite is the server; its `--command` is a gateway in front of it that an agent uses. */
const client = (requirements, agent) => ({
  name: `client-${requirements.slice(0, 4)}-${agent}`,
  title: `the suite's ${eraName(requirements)} servers behind the gateway, a ${agent} agent before it`,
  requirements,
  leg: "client",
  through: "gateway",
  agent,
});

const tasks = (kind, through) => ({
  name: through === "direct" ? "direct-tasks" : `tasks-${kind}`,
  title: through === "direct" ? "the fixture with tasks itself" : `the tasks extension, ${kind} server`,
  requirements: MODERN,
  leg: "tasks",
  through,
  server: { kind, file: "tasks.mjs", era: "modern" },
});

function eraName(requirements) {
  return requirements === MODERN ? "modern" : "legacy";
}

export const RUNS = [
  over(LEGACY, "legacy", "http", "a legacy HTTP server"),
  over(LEGACY, "legacy", "stdio", "a legacy stdio server"),
  over(MODERN, "modern", "http", "a modern HTTP server"),
  over(MODERN, "modern", "stdio", "a modern stdio server"),
  overBoth(LEGACY),
  overBoth(MODERN),
  over(LEGACY, "modern", "http", "across: legacy agents, a modern HTTP server"),
  over(LEGACY, "modern", "stdio", "across: legacy agents, a modern stdio server"),
  over(MODERN, "legacy", "http", "across: modern agents, a legacy HTTP server"),
  over(MODERN, "legacy", "stdio", "across: modern agents, a legacy stdio server"),
  client(LEGACY, "legacy"),
  client(LEGACY, "modern"),
  client(MODERN, "legacy"),
  client(MODERN, "modern"),
  tasks("http", "gateway"),
  tasks("stdio", "gateway"),
  direct(LEGACY, "legacy"),
  direct(MODERN, "modern"),
  tasks("http", "direct"),
];
