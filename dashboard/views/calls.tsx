// The last calls, live, and one of them: where its time went, in a picture and in words.

import { useEffect, useMemo, useState } from "preact/hooks";
import type { CallsAnswer, CallUnderWay, KeptCall } from "../../src/contracts/control/calls.js";
import type { RecordedBodies } from "../../src/contracts/control/record.js";
import type { ToolInShort } from "../../src/contracts/control/tools.js";
import { shellWord } from "../../src/runtime/words/shell-word.js";
import { ActButton } from "../act-button.js";
import { adviceOn, PHASE_WORDS, type Phase, phasesOf, remarksOf, sizeText, timeText } from "../call-words.js";
import { useCalls } from "../calls/follow.js";
import { Reasons, Slowest } from "../calls/groups.js";
import { ROWS_A_LOOK } from "../calls/rows.js";
import { nameOf, OutcomeWord, Rows } from "../calls/table.js";
import { call } from "../door.js";
import { FilterText } from "../filter-text.js";
import { gateway, link, power } from "../model.js";
import { go, query, setQuery } from "../router.js";
import { fill } from "../try/filled.js";
import { Foreign, Line, Since, useLines, useLoaded } from "../words.js";

const FILTERS = ["server", "tool", "principal", "failed", "slowerMs", "outcome", "mended"] as const;

/** Those that a person looks for; there are more, and "failed" has them all. */
const OUTCOMES = [
  "ok",
  "tool-error",
  "rpc-error",
  "timeout",
  "unavailable",
  "denied",
  "limit",
  "not-found",
  "unauthorized",
  "cancelled",
  "outcome-unknown",
];

export function Calls() {
  const [isPaused, setPaused] = useState(false);
  const filter = useMemo(() => {
    const asked = new URLSearchParams();
    for (const name of FILTERS) {
      const value = query.value.get(name);
      if (value !== null && value !== "") asked.set(name, value);
    }
    return asked.toString();
  }, [query.value]);
  const group = query.value.get("group") ?? "";
  return (
    <>
      <h1>Calls</h1>
      <p class="filters">
        {(["server", "tool", "principal"] as const).map((name) => (
          <FilterText key={name} name={name} label={{ server: "Server", tool: "Tool", principal: "Agent" }[name]} />
        ))}
        <label>
          Slower than{" "}
          <select
            value={query.value.get("slowerMs") ?? ""}
            onChange={({ currentTarget }) => setQuery("slowerMs", currentTarget.value)}
          >
            <option value="">any</option>
            {[10, 100, 500, 1_000, 5_000].map((ms) => (
              <option key={ms} value={ms}>
                {ms >= 1_000 ? `${ms / 1_000} s` : `${ms} ms`}
              </option>
            ))}
          </select>
        </label>
        <label>
          <input
            type="checkbox"
            checked={query.value.get("failed") === "true"}
            onChange={({ currentTarget }) => setQuery("failed", currentTarget.checked ? "true" : "")}
          />{" "}
          failed
        </label>
        <label>
          Outcome{" "}
          <select
            value={query.value.get("outcome") ?? ""}
            onChange={({ currentTarget }) => setQuery("outcome", currentTarget.value)}
          >
            <option value="">any</option>
            {OUTCOMES.map((word) => (
              <option key={word}>{word}</option>
            ))}
          </select>
        </label>
        <label>
          Mended{" "}
          <select
            value={query.value.get("mended") ?? ""}
            onChange={({ currentTarget }) => setQuery("mended", currentTarget.value)}
          >
            <option value="">any</option>
            <option value="restart">their server was started again</option>
            <option value="token">their token was renewed</option>
            <option value="menu">a list, while a server was away</option>
          </select>
        </label>
        <label>
          In groups{" "}
          <select value={group} onChange={({ currentTarget }) => setQuery("group", currentTarget.value)}>
            <option value="">no</option>
            <option value="slowest">the slowest first</option>
            <option value="reason">failing, by reason</option>
          </select>
        </label>
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? "Go on" : "Pause"}
        </button>
        <Line text={lineOf(filter, group)} />
      </p>
      {group === "slowest" ? (
        <Slowest filter={filter} isPaused={isPaused} />
      ) : group === "reason" ? (
        <Reasons filter={filter} isPaused={isPaused} />
      ) : (
        <Live filter={filter} isPaused={isPaused} />
      )}
    </>
  );
}

