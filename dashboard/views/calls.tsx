// The last calls, live, and one of them: where its time went, in a picture and in words.

import { type ReadonlySignal, useSignal } from "@preact/signals";
import { Component } from "preact";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import type { CallsAnswer, KeptCall } from "../../src/contracts/control/calls.js";
import type { RecordedBodies } from "../../src/contracts/control/record.js";
import type { ToolInShort } from "../../src/contracts/control/tools.js";
import { shellWord } from "../../src/runtime/words/shell-word.js";
import { ActButton } from "../act-button.js";
import { adviceOn, type Phase, phasesOf, remarksOf, sizeText, timeText } from "../call-words.js";
import { useCalls } from "../calls/follow.js";
import { ROWS_A_LOOK } from "../calls/rows.js";
import { call } from "../door.js";
import { FilterText } from "../filter-text.js";
import { gateway, link, power } from "../model.js";
import { go, query, setQuery } from "../router.js";
import { fill } from "../try/filled.js";
import { Foreign, Line, Since, Table, useLines, useLoaded } from "../words.js";

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
  "cancelled",
  "outcome-unknown",
];

export function Calls() {
  const [isPaused, setPaused] = useState(false);
  const [isOver, setOver] = useState(false);
  const filter = useMemo(() => {
    const asked = new URLSearchParams();
    for (const name of FILTERS) {
      const value = query.value.get(name);
      if (value !== null && value !== "") asked.set(name, value);
    }
    return asked.toString();
  }, [query.value]);
  const { shown, fresh, trouble } = useCalls(filter, isPaused ? "paused" : isOver ? "over" : "no");
  const group = query.value.get("group") ?? "";
  const rows = shown?.rows ?? [];
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
        <Line text={lineOf(filter)} />
      </p>
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
      {shown !== undefined && rows.length === 0 ? <NoCalls isNarrow={filter !== ""} /> : null}
      {rows.length === 0 ? null : group === "reason" ? (
        <Reasons rows={rows} />
      ) : (
        <div onPointerEnter={() => setOver(true)} onPointerLeave={() => setOver(false)}>
          <Rows rows={group === "slowest" ? [...rows].sort((a, b) => b.ms - a.ms) : rows} />
        </div>
      )}
    </>
  );
}

/** Rows do not move under a pointer: what is new waits above them. */
function heldWords(fresh: number): string {
  const many = fresh >= ROWS_A_LOOK ? `${ROWS_A_LOOK} or more` : String(fresh);
  return `${fresh === 0 ? "" : `${many} new. `}Held still while you point at it; new ones come when you leave it.`;
}

function lineOf(filter: string): string {
  const words = [...new URLSearchParams(filter)].map(([name, value]) => {
    if (name === "failed") return "--failed";
    return name === "slowerMs" ? `--slower ${shellWord(`${value}ms`)}` : `--${name} ${shellWord(value)}`;
  });
  return ["toolway calls -f", ...words].join(" ");
}

function NoCalls({ isNarrow }: { isNarrow: boolean }) {
  if (isNarrow) return <p class="empty">No call of the last ones fits.</p>;
  return (
    <p class="empty">
      No calls yet. <Line text="toolway run claude" />, and they appear here.
    </p>
  );
}

/** What the colours of the bars mean. */
const PARTS = [
  ["queued", "waited for its turn or a credential"],
  ["starting", "its server was started"],
  ["server", "its server took it"],
  ["own", "Toolway itself"],
] as const;

function Rows({ rows }: { rows: readonly KeptCall[] }) {
  // One call that took a minute is not to make all others a hair: what is longer fills its row.
  const sorted = rows.map(({ ms }) => ms).sort((a, b) => a - b);
  const longest = Math.min(sorted.at(-1) ?? 1, 5 * Math.max(sorted[Math.floor(sorted.length / 2)] ?? 1, 0.1));
  // In steps, so that rows that are there stay as they are while others come. A signal, so that another scale is a word of
  // each drawing and no drawing anew.
  const box = useSignal("0 0 1 8");
  useLayoutEffect(() => {
    box.value = `0 0 ${2 ** (Math.ceil(2 * Math.log2(longest)) / 2)} 8`;
  }, [longest]);
  return (
    <>
      <p class="empty small">
        Where its time went:
        {PARTS.map(([name, words]) => (
          <span key={name} class="key">
            <span class={`mark ${name}`} aria-hidden="true" /> {words}
          </span>
        ))}
      </p>
      <Table
        heads={["When", "Tool", "Outcome", "Agent", "Where its time went", { number: "Time" }, { number: "Size" }]}
      >
        {rows.map((one) => (
          <Row key={one.seq} one={one} box={box} />
        ))}
      </Table>
    </>
  );
}

