// What is wrong and what to do, in ten seconds.

import { computed } from "@preact/signals";
import type { AsksAnswer } from "../../src/contracts/control/asks.js";
import type { HistoryAnswer } from "../../src/contracts/control/history.js";
import { percent } from "../../src/runtime/words/amounts.js";
import { ActButton } from "../act-button.js";
import { timeText } from "../call-words.js";
import { config, executors, gateway, isBroker, mailboxes, outbox, power, servers, shares } from "../model.js";
import { caughtWords, isWell, type Need, needsOf } from "../needs.js";
import { Broker } from "../overview/broker.js";
import { Flow } from "../overview/flow.js";
import { LoginButton } from "../servers/login.js";
import { NoServers } from "../servers/none.js";
import { Sparkline } from "../sparkline.js";
import { joinedSteps } from "../steps.js";
import { Figure, Foreign, Lasting, Line, Since, Until, useHeld, useLoaded, useLooked } from "../words.js";

export const needs = computed(() =>
  needsOf({
    servers: servers.value,
    config: config.value,
    outbox: outbox.value,
    mailboxes: mailboxes.value,
    shares: shares.value ?? [],
    audit: gateway.value?.audit,
    engine: gateway.value?.engine,
    store: gateway.value?.store,
    asks: gateway.value?.asks ?? [],
    endingTokens: gateway.value?.endingTokens ?? [],
    forRuns: gateway.value?.forRuns,
  }),
);

export function Overview() {
  if (isBroker.value) {
    return (
      <>
        <h1>Overview</h1>
        <NeedsYou />
        <Broker />
      </>
    );
  }
  if (servers.value.length === 0) {
    return (
      <>
        <h1>Overview</h1>
        {needs.value.length === 0 ? null : <NeedsYou />}
        <NoServers />
      </>
    );
  }
  const inFlight = servers.value.reduce((sum, server) => sum + server.inFlight, 0);
  const restarts = servers.value.reduce((sum, server) => sum + server.restarts, 0);
  return (
    <>
      <h1>Overview</h1>
      <NeedsYou />
      <Numbers inFlight={inFlight} />
      <Flow />
      <Unnoticed />
      <section aria-labelledby="now">
        <h2 id="now">Now</h2>
        <dl class="figures">
          <Figure
            name="servers that are fine"
            value={`${servers.value.filter(isWell).length} of ${servers.value.length}`}
          />
          <Figure name="restarts of servers since the start" value={String(restarts)} />
          <Figure name="writes that wait" value={String(outbox.value?.waiting ?? 0)} />
          {executors.value === undefined || executors.value.length === 0 ? null : (
            <Figure name="executors" value={String(executors.value.length)} />
          )}
        </dl>
        {outbox.value?.oldestAt === undefined ? null : (
          <p>
            The oldest write was taken <Since at={outbox.value.oldestAt} />.
          </p>
        )}
      </section>
    </>
  );
}

function NeedsYou() {
  const rows = useHeld(needs.value, ({ key }) => key, ".needs");
  return (
    <section aria-labelledby="needs">
      <h2 id="needs">Needs you</h2>
      {rows.length === 0 ? (
        <p class="empty">
          Nothing needs you. <LastTrouble />
        </p>
      ) : (
        <ul class="rows needs">
          {rows.map(({ one, isOver }) => (
            <NeedRow key={one.key} need={one} isOver={isOver} />
          ))}
        </ul>
      )}
    </section>
  );
}

/** Often enough to be looked at, and seldom enough to cost nothing. */
const NUMBERS_MS = 5_000;
/** Shorter than that is known where a gateway was started the first time. */
const AN_HOUR_MS = 3_600_000;
/** A minute of the hour's steps of ten seconds. */
const STEPS_A_MINUTE = 6;

