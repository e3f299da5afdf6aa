// Calls as rows: what came of each, and where its time went as a picture.

import { type ReadonlySignal, useComputed, useSignal } from "@preact/signals";
import { Component } from "preact";
import { useLayoutEffect } from "preact/hooks";
import type { KeptCall } from "../../src/contracts/control/calls.js";
import { visible } from "../../src/runtime/visible.js";
import { type Phase, phasesOf, sizeText, timeText } from "../call-words.js";
import { Foreign, Since, Table } from "../words.js";

/** What the colours of the bars mean. */
const PARTS = [
  ["queued", "waited for its turn or a credential"],
  ["starting", "its server was started"],
  ["server", "its server took it"],
  ["own", "Toolway itself"],
] as const;

export function Rows({ rows }: { rows: readonly KeptCall[] }) {
  // One call that took a minute is not to make all others a hair: what is longer fills its row.
  const sorted = rows.map(({ ms }) => ms).sort((a, b) => a - b);
  const longest = Math.min(sorted.at(-1) ?? 1, 5 * Math.max(sorted[Math.floor(sorted.length / 2)] ?? 1, 0.1));
  // In steps, so that rows that are there stay as they are while others come. A signal, so that another scale is a word of
  // each drawing and no drawing anew.
  const scale = useSignal(1);
  useLayoutEffect(() => {
    scale.value = 2 ** (Math.ceil(2 * Math.log2(longest)) / 2);
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
          <Row key={one.seq} one={one} scale={scale} />
        ))}
      </Table>
    </>
  );
}

/**
 * Drawn once: 50 come in a second, and 150 that were there would be drawn again with them. Not by a memo of what it draws: the
 * elements in that know their parents of then, and with these all rows that ever were.
 */
class Row extends Component<{ one: KeptCall; scale: ReadonlySignal<number> }> {
  override shouldComponentUpdate({ one }: { one: KeptCall }): boolean {
    return one !== this.props.one;
  }

  override render() {
    const { one, scale } = this.props;
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
        <td class="who">
          <Foreign text={one.client === undefined ? one.principal : `${one.principal} (${one.client})`} />
        </td>
        <td>
          <Bars phases={phasesOf(one)} scale={scale} />
        </td>
        <td class="number">{timeText(one.ms)}</td>
        <td class="number">{sizeText(one.bytes)}</td>
      </tr>
    );
  }
}

export function nameOf({ server, tool, method }: Pick<KeptCall, "server" | "tool" | "method">): string {
  return [server, tool ?? method].filter((part) => part !== undefined).join("/");
}

/** `ok` of a write that waits for its server says that it was kept: nothing was done yet. */
export function OutcomeWord({ call: { outcome, failed, receipt } }: { call: KeptCall }) {
  const kind = failed ? "bad" : outcome === "ok" ? "good" : "calm";
  return (
    <span class={`state ${kind}`}>
      <span aria-hidden="true">{{ good: "●", bad: "▲", calm: "○" }[kind]}</span> {outcome}
      {receipt === undefined ? "" : ", kept"}
    </span>
  );
}

/**
 * Widths are attributes of a drawing, in milliseconds: the page may have no styles in its elements. One that is longer than the
 * scale is drawn whole all the same: cut off, it would show what it did first as all that it did.
 */
function Bars({ phases, scale }: { phases: readonly Phase[]; scale: ReadonlySignal<number> }) {
  const whole = phases.reduce((sum, { ms }) => sum + ms, 0);
  const box = useComputed(() => `0 0 ${Math.max(scale.value, whole)} 8`);
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
  return visible(phases.map(({ words }) => words).join(", ")) || "no time at all";
}