/**
 * Drawn once: 50 come in a second, and 150 that were there would be drawn again with them. Not by a memo of what it draws: the
 * elements in that know their parents of then, and with these all rows that ever were.
 */
class Row extends Component<{ one: KeptCall; box: ReadonlySignal<string> }> {
  override shouldComponentUpdate({ one }: { one: KeptCall }): boolean {
    return one !== this.props.one;
  }

  override render() {
    const { one, box } = this.props;
    return (
      <tr>
        <td>
          <a href={`/calls/${one.seq}`}>
            <Since at={one.endedAt} />
          </a>
        </td>
        <th scope="row">
          <Foreign text={nameOf(one)} />
        </th>
        <td>
          <OutcomeWord call={one} />
        </td>
        <td>
          <Foreign text={one.client === undefined ? one.principal : `${one.principal} (${one.client})`} />
        </td>
        <td>
          <Bars phases={phasesOf(one)} box={box} />
        </td>
        <td class="number">{timeText(one.ms)}</td>
        <td class="number">{sizeText(one.bytes)}</td>
      </tr>
    );
  }
}

function Reasons({ rows }: { rows: readonly KeptCall[] }) {
  const groups = new Map<string, KeptCall[]>();
  for (const one of rows) {
    if (!one.failed) continue;
    const key = `${one.outcome} at ${one.server ?? "no server"}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  const sorted = [...groups].sort(([, a], [, b]) => b.length - a.length);
  if (sorted.length === 0) return <p class="empty">None of these failed.</p>;
  return (
    <Table heads={["Why", { number: "How often" }, "Last", "What to do"]}>
      {sorted.map(([why, calls]) => {
        const [last] = calls;
        const advice = last === undefined ? undefined : adviceOn(last);
        return (
          <tr key={why}>
            <th scope="row">
              <Foreign text={why} />
            </th>
            <td class="number">{calls.length}</td>
            <td>
              <a href={`/calls/${last?.seq ?? 0}`}>
                <Since at={last?.endedAt} />
              </a>
            </td>
            <td>
              <Foreign text={advice?.text ?? ""} />
            </td>
          </tr>
        );
      })}
    </Table>
  );
}

function nameOf({ server, tool, method }: KeptCall): string {
  return tool === undefined ? method : `${server ?? ""}/${tool}`;
}

function OutcomeWord({ call: { outcome, failed } }: { call: KeptCall }) {
  const kind = failed ? "bad" : outcome === "ok" ? "good" : "calm";
  return (
    <span class={`state ${kind}`}>
      <span aria-hidden="true">{{ good: "●", bad: "▲", calm: "○" }[kind]}</span> {outcome}
    </span>
  );
}

/** Widths are attributes of a drawing, in milliseconds: the page may have no styles in its elements. */
function Bars({ phases, box }: { phases: readonly Phase[]; box: ReadonlySignal<string> }) {
  let at = 0;
  return (
    <svg class="bars" viewBox={box} preserveAspectRatio="none" role="img" aria-label={wordsOf(phases)}>
      <title>{wordsOf(phases)}</title>
      {phases.map(({ name, ms }) => {
        const x = at;
        at += ms;
        return <rect key={name} class={name} x={x} y="0" width={ms} height="8" />;
      })}
    </svg>
  );
}

function wordsOf(phases: readonly Phase[]): string {
  return phases.map(({ words }) => words).join(", ") || "no time at all";
}

/** One call, looked for among those that are kept. */
export function OneCall({ seq }: { seq: number }) {
  const [found, setFound] = useState<KeptCall | "gone">();
  const isLive = link.value.kind === "live";
  useEffect(() => {
    if (!isLive) return;
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

function Fact({ name, value }: { name: string; value: string | undefined }) {
  if (value === undefined || value === "") return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <Foreign text={value} />
      </dd>
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
