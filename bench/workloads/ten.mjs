// What servers in trouble cost the others: the gateway with five healthy servers, against the gateway with the same five
// and five in trouble. The measured calls go to the healthy ones; those in trouble are called now and then beside them.

import { callOnce } from "../ask.mjs";
import { contest, stopping, workDirectory } from "../contest.mjs";
import { firstLine } from "../processes.mjs";
import { Connection } from "../replies.mjs";
import { callRequest } from "../requests.mjs";
import { stdioEntry, troubledEntry } from "../servers/index.mjs";
import { startProgram, toolName } from "../toolway.mjs";

const HEALTHY = ["one", "two", "three", "four", "five"];
const TROUBLES = ["hangs", "floods", "dies-at-start", "dies-in-calls", "wrong-ids"];
const ALONE = "5 servers";
const IN_FLIGHT = 32;
/** Restarts and bursts of noise come some times a second: a slice has to be long enough to have its share of them. */
const PLAN = { calls: 15_000, warm: 6000, rewarm: 200, maxMs: 9000 };

/** Short, so that what hangs is met by its deadline many times in a run, and not once. */
const CALL_TIMEOUT_MS = 1000;
/** Each server in trouble is called twice a second. */
const CALL_EVERY_MS = 500;
/** By then what is to be ejected is: five deaths take a second or two, a backoff between them. */
const TROUBLE_MS = 10_000;
const QUICK_TROUBLE_MS = 1000;

/** So that nothing is ever held back or ejected: the trouble goes on, and with it the restarts. */
const WITHOUT_END = { restarts: { max: 1_000_000 }, breaker: { failures: 1_000_000 } };

const VARIANTS = [
  { variant: ALONE },
  { variant: "10 servers, 5 in trouble", rules: {} },
  { variant: "10 servers, 5 never held back", rules: WITHOUT_END },
];

export const ten = {
  name: "ten",
  summary: "the gateway with five healthy servers, alone and beside five that hang, flood, die or answer wrongly",
  run: (context) => (context.targets.some(({ group }) => group === "toolway") ? troubled(context) : { rows: [] }),
};

function troubled(context) {
  return stopping(async (own) => {
    const sides = [];
    for (const { variant, rules } of VARIANTS) {
      context.log(`  starting toolway with ${variant}`);
      sides.push(await sideOf(variant, rules, own, context));
    }
    await new Promise((resolve) => setTimeout(resolve, context.quick ? QUICK_TROUBLE_MS : TROUBLE_MS));
    const rows = await contest(sides, context.plan(PLAN), context);
    context.note("ten: the CPU is that of the gateway's own process; what its servers use themselves is theirs.");
    for (const { variant, told } of sides) if (told !== undefined) checkTold(variant, told);
    return { rows };
  });
}

async function sideOf(variant, rules, own, context) {
  const entries = HEALTHY.map((name) => stdioEntry(name, { era: "legacy" }));
  if (rules !== undefined) {
    const more = { callTimeoutMs: CALL_TIMEOUT_MS, ...rules };
    entries.push(...TROUBLES.map((trouble) => ({ ...troubledEntry(trouble), ...more })));
  }
  const { started, headers } = await startProgram({ servers: entries, workDir: await workDirectory(own) }, 0);
  own(started.stop);
  const { endpoint: url } = await firstLine(started, "toolway");
  for (const name of HEALTHY) await callOnce({ url, headers, era: "legacy" }, toolName(name, "echo"), true);
  const told = rules === undefined ? undefined : callTroubled({ url, headers, era: "modern" }, own);
  return {
    target: context.targets.find(({ group }) => group === "toolway"),
    running: { url, headers, pid: started.child.pid, toolName, sessions: true, stop: started.stop },
    setup: { upstream: "stdio", answers: "json", era: "legacy", servers: entries, names: ["echo"] },
    chargedAlone: true,
    inFlight: IN_FLIGHT,
    workload: "ten",
    variant,
    told,
    expected: { kind: "echo" },
    names: HEALTHY.map((name) => toolName(name, "echo")),
    against: (other) => other.variant === ALONE,
  };
}

/** Calls each server in trouble twice a second, until the end of the work. What they were told: by trouble. */
function callTroubled(to, own) {
  const told = new Map(TROUBLES.map((trouble) => [trouble, { answered: 0, failed: 0 }]));
  const timers = TROUBLES.map((trouble) =>
    setInterval(async () => {
      const counts = told.get(trouble);
      if (await isAnswered(to, toolName(trouble, "echo"))) counts.answered += 1;
      else counts.failed += 1;
    }, CALL_EVERY_MS),
  );
  own(() => timers.forEach(clearInterval));
  return told;
}

async function isAnswered(to, name) {
  let connection;
  try {
    connection = await Connection.open(to.url);
    await connection.exchange(callRequest(to, name).bytes);
    const at = connection.message();
    return at !== undefined && JSON.parse(connection.body.toString("utf8", at.start, at.end)).result !== undefined;
  } catch {
    return false;
  } finally {
    connection?.close();
  }
}

/** A row with five servers in trouble is of no worth where they were in none. */
function checkTold(variant, told) {
  for (const [trouble, { answered, failed }] of told) {
    const isRight = trouble === "floods" ? answered > 0 : answered === 0 && failed > 0;
    if (!isRight) throw new Error(`${variant}: ${trouble} answered ${answered} calls and failed ${failed}.`);
  }
}
