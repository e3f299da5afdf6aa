// The page: its frame, and which view an address is.

import { computed, effect } from "@preact/signals";
import { type ComponentChildren, render } from "preact";
import { shellWord } from "../src/runtime/words/shell-word.js";
import { ActButton } from "./act-button.js";
import { Gateways } from "./gateways.js";
import { config, follow, gateway, isBroker, link, mailboxes, name, outbox, power, servers } from "./model.js";
import { brokerSummary, summaryOf, waitingWords } from "./needs.js";
import { go, path } from "./router.js";
import { SearchBox } from "./search.js";
import { Access } from "./views/access.js";
import { Audit } from "./views/audit.js";
import { Calls, OneCall } from "./views/calls.js";
import { ConfigView } from "./views/config.js";
import { needs, Overview } from "./views/overview.js";
import { Pins, PinsOfServer } from "./views/pins.js";
import { OneServer, Servers } from "./views/servers.js";
import { OneTool, Tools } from "./views/tools.js";
import { Waiting } from "./views/waiting.js";
import { OneWrite } from "./waiting/one-write.js";
import { ClockTime, Foreign, isExact, Line, NextTry, Until } from "./words.js";

const VIEWS: readonly [path: string, name: string, key: string][] = [
  ["", "Overview", "o"],
  ["calls", "Calls", "k"],
  ["servers", "Servers", "s"],
  ["tools", "Tools", "l"],
  ["pins", "Pins", "p"],
  ["waiting", "Waiting", "w"],
  ["access", "Access", "a"],
  ["config", "Config", "c"],
  ["audit", "Audit", "u"],
];

/** A broker has no servers, and so no calls, tools and pins; it has no config, and an audit log by none. */
const OF_BROKER: readonly string[] = ["", "waiting", "access"];

/** What is not configured is not there. */
function isThere(view: string): boolean {
  if (isBroker.value) return OF_BROKER.includes(view);
  if (view === "waiting") return outbox.value !== undefined || mailboxes.value !== undefined;
  return true;
}

const summary = computed(() =>
  isBroker.value ? brokerSummary(mailboxes.value, needs.value) : summaryOf(servers.value, needs.value),
);

function View(): ComponentChildren {
  const [view = "", one] = path.value;
  switch (view) {
    case "":
      return <Overview />;
    case "calls":
      if (one === undefined) return <Calls />;
      return /^\d{1,15}$/.test(one) ? <OneCall key={one} seq={Number(one)} /> : <Nothing />;
    case "servers":
      return one === undefined ? <Servers /> : <OneServer key={one} name={one} />;
    case "tools":
      return one === undefined ? <Tools /> : <OneTool key={one} name={one} />;
    case "pins":
      return one === undefined ? <Pins /> : <PinsOfServer server={one} />;
    case "waiting":
      return one === undefined ? <Waiting /> : <OneWrite key={one} id={one} />;
    case "access":
      return <Access />;
    case "config":
      return <ConfigView />;
    case "audit":
      return <Audit />;
    default:
      return <Nothing />;
  }
}

function Nothing() {
  return <p class="empty">There is nothing here.</p>;
}

/** How many things of a view need a person. */
function countOf(view: string): number {
  return needs.value.filter(({ href }) => (href.split("/")[1] ?? "") === view).length;
}