/** Of the last hour: how many calls, how many failed, how long they took and what of that was ours. */
function Numbers({ inFlight }: { inFlight: number }) {
  const past = useLooked<HistoryAnswer>("/history?window=hour", NUMBERS_MS);
  if (past === undefined) return null;
  const { total, now, caught } = past;
  const isWhole = Date.now() - Date.parse(caught.since) >= AN_HOUR_MS;
  const failed = now.callsAMinute === 0 ? 0 : (now.errorsAMinute / now.callsAMinute) * 100;
  const minutes = (values: readonly number[], how: "sum" | "most") => joinedSteps(values, STEPS_A_MINUTE, how);
  const calls = minutes(total.calls, "sum");
  const errors = minutes(total.errors, "sum");
  return (
    <section aria-labelledby="hour">
      <h2 id="hour">The last hour</h2>
      {isWhole ? null : (
        <p class="empty">
          Counted <Lasting at={caught.since} words="for the last" />: before that nothing is known.
        </p>
      )}
      {calls.every((count) => count === 0) ? (
        <p class="empty">
          No calls yet. <Line text="toolway run claude" />, and they appear here.
        </p>
      ) : null}
      <dl class="figures">
        <Figure name="calls a minute" value={String(now.callsAMinute)}>
          <Sparkline values={calls} label={`Calls a minute in the last hour, at most ${Math.max(...calls)}`} />
        </Figure>
        <Figure
          name="failed"
          href={
            now.errorsAMinute > 0 || errors.some((count) => count > 0) ? "/calls?failed=true&group=reason" : undefined
          }
          value={percent(failed)}
        >
          <Sparkline values={errors} label={`Failed calls a minute in the last hour, at most ${Math.max(...errors)}`} />
        </Figure>
        <Figure
          name={`95 of 100 calls were faster (p95); Toolway's own part ${timeText(now.ownP95)}`}
          value={timeText(now.p95)}
        >
          <Sparkline
            values={minutes(total.p95, "most")}
            label="95 of 100 calls were faster than this, in the last hour"
          />
        </Figure>
        <Figure name="calls under way" value={String(inFlight)} />
      </dl>
    </section>
  );
}

/** It changes seldom. */
const DAY_MS = 30_000;
const A_DAY_MS = 86_400_000;

/** What agents did not have to notice, in the last day or since that is counted. */
function Unnoticed() {
  const day = useLooked<HistoryAnswer>("/history?window=day", DAY_MS)?.caught;
  if (day === undefined) return null;
  const caught = caughtWords(day.counts);
  if (caught.length === 0) return null;
  const isWhole = Date.now() - Date.parse(day.since) >= A_DAY_MS - DAY_MS;
  return (
    <section aria-labelledby="unnoticed">
      <h2 id="unnoticed">Nobody noticed</h2>
      <p>
        {isWhole ? "In 24 h" : "Counted "}
        {isWhole ? null : <Lasting at={day.since} words="for the last" />}:{" "}
        {caught.map(({ text, href }, i) => (
          <span key={href}>
            {i > 0 ? ", " : ""}
            <a href={href}>{text}</a>
          </span>
        ))}
        .
      </p>
    </section>
  );
}

/** Of the last day: who was started again last. */
function LastTrouble() {
  const day = useLooked<HistoryAnswer>("/history?window=day", DAY_MS);
  const last = [...(day?.servers ?? [])]
    .filter(({ lastRestartAt }) => lastRestartAt !== undefined)
    .sort((a, b) => Date.parse(b.lastRestartAt ?? "") - Date.parse(a.lastRestartAt ?? ""))[0];
  if (last === undefined) return null;
  const often = last.restarts === 1 ? "once" : last.restarts === 2 ? "twice" : `${last.restarts} times`;
  return (
    <>
      Last trouble:{" "}
      <a href={`/servers/${encodeURIComponent(last.server)}`}>
        <Foreign text={last.server} />
      </a>{" "}
      was started again {often}, <Since at={last.lastRestartAt} />.
    </>
  );
}

/** One that is over keeps its height, so that what is below it stays where it is. */
function NeedRow({ need, isOver }: { need: Need; isOver: boolean }) {
  return (
    <li class={isOver ? "need over" : "need"} inert={isOver}>
      <a href={need.href}>
        <strong>
          <Foreign text={need.what} />
        </strong>
      </a>
      <span class="when">
        {isOver ? <strong> This is over.</strong> : null}
        {need.since === undefined ? null : (
          <>
            {" "}
            <Lasting at={need.since} />
          </>
        )}
        {need.until === undefined ? null : (
          <>
            {" "}
            <strong>
              <Until at={Date.parse(need.until)} /> left
            </strong>
          </>
        )}
      </span>
      <p>
        <Foreign text={need.why} />
      </p>
      {need.ask === undefined || power.value !== "operator" ? null : <AskedWith id={need.ask} />}
      {need.acts === undefined ? null : (
        <span class="acts">
          {need.acts.map((act) => (
            <ActButton key={act.label} act={act} {...(act.line === undefined ? {} : { line: act.line })} isShort />
          ))}
        </span>
      )}
      {need.login !== undefined ? (
        <LoginButton name={need.login} />
      ) : need.act === undefined ? (
        <span class="act">
          {need.acts === undefined && need.href !== "/" ? (
            <a class="button" href={need.href}>
              Look at it
            </a>
          ) : null}
          <Line text={need.line} />
        </span>
      ) : (
        <ActButton act={need.act} line={need.line} />
      )}
    </li>
  );
}

/** What the call would be made with: for who answers alone. */
function AskedWith({ id }: { id: number }) {
  const asked = useLoaded<AsksAnswer>("/asks").value?.asks.find((one) => one.id === id);
  if (asked === undefined) return null;
  return (
    <pre>
      <Foreign text={asked.arguments} lines />
    </pre>
  );
}
