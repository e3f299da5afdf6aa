// Tools whose definition changed: old and new side by side, hidden characters as chips, and the word to accept them.

import { diffWordsWithSpace } from "diff";
import type { PinDiff, PinLine } from "../../src/contracts/pins.js";
import { shellWord } from "../../src/runtime/words/shell-word.js";
import { ActButton, Acts } from "../act-button.js";
import { Foreign, Line, Since, useLoaded } from "../words.js";

/** As much of a hash as cannot be hit by chance, and as `toolway pins diff` shows. */
const HASH_SHOWN = 12;

interface PinsAnswer {
  readonly pins: readonly PinLine[];
}

export function Pins() {
  const { value, trouble } = useLoaded<PinsAnswer>("/pins");
  const pins = value?.pins ?? [];
  const changed = pins.filter(({ state }) => state === "changed" || state === "refused");
  const rejected = pins.filter(({ state }) => state === "rejected");
  const asAccepted = pins.filter(({ state }) => state === "pinned").length;
  return (
    <>
      <h1>Pins</h1>
      {trouble === "" ? null : <p class="trouble">{trouble}</p>}
      {value === undefined ? null : changed.length === 0 ? (
        <p class="empty">
          {rejected.length === 0 ? "Every tool" : "Every other tool"} is as you accepted it: {asAccepted} pinned.
        </p>
      ) : (
        <ul class="rows">
          {[...new Set(changed.map(({ server }) => server))].map((server) => (
            <li key={server} class="need">
              <a href={`/pins/${encodeURIComponent(server)}`}>
                <strong>
                  <Foreign text={server} />
                </strong>
              </a>
              <p>
                {changed
                  .filter((pin) => pin.server === server)
                  .map((pin, i) => (
                    <span key={pin.tool}>
                      {i > 0 ? ", " : ""}
                      <Foreign text={pin.tool} />
                    </span>
                  ))}
              </p>
              <Line text={`toolway pins diff ${shellWord(server)}`} />
            </li>
          ))}
        </ul>
      )}
      {rejected.length === 0 ? null : (
        <section>
          <h2>Rejected</h2>
          <p>They stay hidden as they are, and ask no more until they change again.</p>
          <ul>
            {rejected.map(({ server, tool }) => (
              <li key={`${server}/${tool}`}>
                <a href={`/pins/${encodeURIComponent(server)}`}>
                  <Foreign text={`${server}/${tool}`} />
                </a>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

export function PinsOfServer({ server }: { server: string }) {
  const { value, trouble, again } = useLoaded<{ diffs: readonly PinDiff[] }>(
    `/pins/diff?server=${encodeURIComponent(server)}`,
  );
  const open = value?.diffs.filter(({ rejectedAt }) => rejectedAt === undefined) ?? [];
  return (
    <>
      <h1>
        Changed tools of <Foreign text={server} />
      </h1>
      {trouble === "" ? null : <p class="trouble">{trouble}</p>}
      {value?.diffs.length === 0 ? <p class="empty">Every tool is as you accepted it.</p> : null}
      {open.length < 2 ? null : <AllAtOnce server={server} diffs={open} onDone={again} />}
      {value?.diffs.map((diff) => (
        <section key={diff.tool} class="diff">
          <h2>
            <Foreign text={diff.tool} />
          </h2>
          <p>
            Accepted <Since at={diff.old.at} />, changed <Since at={diff.new.at} />
            {diff.rejectedAt === undefined ? null : (
              <>
                , rejected <Since at={diff.rejectedAt} />
              </>
            )}
            .
          </p>
          <Sides diff={diff} />
          <Acts key={diff.new.hash}>
            <ActButton
              act={{
                label: "Accept",
                method: "POST",
                path: "/pins/accept",
                body: { server, tool: diff.tool, hash: diff.new.hash },
                sure: "Agents see the tool as it is now, and may call it.",
              }}
              line={`toolway pins accept ${shellWord(server)} ${shellWord(diff.tool)} --hash ${diff.new.hash.slice(0, HASH_SHOWN)}`}
              onDone={again}
            />
            {diff.rejectedAt === undefined ? (
              <ActButton
                act={{
                  label: "Reject",
                  method: "POST",
                  path: "/pins/reject",
                  body: { server, tool: diff.tool, hash: diff.new.hash },
                }}
                line={`toolway pins reject ${shellWord(server)} ${shellWord(diff.tool)}`}
                onDone={again}
              />
            ) : null}
          </Acts>
        </section>
      ))}
    </>
  );
}

/** Each is accepted by the hash that is shown below; rejecting shows nothing to agents, and is of all that there are. */
function AllAtOnce({
  server,
  diffs,
  onDone,
}: {
  server: string;
  diffs: readonly PinDiff[];
  onDone: () => Promise<unknown>;
}) {
  // What is too large to be kept is not shown: who accepts that does so by itself.
  const shown = diffs.filter(({ old, new: now }) => old.definition !== undefined && now.definition !== undefined);
  const rest = shown.length === diffs.length ? "" : " So does what is too large to be shown.";
  const sure = `Agents see these ${shown.length.toLocaleString()} tools as they are shown here, and may call them. One that has changed since stays hidden.${rest}`;
  return (
    <p>
      <Acts>
        {shown.length < 2 ? null : (
          <ActButton
            act={{
              label: "Accept all",
              method: "POST",
              path: "/pins/accept",
              bodies: shown.map(({ tool, new: { hash } }) => ({ server, tool, hash })),
              sure,
            }}
            line={`toolway pins accept ${shellWord(server)}`}
            onDone={onDone}
          />
        )}
        <ActButton
          act={{ label: "Reject all", method: "POST", path: "/pins/reject", body: { server } }}
          line={`toolway pins reject ${shellWord(server)}`}
          onDone={onDone}
        />
      </Acts>
    </p>
  );
}

/** One member of a definition, as text on either side; undefined where that side has none. */
interface Member {
  readonly name: string;
  readonly old: string | undefined;
  readonly new: string | undefined;
}

/** More than this is shown without the words that changed: to compare takes time by the square. */
const MAX_COMPARED = 20_000;

export function membersOf({ old, new: now }: PinDiff): Member[] {
  const [before, after] = [parsed(old.definition), parsed(now.definition)];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].map((name) => ({
    name,
    old: textOf(before[name]),
    new: textOf(after[name]),
  }));
}

function parsed(definition: string | undefined): Readonly<Record<string, unknown>> {
  return definition === undefined ? {} : (JSON.parse(definition) as Record<string, unknown>);
}

function textOf(value: unknown): string | undefined {
  return value === undefined || typeof value === "string" ? value : JSON.stringify(value, undefined, 2);
}

function Sides({ diff }: { diff: PinDiff }) {
  if (diff.old.definition === undefined || diff.new.definition === undefined) {
    return <p class="empty">The definition was too large to keep; its hash changed.</p>;
  }
  return (
    <table class="sides">
      <thead>
        <tr>
          <th scope="col">Member</th>
          <th scope="col">As you accepted it</th>
          <th scope="col">As it is now</th>
        </tr>
      </thead>
      <tbody>
        {membersOf(diff)
          .filter((member) => member.old !== member.new)
          .map((member) => (
            <SideRow key={member.name} member={member} />
          ))}
      </tbody>
    </table>
  );
}

function SideRow({ member: { name, old = "", new: now = "" } }: { member: Member }) {
  const isCompared = old.length + now.length <= MAX_COMPARED;
  const changes = isCompared ? diffWordsWithSpace(old, now) : [];
  return (
    <tr>
      <th scope="row">
        <Foreign text={name} />
      </th>
      <td>
        {isCompared ? (
          changes
            .filter(({ added }) => !added)
            .map(({ value, removed }, i) => (
              <Part key={`${i}-${value}`} text={value} kind={removed ? "del" : undefined} />
            ))
        ) : (
          <Foreign text={old} lines />
        )}
      </td>
      <td>
        {isCompared ? (
          changes
            .filter(({ removed }) => !removed)
            .map(({ value, added }, i) => <Part key={`${i}-${value}`} text={value} kind={added ? "ins" : undefined} />)
        ) : (
          <Foreign text={now} lines />
        )}
      </td>
    </tr>
  );
}

function Part({ text, kind }: { text: string; kind: "ins" | "del" | undefined }) {
  const content = <Foreign text={text} lines />;
  if (kind === undefined) return content;
  return kind === "ins" ? <ins>{content}</ins> : <del>{content}</del>;
}
