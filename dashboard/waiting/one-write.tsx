// One kept write: what became of it, as a line of time, and what can be done about it.

import type { OutboxEntry } from "../../src/contracts/outbox.js";
import { visible } from "../../src/runtime/visible.js";
import { shellWord } from "../../src/runtime/words/shell-word.js";
import { Foreign, Lasting, Line, Since, Until, useFollowed } from "../words.js";
import { WriteActs } from "./acts.js";
import { waitWords } from "./lanes.js";
import { type LifeMark, lifeOf } from "./life.js";

const LOOK_MS = 2_000;
const SHAPES: Readonly<Record<LifeMark["kind"], string>> = { wait: "○", good: "●", bad: "▲" };
const CLASSES: Readonly<Record<LifeMark["kind"], string>> = { wait: "calm", good: "good", bad: "bad" };

export function OneWrite({ id }: { id: string }) {
  const path = `/outbox/writes/${encodeURIComponent(id)}`;
  const { value, trouble, again } = useFollowed<OutboxEntry>(path, LOOK_MS);
  // One that was dropped is not known any more: what is said of it then is that, not what it was.
  if (value === undefined || trouble !== "") {
    return (
      <>
        <h1>
          <Foreign text={id} />
        </h1>
        <p class="empty">
          {trouble} <a href="/waiting">All that waits</a>
        </p>
      </>
    );
  }
  const isWaiting = value.state === "queued" || value.state === "sending";
  return (
    <>
      <h1>
        <Foreign text={`${value.server}/${value.tool}`} />
      </h1>
      <p>
        <span class={`state ${isWaiting ? "calm" : value.state === "done" ? "good" : "bad"}`}>
          {isWaiting ? "○" : value.state === "done" ? "●" : "▲"} {value.state}
        </span>{" "}
        <Lasting at={value.sinceMs} />, taken from <Foreign text={value.principal} /> <Since at={value.takenMs} />.{" "}
        {isWaiting ? (
          <>
            Why: <Foreign text={waitWords(value)} />
          </>
        ) : null}
        {value.nextTryMs === undefined ? null : (
          <>
            {" "}
            Next try in <Until at={value.nextTryMs} />.
          </>
        )}
      </p>
      <WriteActs write={value} onDone={again} />
      <Life entry={value} />
      <dl class="facts">
        <Fact name="Receipt" text={value.id} />
        <Fact name="Key" text={value.idempotencyKey} />
        <Fact name="Lane" text={value.lane === "" ? "in no order" : value.lane} />
        <Fact name="Tries" text={String(value.attempts)} />
        <Fact name="Size" text={`${value.bytes.toLocaleString()} bytes`} />
      </dl>
      <Line text={`toolway outbox show ${shellWord(value.id)}`} />
      <Outcome title="Result" text={value.result} />
      <Outcome title="Error" text={value.error} />
    </>
  );
}

function Life({ entry }: { entry: OutboxEntry }) {
  const { marks, parts } = lifeOf(entry, Date.now());
  return (
    <section class="life">
      <h2>What became of it</h2>
      <svg viewBox="0 0 100 3" preserveAspectRatio="none" aria-hidden="true">
        {parts.map(({ from, to, kind, words }) => (
          <rect key={from} class={kind} x={from * 100} y={0} width={Math.max(0.4, (to - from) * 100 - 0.2)} height={3}>
            <title>{visible(words)}</title>
          </rect>
        ))}
      </svg>
      <ol>
        {marks.map(({ atMs, words, kind }, i) => (
          <li key={`${atMs}/${i}`}>
            <span class={`state ${CLASSES[kind]}`} aria-hidden="true">
              {SHAPES[kind]}
            </span>{" "}
            <Since at={atMs} />: <Foreign text={words} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function Fact({ name, text }: { name: string; text: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <Foreign text={text} />
      </dd>
    </div>
  );
}

/** Operators alone are sent it. */
function Outcome({ title, text }: { title: string; text: string | undefined }) {
  if (text === undefined) return null;
  return (
    <section>
      <h2>{title}</h2>
      <pre>
        <Foreign text={text.slice(0, MAX_SHOWN)} lines />
      </pre>
      {text.length > MAX_SHOWN ? <p class="empty">There is more of it: the line above prints it all.</p> : null}
    </section>
  );
}

/** More than anybody reads in a page. */
const MAX_SHOWN = 64 * 1024;
