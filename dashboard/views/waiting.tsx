// What waits: writes that are kept for their servers, lane by lane, and mailboxes.

import type { OutboxEntry, OutboxLane } from "../../src/contracts/outbox.js";
import type { DeadLetterSummary, MailboxSummary, Page } from "../../src/contracts/status.js";
import { shellWord } from "../../src/runtime/words/shell-word.js";
import { mailboxes, outbox } from "../model.js";
import { ActButton, Foreign, Line, Since, Table, useLoaded } from "../words.js";

export function Waiting() {
  return (
    <>
      <h1>Waiting</h1>
      {outbox.value === undefined && mailboxes.value === undefined ? (
        <p class="empty">
          Nothing waits, and nothing can: no tool of the config has an outbox, and there are no mailboxes.
        </p>
      ) : null}
      {outbox.value === undefined ? null : <Writes />}
      {mailboxes.value === undefined ? null : <Mailboxes />}
    </>
  );
}

function Writes() {
  const { value, again } = useLoaded<{ writes: readonly OutboxEntry[] }>("/outbox");
  const lanes = useLoaded<{ lanes: readonly OutboxLane[] }>("/outbox/lanes");
  const writes = (value?.writes ?? []).filter(({ state }) => state !== "done" && state !== "cancelled");
  const renew = () => {
    again();
    lanes.again();
  };
  return (
    <section>
      <h2>Writes</h2>
      {value !== undefined && writes.length === 0 ? <p class="empty">Nothing waits.</p> : null}
      {(lanes.value?.lanes ?? [])
        .filter(({ heldFor }) => heldFor !== undefined)
        .map(({ server, lane, depth, heldFor }) => (
          <p key={`${server}/${lane}`} class="trouble">
            <Foreign text={`${server}: ${depth} on hold in ${lane}: ${heldFor ?? ""}`} />{" "}
            <ActButton
              act={{ label: "Release", method: "POST", path: "/outbox/release", body: { server, lane } }}
              line={`toolway outbox release ${shellWord(server)}`}
              onDone={renew}
            />
          </p>
        ))}
      {writes.length === 0 ? null : (
        <Table heads={["Receipt", "Tool", "Whose", "State", "Since", "Why", "What to do"]}>
          {writes.map((write) => (
            <tr key={write.id}>
              <th scope="row">
                <code>{write.id.slice(0, 8)}</code>
              </th>
              <td>
                <Foreign text={`${write.server}/${write.tool}`} />
              </td>
              <td>
                <Foreign text={write.principal} />
              </td>
              <td>{write.state}</td>
              <td>
                <Since at={write.sinceMs} suffix="" />
              </td>
              <td>
                <div class="clip">
                  <Foreign text={write.heldFor ?? write.why ?? ""} />
                </div>
              </td>
              <td>
                <WriteActs write={write} onDone={renew} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}

function WriteActs({ write: { id, state }, onDone }: { write: OutboxEntry; onDone: () => void }) {
  const route = `/outbox/writes/${encodeURIComponent(id)}`;
  if (state === "unknown") {
    const resolve = (as: "done" | "failed" | "again", label: string, sure: string) => (
      <ActButton act={{ label, method: "POST", path: `${route}/resolve`, body: { as }, sure }} onDone={onDone} />
    );
    return (
      <span class="acts">
        {resolve("done", "It was done", "Its agent is told that it was done.")}
        {resolve("failed", "It was not", "Its agent is told that it failed.")}
        {resolve("again", "Send it again", "Where it was done, it is done twice.")}
      </span>
    );
  }
  return (
    <span class="acts">
      {state === "failed" || state === "expired" ? (
        <ActButton act={{ label: "Retry", method: "POST", path: `${route}/retry` }} onDone={onDone} />
      ) : null}
      {state === "sending" ? null : (
        <ActButton
          act={{
            label: "Drop",
            method: "POST",
            path: `${route}/drop`,
            sure: "It is never sent, and its agent is told so.",
          }}
          onDone={onDone}
        />
      )}
    </span>
  );
}

function Mailboxes() {
  const { value } = useLoaded<Page<MailboxSummary>>("/mailboxes");
  const items = value?.items ?? [];
  return (
    <section>
      <h2>Mailboxes</h2>
      {value !== undefined && items.length === 0 ? <p class="empty">Every mailbox is empty.</p> : null}
      {items.length === 0 ? null : (
        <Table
          heads={[
            "Mailbox",
            { number: "Waiting" },
            { number: "Under way" },
            { number: "Dead" },
            { number: "Consumers" },
            "Oldest",
          ]}
        >
          {items.map(({ mailbox, waiting, leased, dead, connections, oldestAt }) => (
            <tr key={mailbox}>
              <th scope="row">
                <Foreign text={mailbox} />
              </th>
              <td class="number">{waiting}</td>
              <td class="number">{leased}</td>
              <td class="number">{dead}</td>
              <td class="number">{connections}</td>
              <td>
                <Since at={oldestAt} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {items
        .filter(({ dead }) => dead > 0)
        .map(({ mailbox }) => (
          <DeadLetters key={mailbox} mailbox={mailbox} />
        ))}
    </section>
  );
}

function DeadLetters({ mailbox }: { mailbox: string }) {
  const { value, again } = useLoaded<Page<DeadLetterSummary>>(`/mailboxes/dead?mailbox=${encodeURIComponent(mailbox)}`);
  return (
    <section>
      <h3>
        Dead letters of <Foreign text={mailbox} />
      </h3>
      <Line text={`toolway mailbox dead ${shellWord(mailbox)}`} />
      <ul class="rows">
        {(value?.items ?? []).map(({ id, from, reason, failedAt }) => (
          <li key={id}>
            <code>
              <Foreign text={id} />
            </code>{" "}
            of <Foreign text={from} />, <Since at={failedAt} />: <Foreign text={reason} />{" "}
            <ActButton
              act={{ label: "Retry", method: "POST", path: "/mailboxes/retry", body: { mailbox, id, from } }}
              onDone={again}
            />
            <ActButton
              act={{
                label: "Drop",
                method: "POST",
                path: "/mailboxes/drop",
                body: { mailbox, id, from, deadOnly: true },
                sure: "It is gone for good.",
              }}
              onDone={again}
            />
          </li>
        ))}
      </ul>
    </section>
  );
}
