// What waits: writes that are kept for their servers, lane by lane, and mailboxes.

import type { ComponentChildren } from "preact";
import type { OutboxEntry, OutboxLanes } from "../../src/contracts/outbox.js";
import type { DeadLetterSummary, MailboxSummary, Page } from "../../src/contracts/status.js";
import { shellWord } from "../../src/runtime/words/shell-word.js";
import { ActButton, Acts } from "../act-button.js";
import { mailboxes, outbox } from "../model.js";
import { query } from "../router.js";
import { WriteActs } from "../waiting/acts.js";
import { deliveredWords, joinedWrites, type LaneRow, laneRows, waitWords } from "../waiting/lanes.js";
import { ageText, Foreign, Line, Since, Table, Until, useFollowed, useLoaded } from "../words.js";

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

/** Often enough to see it go. */
const LOOK_MS = 3_000;

/** With so many the gateway has a while to look, and nobody sees them all go. */
const MANY_WAIT = 5_000;
const LOOK_AT_MANY_MS = 15_000;

interface Listed {
  readonly writes: readonly OutboxEntry[];
}

function Writes() {
  const lookMs = (outbox.value?.waiting ?? 0) > MANY_WAIT ? LOOK_AT_MANY_MS : LOOK_MS;
  const { value, trouble, again } = useFollowed<Listed>("/outbox", lookMs, ".lanes");
  // The list of all has the newest, and these wait for a person however old they are.
  const unknown = useFollowed<Listed>("/outbox?state=unknown", lookMs, ".lanes");
  const lanes = useFollowed<OutboxLanes>("/outbox/lanes", lookMs, ".lanes");
  const writes = joinedWrites(value?.writes ?? [], unknown.value?.writes ?? []);
  const ended = writes.filter(({ state }) => state === "unknown" || state === "failed" || state === "expired");
  const rows = laneRows(writes, lanes.value?.lanes ?? []);
  const renew = () => Promise.all([again(), unknown.again(), lanes.again()]);
  return (
    <section class="lanes">
      <h2>Writes</h2>
      {trouble === "" && lanes.trouble === "" ? null : <p class="trouble">{trouble || lanes.trouble}</p>}
      {value !== undefined && rows.length === 0 && ended.length === 0 ? (
        <p class="empty">Nothing waits. {deliveredWords(writes, Date.now(), ageText)}</p>
      ) : null}
      {ended.length === 0 ? null : (
        <>
          <h3>Ended, and not well</h3>
          <WriteTable
            writes={ended}
            columns={[
              ["State", ({ state }) => <span class="state bad">▲ {state}</span>],
              ["Since", ({ sinceMs }) => <Since at={sinceMs} />],
              ["Why", ({ why }) => <Clipped text={why ?? ""} />],
              ["What to do", (write) => <WriteActs write={write} isShort onDone={renew} />],
            ]}
          />
        </>
      )}
      {rows.map((row) => (
        <Lane key={row.key} row={row} onDone={renew} />
      ))}
      {query.value.get("state") === "done" ? <Delivered /> : null}
      {lanes.value === undefined || lanes.value.more === 0 ? null : (
        <p class="empty">
          And {lanes.value.more.toLocaleString()} more {lanes.value.more === 1 ? "lane, which is" : "lanes, which are"}{" "}
          not read for this page.
        </p>
      )}
    </section>
  );
}

/** As they were when it was asked for: it only grows, and nothing can be done about them. */
function Delivered() {
  const { value, trouble } = useLoaded<Listed>("/outbox?state=done");
  return (
    <section>
      <h3>Delivered</h3>
      {value !== undefined && value.writes.length === 0 ? <p class="empty">None that is still known.</p> : null}
      {trouble === "" ? null : <p class="trouble">{trouble}</p>}
      {value === undefined || value.writes.length === 0 ? null : (
        <WriteTable
          writes={value.writes}
          columns={[
            ["Delivered", ({ sinceMs }) => <Since at={sinceMs} />],
            ["Waited", ({ sinceMs, takenMs }) => ageText(sinceMs - takenMs)],
            [{ number: "Tries" }, ({ attempts }) => attempts],
          ]}
        />
      )}
    </section>
  );
}

type Column = readonly [head: string | { readonly number: string }, cell: (write: OutboxEntry) => ComponentChildren];

