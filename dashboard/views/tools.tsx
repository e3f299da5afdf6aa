// The tools of all servers in one table, and one tool with its definition.

import type { ToolSummary, ToolsHistoryAnswer } from "../../src/contracts/control/history.js";
import type { ToolInShort, ToolPin } from "../../src/contracts/control/tools.js";
import { shellWord } from "../../src/runtime/words/shell-word.js";
import { sizeText, timeText } from "../call-words.js";
import { servers } from "../model.js";
import { query, setQuery } from "../router.js";
import { NoServers } from "../servers/none.js";
import {
  claimWords,
  pinWords,
  type RoleAccess,
  roleWords,
  sinceWords,
  unusedTools,
  whoMayCall,
} from "../tools/unused.js";
import { Try } from "../try/try.js";
import { Copy, Foreign, Lasting, Line, Since, Table, useLines, useLoaded } from "../words.js";

interface OneToolAnswer {
  readonly tool: Tool;
  readonly pin?: ToolPin;
}

interface Tool {
  readonly name: string;
  readonly server: string;
  readonly ownName: string;
  readonly description?: string;
  readonly inputSchema?: unknown;
  readonly outputSchema?: unknown;
  readonly annotations?: Readonly<Record<string, unknown>>;
  readonly quarantined?: string;
}

/** More rows than anybody reads make a page slow: the others are found by a word. */
const MAX_ROWS = 500;

export function Tools() {
  const as = query.value.get("as") ?? "";
  const role = query.value.get("role") ?? "";
  const wanted = (query.value.get("find") ?? "").toLowerCase();
  const { value, trouble } = useLines<ToolInShort>(`/tools/lines${narrowedBy(as, role)}`);
  const tokens = useLoaded<{ tokens: readonly { id: string; role?: string }[] }>("/tokens").value?.tokens ?? [];
  const past = useLoaded<ToolsHistoryAnswer>("/history/tools").value;
  const usedBy = new Map(past?.tools.map((one) => [`${one.server}/${one.tool}`, one]));
  const tools = (value ?? []).filter(
    ({ name, server, description }) =>
      wanted === "" || [name, server, description].some((text) => text.toLowerCase().includes(wanted)),
  );
  const seen = tools.filter(({ hiddenBy, quarantined }) => hiddenBy === undefined && quarantined === undefined);
  const sum = seen.reduce((all, tool) => all + tool.tokens, 0);
  const isSeenAs = as !== "" || role !== "";
  return (
    <>
      <h1>Tools</h1>
      <p class="filters">
        <label>
          Find{" "}
          <input
            type="search"
            value={query.value.get("find") ?? ""}
            onInput={({ currentTarget }) => setQuery("find", currentTarget.value)}
          />
        </label>
        <label>
          Seen as{" "}
          <select value={as} onChange={({ currentTarget }) => setQuery("as", currentTarget.value)}>
            <option value="">{role === "" ? "the operator" : `the role ${role}`}</option>
            {tokens
              .filter((token) => token.role !== undefined)
              .map(({ id }) => (
                <option key={id} value={id}>
                  {id}
                </option>
              ))}
          </select>
        </label>
        <Line
          text={
            as !== ""
              ? `toolway tools --as ${shellWord(as)}`
              : role === ""
                ? "toolway tools"
                : `toolway tools --role ${shellWord(role)}`
          }
        />
      </p>
      {trouble === "" ? null : (
        <p class="trouble" role="alert">
          {trouble}
        </p>
      )}
      {value === undefined ? null : (
        <p>
          {seen.length.toLocaleString()} {seen.length === 1 ? "tool" : "tools"}, about {sum.toLocaleString()} tokens in
          each conversation (an estimate).
          {isSeenAs ? ` ${hiddenWords(tools.length - seen.length)} hidden, by the rules below.` : ""}
          {tools.length > MAX_ROWS ? ` The first ${MAX_ROWS} are shown: find the others by a word.` : ""}
        </p>
      )}
      {value === undefined || past === undefined || wanted !== "" ? null : <NotCalled tools={seen} past={past} />}
      {value !== undefined && tools.length === 0 ? <NoTools isNarrow={value.length > 0} /> : null}
      <Table
        heads={[
          "Tool",
          "Server",
          ...(isSeenAs ? ["Hidden by"] : []),
          { number: "Calls in 24 h" },
          { number: "Failed" },
          { number: "p95" },
          { number: "Result" },
          "Last used",
          { number: "Tokens, about" },
          "Pin",
          "Who may call it",
        ]}
      >
        {tools.slice(0, MAX_ROWS).map((tool) => (
          <Row
            key={`${tool.server}/${tool.name}`}
            tool={tool}
            used={usedBy.get(`${tool.server}/${tool.ownName}`)}
            isSeenAs={isSeenAs}
          />
        ))}
      </Table>
    </>
  );
}

function NoTools({ isNarrow }: { isNarrow: boolean }) {
  if (isNarrow) return <p class="empty">No tool is called so.</p>;
  if (servers.value.length === 0) return <NoServers />;
  return (
    <p class="empty">
      No server has said yet which tools it has. <a href="/servers">How they are</a>
    </p>
  );
}

function narrowedBy(as: string, role: string): string {
  if (as !== "") return `?as=${encodeURIComponent(as)}`;
  return role === "" ? "" : `?role=${encodeURIComponent(role)}`;
}

