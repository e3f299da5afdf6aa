// The flow: which agents call which servers, with lines as thick as their calls, red where they fail.

import type { FlowAnswer } from "../../src/contracts/control/flow.js";
import { Foreign, Lasting, useLooked } from "../words.js";
import { type FlowEnd, flowPicture } from "./flow-layout.js";

/** Often enough to be looked at. */
const FLOW_MS = 5_000;

export function Flow() {
  const flow = useLooked<FlowAnswer>("/flow", FLOW_MS);
  if (flow === undefined || flow.lines.length === 0) return null;
  const { height, agents, servers, bands } = flowPicture(flow.lines);
  return (
    <section aria-labelledby="flow">
      <h2 id="flow">Who calls what</h2>
      <div class="flow">
        <Ends ends={agents} more={flow.moreAgents} what="agent" hrefOf={undefined} />
        <svg viewBox={`0 0 100 ${height}`} preserveAspectRatio="none" aria-hidden="true" height={height}>
          {bands.map(({ agent, server, fromY, toY, width, errors, calls }) => (
            <path
              key={`${agent} ${server}`}
              class={errors === 0 ? "fine" : errors * 2 >= calls ? "failing" : "faulty"}
              d={`M0 ${fromY} C50 ${fromY} 50 ${toY} 100 ${toY}`}
              stroke-width={width}
              fill="none"
              vector-effect="non-scaling-stroke"
            />
          ))}
        </svg>
        <Ends
          ends={servers}
          more={flow.moreServers}
          what="server"
          hrefOf={(name) => `/calls?server=${encodeURIComponent(name)}`}
        />
      </div>
      <p class="empty">
        {flow.calls === 1 ? "One call" : `The last ${flow.calls.toLocaleString("en")} calls`}
        {flow.since === undefined ? null : (
          <>
            , all <Lasting at={flow.since} words="within the last" />
          </>
        )}
        .
      </p>
    </section>
  );
}

function Ends({
  ends,
  more,
  what,
  hrefOf,
}: {
  ends: readonly FlowEnd[];
  more: number;
  what: string;
  hrefOf: ((name: string) => string) | undefined;
}) {
  return (
    <div class={`ends ${what}`}>
      <ul>
        {ends.map(({ name, calls, errors }) => (
          <li key={name}>
            {hrefOf === undefined ? (
              <Foreign text={name} />
            ) : (
              <a href={hrefOf(name)}>
                <Foreign text={name} />
              </a>
            )}{" "}
            <small>
              {calls.toLocaleString("en")}
              {errors > 0 ? <span class="state bad">, ▲ {errors.toLocaleString("en")} failed</span> : null}
            </small>
          </li>
        ))}
      </ul>
      {more > 0 ? <p class="empty">and {more.toLocaleString("en")} more</p> : null}
    </div>
  );
}
