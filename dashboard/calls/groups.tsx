// Calls in groups: the slowest of all that are kept, and what those that failed did so for. The gateway looks at all of them;
// the rows of the live list are the newest alone.

import type { CallReason, CallsAnswer } from "../../src/contracts/control/calls.js";
import { adviceOn, RULES } from "../call-words.js";
import { Foreign, Line, Since, Table, useFollowed } from "../words.js";
import { MAX_ROWS } from "./rows.js";
import { Rows } from "./table.js";

/** A look goes through all that are kept. */
const LOOK_MS = 3_000;

interface GroupProps {
  readonly filter: string;
  readonly isPaused: boolean;
}

export function Slowest({ filter, isPaused }: GroupProps) {
  const path = `/calls?${filter}&slowest=true&limit=${MAX_ROWS}`;
  const { value, trouble } = useFollowed<CallsAnswer>(path, LOOK_MS, ".grouped", isPaused);
  if (value === undefined) return <Trouble text={trouble} />;
  if (value.calls.length === 0) return <p class="empty">No call of the last ones fits.</p>;
  return (
    <div class="grouped">
      <Rows rows={value.calls} />
    </div>
  );
}

export function Reasons({ filter, isPaused }: GroupProps) {
  const path = `/calls?${filter}&reasons=true&limit=0`;
  const { value, trouble } = useFollowed<CallsAnswer>(path, LOOK_MS, ".grouped", isPaused);
  if (value === undefined) return <Trouble text={trouble} />;
  const reasons = value.reasons ?? [];
  if (reasons.length === 0) return <p class="empty">None of these failed.</p>;
  return (
    <div class="grouped">
      <Table heads={["Why", { number: "How often" }, "Last", "What to do"]}>
        {reasons.map((one) => (
          <ReasonRow key={reasonWords(one)} one={one} />
        ))}
      </Table>
    </div>
  );
}

function ReasonRow({ one }: { one: CallReason }) {
  const { count, last } = one;
  const advice = adviceOn(last);
  return (
    <tr>
      <th scope="row">
        <Foreign text={reasonWords(one)} />
      </th>
      <td class="number">{count.toLocaleString()}</td>
      <td>
        <a href={`/calls/${last.seq}`}>
          <Since at={last.endedAt} />
        </a>
      </td>
      <td>
        <Foreign text={advice?.text ?? ""} /> {advice?.line === undefined ? null : <Line text={advice.line} />}
      </td>
    </tr>
  );
}

function reasonWords({ last: { outcome, server, refusedBy, errorCode } }: CallReason): string {
  const by = refusedBy === undefined ? "" : `, ${RULES[refusedBy] ?? refusedBy}`;
  return `${outcome}${errorCode === undefined ? "" : ` ${errorCode}`} at ${server ?? "no server"}${by}`;
}

function Trouble({ text }: { text: string }) {
  return text === "" ? null : (
    <p class="trouble" role="alert">
      {text}
    </p>
  );
}