/** The newest, as they come. */
function Live({ filter, isPaused }: { filter: string; isPaused: boolean }) {
  const [isOver, setOver] = useState(false);
  const { shown, fresh, trouble } = useCalls(filter, isPaused ? "paused" : isOver ? "over" : "no");
  const rows = shown?.rows ?? [];
  return (
    <>
      {trouble === "" ? null : (
        <p class="trouble" role="alert">
          {trouble}
        </p>
      )}
      {shown === undefined ? null : (
        <p class="empty" role="status">
          {isPaused ? "Paused." : isOver ? heldWords(fresh) : `${shown.underWay.length} under way.`}
          {shown.left > 0 ? ` ${shown.left.toLocaleString()} more came faster than anybody reads.` : ""}
        </p>
      )}
      {shown === undefined ? null : <UnderWay calls={shown.underWay} />}
      {shown !== undefined && rows.length === 0 ? <NoCalls isNarrow={filter !== ""} /> : null}
      {rows.length === 0 ? null : (
        <div onPointerEnter={() => setOver(true)} onPointerLeave={() => setOver(false)}>
          <Rows rows={rows} />
        </div>
      )}
    </>
  );
}

/** What is over in less is a row by the time that it is read. */
const A_WHILE_MS = 1_000;
/** The oldest: whoever looks for more has `toolway top`. */
const MAX_UNDER_WAY = 10;

/** What an agent waits for now, and what it waits for: a call that hangs is no row of those that ended. */
function UnderWay({ calls }: { calls: readonly CallUnderWay[] }) {
  const long = calls.filter(({ ms }) => ms >= A_WHILE_MS);
  if (long.length === 0) return null;
  return (
    <ul class="rows">
      {long.slice(0, MAX_UNDER_WAY).map((one) => (
        <li key={`${one.principal}/${one.id}/${nameOf(one)}`}>
          <span class="state calm">○ {timeText(one.ms)}</span> <Foreign text={nameOf(one)} /> for{" "}
          <Foreign text={one.client === undefined ? one.principal : `${one.principal} (${one.client})`} />:{" "}
          {PHASE_WORDS[one.phase] ?? one.phase}
        </li>
      ))}
      {long.length > MAX_UNDER_WAY ? <li>and {(long.length - MAX_UNDER_WAY).toLocaleString()} more</li> : null}
    </ul>
  );
}

/** Rows do not move under a pointer: what is new waits above them. */
function heldWords(fresh: number): string {
  const many = fresh >= ROWS_A_LOOK ? `${ROWS_A_LOOK} or more` : String(fresh);
  return `${fresh === 0 ? "" : `${many} new. `}Held still while you point at it; new ones come when you leave it.`;
}

function lineOf(filter: string, group: string): string {
  const words = [...new URLSearchParams(filter)].map(([name, value]) => {
    if (name === "failed") return "--failed";
    return name === "slowerMs" ? `--slower ${shellWord(`${value}ms`)}` : `--${name} ${shellWord(value)}`;
  });
  if (group === "slowest") return ["toolway calls --slowest", ...words].join(" ");
  const failed = group === "reason" && !words.includes("--failed") ? ["--failed"] : [];
  return ["toolway calls -f", ...words, ...failed].join(" ");
}

function NoCalls({ isNarrow }: { isNarrow: boolean }) {
  if (isNarrow) return <p class="empty">No call of the last ones fits.</p>;
  return (
    <p class="empty">
      No calls yet. <Line text="toolway run claude" />, and they appear here.
    </p>
  );
}

