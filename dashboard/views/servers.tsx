// All servers, bad ones first; and one server: why it is as it is, and what can be done.

import type { HistoryAnswer } from "../../src/contracts/control/history.js";
import type { ServerEventsAnswer } from "../../src/contracts/control/server-events.js";
import type { ServerStatus } from "../../src/contracts/status.js";
import { shellWord } from "../../src/runtime/words/shell-word.js";
import { ActButton } from "../act-button.js";
import { timeText } from "../call-words.js";
import { gateway, servers } from "../model.js";
import { isFine, isWell, stateWord } from "../needs.js";
import { Hour, Told } from "../servers/events.js";
import { hourPicture } from "../servers/hour.js";
import { Login } from "../servers/login.js";
import { NoServers } from "../servers/none.js";
import { Copy, Ends, Foreign, Lasting, Line, Since, Table, Until, useHeld, useLooked } from "../words.js";
import { needs } from "./overview.js";

/** By shape, word and colour. */
function State({ server }: { server: ServerStatus }) {
  const kind = isFine(server) ? (server.state === "ready" ? "good" : "calm") : "bad";
  const word = stateWord(server);
  const shape = { good: "●", calm: "○", bad: "▲" }[kind];
  return (
    <span class={`state ${kind}`}>
      <span aria-hidden="true">{shape}</span> {word}
    </span>
  );
}

export function Servers() {
  const sorted = [...servers.value].sort((a, b) => Number(isWell(a)) - Number(isWell(b)));
  const rows = useHeld(sorted, ({ name }) => name, ".servers").filter(({ isOver }) => !isOver);
  const past = useLooked<HistoryAnswer>("/history?window=hour", 5_000);
  const pastOf = new Map(past?.servers.map((one) => [one.server, one]));
  if (rows.length === 0) {
    return (
      <>
        <h1>Servers</h1>
        <NoServers />
      </>
    );
  }
  return (
    <>
      <h1>Servers</h1>
      <div class="servers">
        <Table
          heads={[
            "Server",
            "State",
            "Since",
            "Kind",
            { number: "Tools" },
            { number: "In flight" },
            { number: "Calls a minute" },
            { number: "p50 / p95" },
            { number: "Failed in 1 h" },
            { number: "Restarts" },
          ]}
        >
          {rows.map(({ one: server }) => (
            <tr key={server.name}>
              <th scope="row">
                <a href={`/servers/${encodeURIComponent(server.name)}`}>
                  <Foreign text={server.name} />
                </a>
              </th>
              <td>
                <State server={server} />
                {server.lastError === undefined ? null : (
                  <div class="clip small reason">
                    <Foreign text={server.lastError} />
                  </div>
                )}
              </td>
              <td>
                <Since at={server.since} />
              </td>
              <td>{server.kind ?? "unknown"}</td>
              <td class="number">
                {server.counts.tools}
                {server.quarantined > 0 ? <div class="small">{server.quarantined} quarantined</div> : null}
              </td>
              <td class="number">{server.inFlight}</td>
              <PastCells past={pastOf.get(server.name)} />
              <td class="number">{server.restarts}</td>
            </tr>
          ))}
        </Table>
      </div>
    </>
  );
}

/** Why it is as it is, in a sentence. */
export function reasonOf(server: ServerStatus): string {
  const { state, credential, circuit, via } = server;
  if (state === "misconfigured") return "Its entry in the config cannot be used. It starts when the entry is right.";
  if (credential?.needsLogin === true) return "It wants a login, and nobody has logged in.";
  if (state === "ejected") return "It was started too often, and is tried again only now and then.";
  if (state === "backoff") return "It ended or does not answer, and is started again after a wait.";
  if (state === "waiting") return `It is reached through the executor "${via ?? ""}", which is not connected.`;
  if (state === "stopped") return "It was stopped by a person, and stays so until it is started.";
  if (circuit === "open") return "Calls failed in a row, so that none is sent for a while.";
  if (circuit === "half-open") return "Calls failed in a row; one is under way to see whether that is over.";
  if (state === "idle")
    return server.lazy ? "Nobody has called it yet: it starts with the first call." : "It is not started.";
  if (state === "starting") return "It is being started.";
  return "It answers.";
}

function PastCells({ past }: { past: HistoryAnswer["servers"][number] | undefined }) {
  const times = past === undefined || past.p95 === 0 ? "" : `${timeText(past.p50)} / ${timeText(past.p95)}`;
  return (
    <>
      <td class="number">{past?.callsAMinute ?? ""}</td>
      <td class="number">{times}</td>
      <td class="number">{past === undefined || past.errors === 0 ? "" : past.errors.toLocaleString()}</td>
    </>
  );
}