function Row({ tool, used, isSeenAs }: { tool: ToolInShort; used: ToolSummary | undefined; isSeenAs: boolean }) {
  const [shape, word, kind] = pinWords(tool.pin);
  const isAway = tool.hiddenBy !== undefined;
  return (
    <tr class={isAway ? "away" : undefined}>
      <th scope="row">
        <a href={`/tools/${encodeURIComponent(tool.name)}`}>
          <Foreign text={tool.name} />
        </a>
        <div class="clip small">
          <Foreign text={tool.description} />
        </div>
      </th>
      <td>
        <Foreign text={tool.server} />
      </td>
      {isSeenAs ? (
        <td>
          <Foreign text={tool.hiddenBy ?? ""} />
        </td>
      ) : null}
      <td class="number">{used === undefined || used.day.calls === 0 ? "" : used.day.calls.toLocaleString()}</td>
      <td class="number">{used === undefined || used.day.errors === 0 ? "" : used.day.errors.toLocaleString()}</td>
      <td class="number">{used === undefined ? "" : timeText(used.p95)}</td>
      <td class="number">{used === undefined ? "" : sizeText(Math.round(used.resultBytes / used.calls))}</td>
      <td>
        <Since at={used?.lastUsedAt} />
      </td>
      <td class="number">{tool.tokens.toLocaleString()}</td>
      <td>
        <span class={`state ${kind}`}>
          <span aria-hidden="true">{shape}</span> {word}
        </span>
      </td>
      <td>
        <Foreign text={whoMayCall(tool.roles, tool.quarantined)} />
      </td>
    </tr>
  );
}

function hiddenWords(count: number): string {
  return count === 1 ? "1 other is" : `${count.toLocaleString()} others are`;
}

/** What nobody calls costs every conversation all the same: the lines that hide it, to copy into the config. */
function NotCalled({ tools, past }: { tools: readonly ToolInShort[]; past: ToolsHistoryAnswer }) {
  const unused = unusedTools(tools, past, Date.now());
  if (unused === undefined) return null;
  const { count, tokens, sinceMs, lines } = unused;
  return (
    <details>
      <summary>
        {count.toLocaleString()} {count === 1 ? "tool" : "tools"}, about {tokens.toLocaleString()} tokens, not called
        since {sinceWords(sinceMs, Date.now())}: the lines that hide {count === 1 ? "it" : "them"}
      </summary>
      <p class="acts">
        <span>To be joined with the entries of these servers in the config.</span>
        <Copy label="Copy the lines" text={() => lines} />
      </p>
      <pre>
        <Foreign text={lines} lines />
      </pre>
    </details>
  );
}

export function OneTool({ name }: { name: string }) {
  const { value, trouble } = useLoaded<OneToolAnswer>(`/tools/one?name=${encodeURIComponent(name)}`);
  const tool = value?.tool;
  if (tool === undefined) {
    return (
      <>
        <h1>
          <Foreign text={name} />
        </h1>
        <p class="empty">{trouble}</p>
      </>
    );
  }
  return (
    <>
      <h1>
        <Foreign text={tool.name} />
      </h1>
      <p>
        Of{" "}
        <a href={`/servers/${encodeURIComponent(tool.server)}`}>
          <Foreign text={tool.server} />
        </a>
        , which calls it{" "}
        <code>
          <Foreign text={tool.ownName} />
        </code>
        .
      </p>
      {tool.quarantined === undefined ? null : (
        <p class="trouble">
          <Foreign text={tool.quarantined} />{" "}
          <a class="button" href={`/pins/${encodeURIComponent(tool.server)}`}>
            Look at it
          </a>{" "}
          <Line text={`toolway pins diff ${shellWord(tool.server)}`} />
        </p>
      )}
      <p class="description">
        <Foreign text={tool.description ?? ""} lines />
      </p>
      <dl class="facts">
        <div>
          <dt>Its server says</dt>
          <dd>
            <Foreign text={claimWords(tool.annotations)} />
          </dd>
        </div>
        <div>
          <dt>Pin</dt>
          <dd>
            <PinState pin={value?.pin} />
          </dd>
        </div>
      </dl>
      <p>
        <Line text={`toolway call ${shellWord(tool.name)}`} /> <Line text={`toolway inspect ${shellWord(tool.name)}`} />
      </p>
      <Access tool={tool} />
      {tool.quarantined === undefined ? <Try tool={tool} /> : null}
      <h2>Schema of its arguments</h2>
      <pre>
        <Foreign text={JSON.stringify(tool.inputSchema, undefined, 2) ?? ""} lines />
      </pre>
      {tool.outputSchema === undefined ? null : (
        <>
          <h2>Schema of its result</h2>
          <pre>
            <Foreign text={JSON.stringify(tool.outputSchema, undefined, 2)} lines />
          </pre>
        </>
      )}
    </>
  );
}

function PinState({ pin }: { pin: OneToolAnswer["pin"] }) {
  const [shape, word, kind] = pinWords(pin?.state);
  return (
    <>
      <span class={`state ${kind}`}>
        <span aria-hidden="true">{shape}</span> {word}
      </span>
      {pin?.since === undefined ? null : (
        <>
          {" "}
          <Lasting at={pin.since} />
        </>
      )}
      {pin?.hash === undefined ? null : (
        <>
          , <code>{pin.hash}</code>
        </>
      )}
    </>
  );
}

function Access({ tool }: { tool: Tool }) {
  const path = `/access?server=${encodeURIComponent(tool.server)}&tool=${encodeURIComponent(tool.ownName)}`;
  const { value } = useLoaded<{ access: readonly RoleAccess[] }>(path);
  if (value === undefined) return null;
  return (
    <>
      <h2>Who may call it</h2>
      <ul>
        {value.access.map((one) => (
          <li key={one.role}>
            <Foreign
              // Where the config names no role, there is none that others would be other than.
              text={roleWords(
                value.access.length === 1 ? { ...one, role: "every role" } : one,
                tool.quarantined !== undefined,
              )}
            />
          </li>
        ))}
      </ul>
    </>
  );
}
