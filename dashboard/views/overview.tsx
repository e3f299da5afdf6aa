// What is wrong and what to do, in ten seconds.

import { computed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { HistoryAnswer } from "../../src/contracts/control/history.js";
import { timeText } from "../call-words.js";
import { config, executors, gateway, mailboxes, outbox, servers, shares } from "../model.js";
import { caughtWords, isFine, type Need, needsOf, type Sample } from "../needs.js";
import { joinedSteps, Sparkline } from "../sparkline.js";
import { ActButton, Foreign, Line, Since, useLooked } from "../words.js";

export const needs = computed(() =>
  needsOf({
    servers: servers.value,
    config: config.value,
    outbox: outbox.value,
    mailboxes: mailboxes.value,
    shares: shares.value ?? [],
    audit: gateway.value?.audit,
  }),
);

export function Overview() {
  if (servers.value.length === 0) return <NoServers />;
  const inFlight = servers.value.reduce((sum, server) => sum + server.inFlight, 0);
  const restarts = servers.value.reduce((sum, server) => sum + server.restarts, 0);
  return (
    <>
      <h1>Overview</h1>
      <section aria-labelledby="needs">
        <h2 id="needs">Needs you</h2>
        {needs.value.length === 0 ? (
          <p class="empty">Nothing needs you.</p>
        ) : (
          <ul class="rows">
            {needs.value.map((need) => (
              <NeedRow key={need.key} need={need} />
            ))}
          </ul>
        )}
      </section>
      <Numbers inFlight={inFlight} />
      <Unnoticed />
      <section aria-labelledby="now">
        <h2 id="now">Now</h2>
        <dl class="figures">
          <Figure
            name="servers that are fine"
            value={`${servers.value.filter(isFine).length} of ${servers.value.length}`}
          />
          <Figure name="restarts" value={String(restarts)} />
          <Figure name="writes that wait" value={String(outbox.value?.waiting ?? 0)} />
          {executors.value === undefined || executors.value.length === 0 ? null : (
            <Figure name="executors" value={String(executors.value.length)} />
          )}
        </dl>
        {outbox.value?.oldestAt === undefined ? null : (
          <p>
            The oldest write waits since <Since at={outbox.value.oldestAt} />.
          </p>
        )}
      </section>
    </>
  );
}

/** Often enough to be looked at, and seldom enough to cost nothing. */
const NUMBERS_MS = 5_000;
/** A minute of the hour's steps of ten seconds. */
const STEPS_A_MINUTE = 6;

/** Of the last hour: how many calls, how many failed, how long they took and what of that was ours. */
function Numbers({ inFlight }: { inFlight: number }) {
  const past = useLooked<HistoryAnswer>("/history?window=hour", NUMBERS_MS);
  if (past === undefined) return null;
  const { total, now } = past;
  const failed = now.callsAMinute === 0 ? 0 : (now.errorsAMinute / now.callsAMinute) * 100;
  const minutes = (values: readonly number[], how: "sum" | "most") => joinedSteps(values, STEPS_A_MINUTE, how);
  const calls = minutes(total.calls, "sum");
  const errors = minutes(total.errors, "sum");
  return (
    <section aria-labelledby="hour">
      <h2 id="hour">The last hour</h2>
      {calls.every((count) => count === 0) ? (
        <p class="empty">
          No calls yet. <Line text="toolway run claude" />, and they appear here.
        </p>
      ) : null}
      <dl class="figures">
        <Figure name="calls a minute" value={String(now.callsAMinute)}>
          <Sparkline values={calls} label={`Calls a minute in the last hour, at most ${Math.max(...calls)}`} />
        </Figure>
        <Figure name="failed" value={`${failed.toFixed(failed > 0 && failed < 10 ? 1 : 0)} %`}>
          <Sparkline values={errors} label={`Failed calls a minute in the last hour, at most ${Math.max(...errors)}`} />
        </Figure>
        <Figure name={`p95; of that Toolway's own ${timeText(now.ownP95)}`} value={timeText(now.p95)}>
          <Sparkline
            values={minutes(total.p95, "most")}
            label="95 of 100 calls were faster than this, in the last hour"
          />
        </Figure>
        <Figure name="calls under way" value={String(inFlight)} />
      </dl>
      <Flow servers={past.servers} />
    </section>
  );
}

/** It changes seldom, and its text is long. */
const UNNOTICED_MS = 30_000;

/** What agents did not have to notice, since the gateway was started. */
function Unnoticed() {
  const text = useLooked<{ text: string }>("/metrics?format=json", UNNOTICED_MS)?.text;
  const caught = useMemo(() => {
    const all = text === undefined ? [] : (JSON.parse(text) as readonly { name: string; samples: readonly Sample[] }[]);
    return caughtWords(all.find(({ name }) => name === "toolway_caught_total")?.samples ?? []);
  }, [text]);
  if (caught.length === 0) return null;
  return (
    <section aria-labelledby="unnoticed">
      <h2 id="unnoticed">Nobody noticed</h2>
      <p>
        Since the start, <Since at={gateway.value?.startedAt} />: {caught.join(", ")}.
      </p>
    </section>
  );
}

/** So many servers have a line of their own. */
const MAX_FLOW = 12;

/** Which servers are called, as thick as their calls, red where they fail. */
function Flow({ servers: called }: { servers: HistoryAnswer["servers"] }) {
  const shown = called.filter(({ calls }) => calls > 0).slice(0, MAX_FLOW);
  if (shown.length === 0) return null;
  const most = Math.max(...shown.map(({ calls }) => calls));
  const rest = called.length - shown.length;
  return (
    <ul class="flow">
      {shown.map(({ server, calls, errors, p95 }) => (
        <li key={server}>
          <a href={`/calls?server=${encodeURIComponent(server)}`}>
            <Foreign text={server} />
          </a>
          <svg class="bars" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
            <rect class="server" x="0" y="0" width={(calls / most) * 100} height="8" />
            <rect class="starting" x="0" y="0" width={(errors / most) * 100} height="8" />
          </svg>
          <span>
            {calls.toLocaleString()} {calls === 1 ? "call" : "calls"}
            {errors > 0 ? `, ${errors.toLocaleString()} failed` : ""}, p95 {timeText(p95)}
          </span>
        </li>
      ))}
      {rest > 0 ? <li>and {rest} more</li> : null}
    </ul>
  );
}

function NeedRow({ need }: { need: Need }) {
  return (
    <li class="need">
      <a href={need.href}>
        <strong>
          <Foreign text={need.what} />
        </strong>
      </a>
      <p>
        <Foreign text={need.why} />
      </p>
      {need.act === undefined ? <Line text={need.line} /> : <ActButton act={need.act} line={need.line} />}
    </li>
  );
}

function Figure({ name, value, children }: { name: string; value: string; children?: ComponentChildren }) {
  return (
    <div>
      <dd>
        {value} {children}
      </dd>
      <dt>{name}</dt>
    </div>
  );
}

function NoServers() {
  return (
    <>
      <h1>No servers yet</h1>
      <p>
        <Line text="toolway import --write" /> takes those of your clients;
      </p>
      <p>
        <Line text="toolway add NAME COMMAND…" /> adds one.
      </p>
    </>
  );
}