/** Which write it is, and what these columns say of it. `isOfServer`: it stands under the name of its server. */
function WriteTable({
  writes,
  isOfServer = false,
  columns,
}: {
  writes: readonly OutboxEntry[];
  isOfServer?: boolean;
  columns: readonly Column[];
}) {
  return (
    <Table heads={["Receipt", "Tool", "Whose", ...columns.map(([head]) => head)]}>
      {writes.map((write) => (
        <tr key={write.id}>
          <th scope="row">
            <a href={`/waiting/${encodeURIComponent(write.id)}`}>
              <code>
                <Foreign text={write.id.slice(0, 8)} />
              </code>
            </a>
          </th>
          <td>
            <Foreign text={isOfServer ? write.tool : `${write.server}/${write.tool}`} />
          </td>
          <td>
            <Foreign text={write.principal} />
          </td>
          {columns.map(([head, cell]) =>
            typeof head === "string" ? (
              <td key={head}>{cell(write)}</td>
            ) : (
              <td key={head.number} class="number">
                {cell(write)}
              </td>
            ),
          )}
        </tr>
      ))}
    </Table>
  );
}

function Clipped({ text }: { text: string }) {
  return (
    <div class="clip">
      <Foreign text={text} />
    </div>
  );
}

function Lane({
  row: { server, lane, heldFor, isWhole, writes, depth },
  onDone,
}: {
  row: LaneRow;
  onDone: () => Promise<unknown>;
}) {
  const body = isWhole ? { server } : { server, lane };
  const words = `${shellWord(server)}${isWhole ? "" : ` --lane ${shellWord(lane)}`}`;
  return (
    <section>
      <h3>
        <a href={`/servers/${encodeURIComponent(server)}`}>
          <Foreign text={server} />
        </a>
        {lane === "" ? ", in no order" : ", in order: "}
        {lane === "" ? null : <Foreign text={lane} />}
      </h3>
      <p class="acts">
        <span>
          {depth.toLocaleString()} {depth === 1 ? "write waits" : "writes wait"}.
        </span>
        {heldFor === undefined ? (
          <ActButton
            key="hold"
            act={{
              label: "Hold",
              method: "POST",
              path: "/outbox/hold",
              body,
              sure: `Nothing of ${isWhole ? "this server" : "it"} is delivered until somebody releases it. What comes is kept.`,
            }}
            line={`toolway outbox hold ${words}`}
            onDone={onDone}
          />
        ) : (
          <>
            <span class="trouble">
              ▲ <Foreign text={heldFor} />
            </span>
            <ActButton
              key="release"
              act={{ label: "Release", method: "POST", path: "/outbox/release", body }}
              line={`toolway outbox release ${words}`}
              onDone={onDone}
            />
          </>
        )}
      </p>
      {writes.length === 0 ? null : (
        <WriteTable
          writes={writes}
          isOfServer
          columns={[
            ["State", ({ state }) => state],
            ["Age", ({ takenMs }) => <Since at={takenMs} suffix="" />],
            ["Why", (write) => <Clipped text={waitWords(write)} />],
            ["Next try", ({ nextTryMs }) => (nextTryMs === undefined ? "" : <Until at={nextTryMs} />)],
            [{ number: "Tries" }, ({ attempts }) => attempts],
            ["What to do", (write) => <WriteActs write={write} isShort onDone={onDone} />],
          ]}
        />
      )}
    </section>
  );
}

function Mailboxes() {
  const { value, trouble } = useFollowed<Page<MailboxSummary>>("/mailboxes", LOOK_MS);
  const items = value?.items ?? [];
  return (
    <section>
      <h2>Mailboxes</h2>
      {trouble === "" ? null : <p class="trouble">{trouble}</p>}
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
          <li key={`${from}/${id}`}>
            <code>
              <Foreign text={id} />
            </code>{" "}
            of <Foreign text={from} />, <Since at={failedAt} />: <Foreign text={reason} />{" "}
            <Acts>
              <ActButton
                act={{ label: "Retry", method: "POST", path: "/mailboxes/retry", body: { mailbox, id, from } }}
                line={`toolway mailbox retry ${shellWord(mailbox)} ${shellWord(id)}`}
                isShort
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
                line={`toolway mailbox drop ${shellWord(mailbox)} ${shellWord(id)}`}
                isShort
                onDone={again}
              />
            </Acts>
          </li>
        ))}
      </ul>
    </section>
  );
}
