// What is wrong and what to do, in ten seconds.

import { computed } from "@preact/signals";
import { config, executors, mailboxes, outbox, servers, shares } from "../model.js";
import { isFine, type Need, needsOf } from "../needs.js";
import { ActButton, Foreign, Line, Since } from "../words.js";

export const needs = computed(() =>
  needsOf({
    servers: servers.value,
    config: config.value,
    outbox: outbox.value,
    mailboxes: mailboxes.value,
    shares: shares.value ?? [],
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
      <section aria-labelledby="now">
        <h2 id="now">Now</h2>
        <dl class="figures">
          <Figure
            name="servers that are fine"
            value={`${servers.value.filter(isFine).length} of ${servers.value.length}`}
          />
          <Figure name="calls under way" value={String(inFlight)} />
          <Figure name="restarts that nobody noticed" value={String(restarts)} />
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

function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dd>{value}</dd>
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
