// The search at the top: by `/` or Ctrl-K, over servers, tools, agents, receipts and the ids of calls.

import { useEffect, useState } from "preact/hooks";
import type { CallsAnswer } from "../src/contracts/control/calls.js";
import type { ToolInShort } from "../src/contracts/control/tools.js";
import { call, lines } from "./door.js";
import { type Findable, found } from "./find.js";
import { servers } from "./model.js";
import { go } from "./router.js";
import { Foreign } from "./words.js";

/** What was loaded for the last search is good so long: somebody who types asks once. */
const FRESH_MS = 15_000;

let loaded: { readonly atMs: number; readonly all: readonly Findable[] } | undefined;

async function everything(): Promise<readonly Findable[]> {
  if (loaded !== undefined && Date.now() - loaded.atMs < FRESH_MS) return loaded.all;
  const at = (prefix: string, name: string) => `${prefix}/${encodeURIComponent(name)}`;
  const lists = await Promise.all([
    allLines<ToolInShort>("/tools/lines").then((tools) =>
      tools.map(({ name, ownName }): Findable => ({ kind: "tool", name, also: [ownName], href: at("/tools", name) })),
    ),
    call<{ tokens: readonly { id: string }[] }>("GET", "/tokens").then(({ tokens }) =>
      tokens.map(({ id }) => agentNamed(id)),
    ),
    call<{ writes: readonly { id: string }[] }>("GET", "/outbox").then(
      ({ writes }) =>
        writes.map(({ id }): Findable => ({ kind: "write", name: id, href: `/waiting/${encodeURIComponent(id)}` })),
      // There is none where nothing is kept.
      () => [],
    ),
    call<CallsAnswer>("GET", "/calls").then(({ calls }) =>
      [
        // Some have no token: whoever calls where nobody is asked for one, runs, and the operator.
        ...new Set(calls.map(({ principal }) => principal)),
      ]
        .map(agentNamed)
        .concat(
          calls.map(
            ({ seq, id, trace, receipt }): Findable => ({
              kind: "call",
              name: String(id),
              also: [trace, receipt].filter((text) => text !== undefined),
              href: `/calls/${seq}`,
            }),
          ),
        ),
    ),
  ]);
  // An agent with a token has calls as well.
  const all = [...new Map(lists.flat().map((one) => [`${one.kind} ${one.href}`, one])).values()];
  loaded = { atMs: Date.now(), all };
  return loaded.all;
}

function agentNamed(id: string): Findable {
  return { kind: "agent", name: id, href: `/calls?principal=${encodeURIComponent(id)}` };
}

/** What may be the whole id of a receipt: of those that are kept, the list has the newest alone. */
const RECEIPT = /^[\w-]{20,80}$/;

/** The receipt of this id, wherever it is; undefined where there is none, or nothing is kept. */
function receiptNamed(id: string): Promise<Findable | undefined> {
  const path = `/outbox/writes/${encodeURIComponent(id)}`;
  return call("GET", path).then(
    () => ({ kind: "write", name: id, href: `/waiting/${encodeURIComponent(id)}` }),
    () => undefined,
  );
}

async function allLines<T>(path: string): Promise<T[]> {
  const all: T[] = [];
  for await (const line of lines(path, new AbortController().signal)) all.push(line as T);
  return all;
}

export function SearchBox() {
  const [text, setText] = useState("");
  const [rest, setRest] = useState<readonly Findable[]>([]);
  const [at, setAt] = useState(0);
  const isTyped = text.trim() !== "";
  useEffect(() => {
    let isLeft = false;
    if (isTyped)
      everything()
        .then((all) => isLeft || setRest(all))
        .catch(() => {});
    return () => {
      isLeft = true;
    };
  }, [isTyped]);
  const typed = text.trim();
  const hasReceipt = rest.some(({ kind, name }) => kind === "write" && name === typed);
  const [receipt, setReceipt] = useState<Findable>();
  useEffect(() => {
    if (!RECEIPT.test(typed) || hasReceipt || rest.length === 0) return undefined;
    let isLeft = false;
    void receiptNamed(typed).then((found) => isLeft || setReceipt(found));
    return () => {
      isLeft = true;
      setReceipt(undefined);
    };
  }, [typed, hasReceipt, rest]);
  const own = servers.value.map(
    ({ name }): Findable => ({ kind: "server", name, href: `/servers/${encodeURIComponent(name)}` }),
  );
  const hits = found([...own, ...rest, ...(receipt === undefined ? [] : [receipt])], text);
  const leave = () => {
    setText("");
    setAt(0);
    document.getElementById("search")?.blur();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const one = hits[Math.min(at, hits.length - 1)];
    if (event.key === "Escape") leave();
    else if (event.key === "ArrowDown") setAt(Math.min(at + 1, hits.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
    else if (event.key === "Enter" && one !== undefined) {
      go(one.href);
      leave();
    } else return;
    event.preventDefault();
  };
  return (
    <div class="search">
      <input
        id="search"
        type="search"
        placeholder="Search  /"
        aria-label="Search servers, tools, agents, receipts and ids of calls"
        value={text}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      {isTyped ? (
        <ul aria-live="polite">
          {hits.length === 0 ? <li class="empty">Nothing is called so.</li> : null}
          {hits.map((one, index) => (
            <li key={`${one.kind}/${one.href}`}>
              <a href={one.href} aria-current={index === at ? "true" : undefined} onClick={() => setTimeout(leave)}>
                {one.kind} <Foreign text={one.name} />
              </a>
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}