function Rail() {
  const here = path.value[0] ?? "";
  return (
    <nav aria-label="Views">
      <ul>
        {VIEWS.filter(([view]) => isThere(view)).map(([view, name]) => {
          const count = view === "" ? needs.value.length : countOf(view);
          const waits = count === 0 && view === "waiting" ? waitingWords(outbox.value?.waiting ?? 0) : "";
          return (
            <li key={view}>
              <a href={`/${view}`} aria-current={here === view ? "page" : undefined}>
                {name}
                {count > 0 ? <span class="count"> {count}</span> : null}
                {waits === "" ? null : <span class="waits"> {waits}</span>}
              </a>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

function Live() {
  const now = link.value;
  if (now.kind === "live") return <span class="state good">● live{power.value === "viewer" ? ", view only" : ""}</span>;
  if (now.kind === "lost") {
    return (
      <span class="state bad" role="status">
        ▲ {now.why} since <ClockTime at={now.since} />; <NextTry at={now.again} />. This is how it was then.
      </span>
    );
  }
  return <span class="state calm">○ opening</span>;
}

function Stopping() {
  const count = servers.value.reduce((sum, { inFlight }) => sum + inFlight, 0);
  return (
    <p class="state bad" role="status">
      ▲ Stopping: {count} {count === 1 ? "call" : "calls"} under way
    </p>
  );
}

/** On every page while arguments and results are kept: whoever looks is to know. */
function Recording() {
  const recordings = gateway.value?.recordings ?? [];
  if (recordings.length === 0) return null;
  return (
    <div class="recording" role="status">
      {recordings.map(({ server, tool, until }) => (
        <p key={`${server}/${tool ?? ""}`}>
          ◉ Arguments and results of <Foreign text={tool === undefined ? server : `${server}/${tool}`} /> are recorded
          for <Until at={Date.parse(until)} /> more.{" "}
          <ActButton
            act={{ label: "Stop recording", method: "POST", path: "/record/stop", body: { server, tool } }}
            line={`toolway record ${shellWord(tool === undefined ? server : `${server}/${tool}`)} --stop`}
          />
        </p>
      ))}
    </div>
  );
}

function Page() {
  const now = link.value;
  if (now.kind === "ended") {
    return (
      <main class="alone">
        <h1>Toolway</h1>
        <p>{now.why}</p>
        <Line text="toolway dashboard" />
      </main>
    );
  }
  if (gateway.value === undefined) return <main class="alone late">Opening…</main>;
  return (
    <>
      <header>
        <a class="name" href="/">
          <Foreign text={name.value} />
        </a>
        <p class="summary">{summary}</p>
        <SearchBox />
        {gateway.value.draining ? <Stopping /> : null}
        <Live />
      </header>
      <Recording />
      <Gateways />
      <div class={now.kind === "lost" ? "frame stale" : "frame"}>
        <Rail />
        <main>
          <View />
        </main>
      </div>
      <Keys />
    </>
  );
}

function Keys() {
  return (
    <dialog id="keys">
      <h2>Keys</h2>
      <dl class="facts">
        {VIEWS.filter(([view]) => isThere(view)).map(([, name, key]) => (
          <div key={key}>
            <dt>
              <kbd>g</kbd> <kbd>{key}</kbd>
            </dt>
            <dd>{name}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>/</kbd> or <kbd>Ctrl</kbd> <kbd>K</kbd>
          </dt>
          <dd>Search</dd>
        </div>
        <div>
          <dt>
            <kbd>t</kbd>
          </dt>
          <dd>Exact times</dd>
        </div>
        <div>
          <dt>
            <kbd>?</kbd>
          </dt>
          <dd>These keys</dd>
        </div>
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

/** `g` was pressed, and the next key says where to. */
let isGoing = false;

addEventListener("keydown", (event) => {
  const isSearch = event.key === "k" && (event.ctrlKey || event.metaKey) && !event.altKey;
  const isTyping = (event.target as Element | null)?.matches?.("input, select, textarea") === true;
  if (isSearch || (event.key === "/" && !isTyping)) {
    event.preventDefault();
    document.getElementById("search")?.focus();
    return;
  }
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const view = isGoing ? VIEWS.find(([, , key]) => key === event.key) : undefined;
  isGoing = event.key === "g";
  if (view !== undefined) go(`/${view[0]}`);
  else if (event.key === "t") isExact.value = !isExact.value;
  else if (event.key === "?") (document.getElementById("keys") as HTMLDialogElement | null)?.showModal();
});

effect(() => {
  const count = needs.value.length;
  document.title = `${count > 0 ? `(${count}) ` : ""}${config.value === undefined ? "Toolway" : name.value}`;
});

const root = document.getElementById("page");
if (root !== null) {
  root.replaceChildren();
  render(<Page />, root);
}
void follow();