export function OneServer({ name }: { name: string }) {
  const route = `/servers/${encodeURIComponent(name)}`;
  const server = servers.value.find((one) => one.name === name);
  const past = useLooked<HistoryAnswer>(`/history?window=hour&server=${encodeURIComponent(name)}`, 5_000);
  const events = useLooked<ServerEventsAnswer>(`${route}/events`, 2_000);
  if (server === undefined) {
    return (
      <>
        <h1>
          <Foreign text={name} />
        </h1>
        <p class="empty">
          There is no such server. <a href="/servers">All servers</a>
        </p>
      </>
    );
  }
  const isStopped = server.state === "stopped";
  // Of what the config says wrongly nothing can be started or stopped.
  const isUsable = server.state !== "misconfigured";
  return (
    <>
      <h1>
        <Foreign text={name} />
      </h1>
      <p>
        <State server={server} />
        {server.since === undefined ? null : (
          <>
            {" "}
            <Lasting at={server.since} />
          </>
        )}
        . {reasonOf(server)}
        {server.nextTryInMs === undefined || isFine(server) ? null : (
          <>
            {" "}
            Next try in <Until at={Date.now() + server.nextTryInMs} />.
          </>
        )}
      </p>
      {server.lastError === undefined ? null : (
        <p class="trouble">
          <Foreign text={server.lastError} />
        </p>
      )}
      <Login key={String(server.credential?.needsLogin)} server={server} />
      <ToDo server={server} />
      <p class="acts">
        {isUsable ? (
          <ActButton
            act={{ label: "Reload", method: "POST", path: `${route}/reload` }}
            line={`toolway reload ${shellWord(name)}`}
          />
        ) : null}
        {!isUsable ? null : isStopped ? (
          <ActButton
            key="start"
            act={{ label: "Start", method: "POST", path: `${route}/start` }}
            line={`toolway start ${shellWord(name)}`}
          />
        ) : (
          <ActButton
            key="stop"
            act={{
              label: "Stop",
              method: "POST",
              path: `${route}/stop`,
              sure: "Agents get an error for its tools until it is started again.",
            }}
            line={`toolway stop ${shellWord(name)}`}
          />
        )}
        <Copy
          label="Copy for a bug report"
          text={() => reportOf(server, { events, hour: past && hourPicture(past, events?.breaker ?? []).words })}
        />
      </p>
      {past === undefined ? null : <Hour past={past} events={events} />}
      <Facts server={server} />
      {server.problems.length === 0 ? null : (
        <section>
          <h2>Told of it</h2>
          <ul>
            {server.problems.map((problem) => (
              <li key={problem}>
                <Foreign text={problem} />
              </li>
            ))}
          </ul>
        </section>
      )}
      <Told server={server} events={events} />
    </>
  );
}

/** What is told of it on the Overview and has no button here: that it answers is not all that there is to say then. */
function ToDo({ server: { name, state } }: { server: ServerStatus }) {
  const own = needs.value.filter(({ key }) => key === `pins/${name}` || key === `config/${name}`);
  return own.map(({ key, why, href, line }) => (
    <p key={key} class="acts">
      {state === "misconfigured" && key.startsWith("config/") ? null : (
        <>
          <span class="trouble">
            ▲ <Foreign text={why} />
          </span>
          <a class="button" href={href}>
            Look at it
          </a>
        </>
      )}
      <Line text={line} />
    </p>
  ));
}

/** What somebody who mends it wants to know. What the gateway tells of a server is without the secrets of its entry. */
function reportOf(
  server: ServerStatus,
  { events, hour }: { readonly events: ServerEventsAnswer | undefined; readonly hour: string | undefined },
): string {
  const { name, kind, state, circuit, era, version, serverInfo, counts, restarts, lastError, problems, stderr } =
    server;
  const facts = {
    toolway: gateway.value?.toolway,
    server: name,
    kind,
    state,
    why: reasonOf(server),
    circuit,
    era,
    version,
    serverInfo,
    counts,
    restarts,
    hour,
    lastError,
    problems,
  };
  const lines = Object.entries(facts).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`],
  );
  const told = (events?.lines ?? []).map(({ at, level, text }) => `  ${at} ${level} ${text}`);
  return [...lines, "log:", ...told, "stderr:", ...stderr.map((line) => `  ${line}`)].join("\n");
}

function Facts({ server }: { server: ServerStatus }) {
  const { kind, era, version, serverInfo, counts, connections, pid, url, credential, cache } = server;
  const facts: readonly [string, string | undefined][] = [
    ["Kind", kind],
    ["Speaks", era === undefined ? undefined : `${era}${version === undefined ? "" : `, ${version}`}`],
    ["Calls itself", [serverInfo?.name, serverInfo?.version].filter(Boolean).join(" ") || undefined],
    ["Tools", `${counts.tools}, prompts ${counts.prompts}, resources ${counts.resources}`],
    ["Connections", String(connections)],
    ["Process", pid === undefined ? undefined : String(pid)],
    ["Address", url],
    ["Credential", credential === undefined ? undefined : `${credential.source}: ${credential.state}`],
    ["Cache", cache === undefined ? undefined : `hits ${cache.hits}, misses ${cache.misses}`],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) =>
        value === undefined ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <Foreign text={value} />
            </dd>
          </div>
        ),
      )}
      {credential?.until === undefined ? null : (
        <div>
          <dt>It ends</dt>
          <dd>
            <Ends at={credential.until} />
          </dd>
        </div>
      )}
    </dl>
  );
}
