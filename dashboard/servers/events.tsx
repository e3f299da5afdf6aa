// What happened to one server: its hour as a picture, and what it and the gateway said of it.

import type { HistoryAnswer } from "../../src/contracts/control/history.js";
import type { ServerEventsAnswer } from "../../src/contracts/control/server-events.js";
import type { ServerStatus } from "../../src/contracts/status.js";
import { shellWord } from "../../src/runtime/words/shell-word.js";
import { Foreign, Line, Since } from "../words.js";
import { HOUR_HEIGHT, HOUR_WIDTH, hourPicture } from "./hour.js";

export function Hour({ past, events }: { past: HistoryAnswer; events: ServerEventsAnswer | undefined }) {
  const { calls, failed, restarts, open, words } = hourPicture(past, events?.breaker ?? []);
  return (
    <figure class="hour">
      <svg viewBox={`0 0 ${HOUR_WIDTH} ${HOUR_HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={words}>
        <title>{words}</title>
        {open.map(({ x, width }) => (
          <rect key={x} class="open" x={x} y={0} width={width} height={HOUR_HEIGHT} />
        ))}
        {calls === "" ? null : <polyline points={calls} />}
        {failed === "" ? null : <polyline class="failed" points={failed} />}
        {restarts.map(({ x }) => (
          <line key={x} class="restart" x1={x} x2={x} y1={0} y2={HOUR_HEIGHT} />
        ))}
      </svg>
      <figcaption>
        {words}.
        {restarts.length === 0 ? null : (
          <span class="key">
            <span class="mark restart" aria-hidden="true" /> started again
          </span>
        )}
        {open.length === 0 ? null : (
          <span class="key">
            <span class="mark open" aria-hidden="true" /> breaker open
          </span>
        )}
        {failed === "" ? null : (
          <span class="key">
            <span class="mark failed" aria-hidden="true" /> failed calls
          </span>
        )}
      </figcaption>
    </figure>
  );
}

export function Told({ server, events }: { server: ServerStatus; events: ServerEventsAnswer | undefined }) {
  return (
    <section>
      <h2>What Toolway says of it</h2>
      {events === undefined ? null : events.lines.length === 0 ? (
        <p class="empty">Nothing since the gateway was started.</p>
      ) : (
        <ul class="log">
          {[...events.lines].reverse().map(({ at, level, text }, i) => (
            <li key={`${at}/${events.lines.length - i}`} class={level}>
              <Since at={at} /> <span class="level">{level}</span> <Foreign text={text} />
            </li>
          ))}
        </ul>
      )}
      <h2>What it writes to stderr</h2>
      {server.state === "misconfigured" ? (
        <p class="empty">It was not started: nothing was written.</p>
      ) : server.kind !== "stdio" ? (
        <p class="empty">It runs elsewhere: what it writes is not seen from here.</p>
      ) : (
        <>
          {server.stderr.length === 0 ? (
            <p class="empty">It wrote nothing to stderr.</p>
          ) : (
            <pre>
              <Foreign text={server.stderr.join("\n")} lines />
            </pre>
          )}
          <Line text={`toolway logs ${shellWord(server.name)}`} />
        </>
      )}
    </section>
  );
}
