// A broker by itself: what its mailboxes hold.

import { mailboxes } from "../model.js";
import { Figure, Lasting, Line } from "../words.js";

export function Broker() {
  const held = mailboxes.value;
  if (held === undefined) return null;
  const { inUse, waiting, leased, dead, connections, sharers, oldest } = held;
  return (
    <section aria-labelledby="broker">
      <h2 id="broker">Mailboxes</h2>
      {inUse === 0 ? (
        <p class="empty">
          Nobody is here yet. <Line text="toolway token create --id studio --role sharer" /> makes the token of a
          machine that shares its tools; <code>toolway share --help</code> says how it comes here.
        </p>
      ) : null}
      <dl class="figures">
        <Figure name="mailboxes in use" value={String(inUse)} />
        <Figure name="messages that wait" value={String(waiting)} />
        <Figure name="under way" value={String(leased)} />
        <Figure name="dead letters" value={String(dead)} />
        <Figure
          name={sharers === undefined ? "connections" : `connections, ${sharers} of sharers`}
          value={String(connections)}
        />
      </dl>
      {oldest === undefined ? null : (
        <p>
          The oldest message has waited <Lasting at={oldest.at} />.
        </p>
      )}
    </section>
  );
}