/** One call, looked for among those that are kept. */
export function OneCall({ seq }: { seq: number }) {
  const [found, setFound] = useState<KeptCall | "gone">();
  const isLive = link.value.kind === "live";
  const isThere = found !== undefined && found !== "gone";
  useEffect(() => {
    // What it says of a call stays: after a restart another one has its number.
    if (!isLive || isThere) return;
    // The one after the one before it: the oldest that fits is the last of the answer's beginning.
    call<CallsAnswer>("GET", `/calls?after=${Math.max(0, seq - 1)}&limit=5000`).then(
      ({ calls }) => setFound(calls.find((one) => one.seq === seq) ?? "gone"),
      () => setFound("gone"),
    );
  }, [seq, isLive]);
  if (found === undefined) return <h1>Call {seq}</h1>;
  if (found === "gone") {
    return (
      <>
        <h1>Call {seq}</h1>
        <p class="empty">It is not among the last 5,000 any more.</p>
      </>
    );
  }
  const phases = phasesOf(found);
  const advice = adviceOn(found);
  const recorded = found.recorded === true && isRecording(found) ? true : undefined;
  return (
    <>
      <h1>
        <Foreign text={nameOf(found)} />
      </h1>
      <p>
        <OutcomeWord call={found} /> in {timeText(found.ms)}, <Since at={found.endedAt} />, for{" "}
        <Foreign text={found.principal} />
        {found.client === undefined ? null : (
          <>
            {" "}
            by <Foreign text={found.client} />
          </>
        )}
        .
      </p>
      <Waterfall phases={phases} whole={found.ms} />
      {remarksOf(found).map((text) => (
        <p key={text}>
          <Foreign text={text} />
        </p>
      ))}
      {advice === undefined ? null : (
        <p class="need">
          <Foreign text={advice.text} /> {advice.line === undefined ? null : <Line text={advice.line} />}
        </p>
      )}
      <dl class="facts">
        <Fact name="Role" value={found.role} />
        <Fact name="Method" value={found.method} />
        <Fact name="Request id" value={String(found.id)} />
        <Fact name="Trace id" value={found.trace} />
        <Fact name="Refused by" value={found.refusedBy} />
        <Fact name="Error code" value={found.errorCode === undefined ? undefined : String(found.errorCode)} />
        <Fact name="Receipt" value={found.receipt} href={`/waiting/${encodeURIComponent(found.receipt ?? "")}`} />
        <Fact name="Sent" value={`${found.attempt} ${found.attempt === 1 ? "time" : "times"}`} />
        <Fact name="Request" value={sizeText(found.bytesIn)} />
        <Fact name="Result" value={sizeText(found.bytes)} />
        <Fact name="Cache" value={found.cache} />
      </dl>
      {recorded === true && power.value === "operator" ? <Bodies seq={seq} /> : null}
      {found.tool === undefined || found.server === undefined ? null : <Again call={{ ...found, recorded }} />}
    </>
  );
}

/** What was recorded is not shown for longer than the gateway keeps it. */
function isRecording({ server, tool }: KeptCall): boolean {
  const recordings = gateway.value?.recordings ?? [];
  return recordings.some((one) => one.server === server && (one.tool === undefined || one.tool === tool));
}

/** To the form of its tool, with what it was given where that was recorded. */
function Again({ call: { seq, server = "", tool = "", recorded } }: { call: KeptCall }) {
  const tools = useLines<ToolInShort>("/tools/lines").value;
  const shown = tools?.find((one) => one.server === server && one.ownName === tool);
  const bodies = useLoaded<RecordedBodies>(recorded === true ? `/calls/${seq}/bodies` : "/record").value;
  const given = recorded === true && bodies?.cut.includes("arguments") === false ? bodies.arguments : undefined;
  const again = () => {
    if (shown === undefined) return;
    fill(shown.name, given);
    go(`/tools/${encodeURIComponent(shown.name)}`);
  };
  const line = `toolway call ${shellWord(`${server}/${tool}`)}${given === undefined ? "" : ` ${shellWord(given)}`}`;
  return (
    <p class="acts">
      <button type="button" disabled={shown === undefined} onClick={again}>
        Try again
      </button>
      <Line text={line} />
      {recorded === true || power.value !== "operator" ? null : (
        <ActButton
          act={{ label: "Record the next ones", method: "POST", path: "/record", body: { server, tool } }}
          line={`toolway record ${shellWord(`${server}/${tool}`)} --for 10m`}
        />
      )}
    </p>
  );
}

function Bodies({ seq }: { seq: number }) {
  const { value, trouble } = useLoaded<RecordedBodies>(`/calls/${seq}/bodies`);
  if (value === undefined) return <p class="empty">{trouble}</p>;
  return (
    <>
      {(["arguments", "result"] as const).map((side) => (
        <section key={side}>
          <h2>{side === "arguments" ? "Arguments" : "Result"}</h2>
          {value.cut.includes(side) ? (
            <p class="empty">It is longer than what is kept: this is its beginning.</p>
          ) : null}
          <pre>
            <Foreign text={indented(value[side])} lines />
          </pre>
        </section>
      ))}
    </>
  );
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}

function Fact({ name, value, href }: { name: string; value: string | undefined; href?: string }) {
  if (value === undefined || value === "") return null;
  const text = <Foreign text={value} />;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{href === undefined ? text : <a href={href}>{text}</a>}</dd>
    </div>
  );
}

function Waterfall({ phases, whole }: { phases: readonly Phase[]; whole: number }) {
  let at = 0;
  return (
    <ol class="waterfall">
      {phases.map(({ name, ms, words }) => {
        const x = whole === 0 ? 0 : (at / whole) * 100;
        at += ms;
        return (
          <li key={name}>
            <svg class="bars" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
              <rect
                class={name}
                x={Math.min(99, x)}
                y="0"
                width={Math.max(0.7, (ms / Math.max(whole, ms)) * 100)}
                height="8"
              />
            </svg>
            <Foreign text={words} />
          </li>
        );
      })}
    </ol>
  );
}
