// The tools of all servers in one table, and one tool with its definition.

import type { ToolsHistoryAnswer } from "../../src/contracts/control/history.js";
import type { ToolInShort } from "../../src/contracts/control/tools.js";
import { shellWord } from "../../src/runtime/words/shell-word.js";
import { timeText } from "../call-words.js";
import { go, query, setQuery } from "../router.js";
import { Try } from "../try/try.js";
import { Foreign, Line, Since, Table, useLines, useLoaded } from "../words.js";

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
  const wanted = (query.value.get("find") ?? "").toLowerCase();
  const path = as === "" ? "/tools/lines" : `/tools/lines?as=${encodeURIComponent(as)}`;
  const { value, trouble } = useLines<ToolInShort>(path);
  const tokens = useLoaded<{ tokens: readonly { id: string; role?: string }[] }>("/tokens").value?.tokens ?? [];
  const past = useLoaded<ToolsHistoryAnswer>("/history/tools").value?.tools ?? [];
  const usedBy = new Map(past.map((one) => [`${one.server}/${one.tool}`, one]));
  const tools = (value ?? []).filter(
    ({ name, server, description }) =>
      wanted === "" || [name, server, description].some((text) => text.toLowerCase().includes(wanted)),
  );
  const seen = tools.filter(({ hiddenBy }) => hiddenBy === undefined);
  const sum = seen.reduce((all, tool) => all + tool.tokens, 0);
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
            <option value="">the operator</option>
            {tokens
              .filter(({ role }) => role !== undefined)
              .map(({ id }) => (
                <option key={id} value={id}>
                  {id}
                </option>
              ))}
          </select>
        </label>
        <Line text={as === "" ? "toolway tools" : `toolway tools --as ${shellWord(as)}`} />
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
          {tools.length > MAX_ROWS ? ` The first ${MAX_ROWS} are shown: find the others by a word.` : ""}
        </p>
      )}
      {value === undefined || wanted !== "" ? null : <Unused tools={seen} usedBy={usedBy} />}
      <Table
        heads={[
          "Tool",
          "Server",
          "What it does",
          { number: "Tokens, about" },
          { number: "Calls" },
          { number: "Failed" },
          { number: "p95" },
          "Last used",
          ...(as === "" ? [] : ["Hidden by"]),
        ]}
      >
        {tools.slice(0, MAX_ROWS).map((tool) => {
          const used = usedBy.get(`${tool.server}/${tool.ownName}`);
          return (
            <tr key={`${tool.server}/${tool.name}`}>
              <th scope="row">
                <a href={`/tools/${encodeURIComponent(tool.name)}`}>
                  <Foreign text={tool.name} />
                </a>
                {tool.quarantined === undefined ? null : <span class="state bad"> ▲ quarantined</span>}
              </th>
              <td>
                <Foreign text={tool.server} />
              </td>
              <td>
                <div class="clip">
                  <Foreign text={tool.description} />
                </div>
              </td>
              <td class="number">{tool.tokens.toLocaleString()}</td>
              <td class="number">{used?.calls.toLocaleString() ?? ""}</td>
              <td class="number">{used === undefined || used.errors === 0 ? "" : used.errors.toLocaleString()}</td>
              <td class="number">{used === undefined ? "" : timeText(used.p95)}</td>
              <td>
                <Since at={used?.lastUsedAt} />
              </td>
              {as === "" ? null : (
                <td>
                  <Foreign text={tool.hiddenBy ?? ""} />
                </td>
              )}
            </tr>
          );
        })}
      </Table>
    </>
  );
}

/** What nobody has called costs every conversation all the same: the lines that hide it, to copy into the config. */
function Unused({
  tools,
  usedBy,
}: {
  tools: readonly ToolInShort[];
  usedBy: ReadonlyMap<string, { readonly calls: number }>;
}) {
  // Where nothing was called yet, nothing is known.
  if (usedBy.size === 0) return null;
  const unused = tools.filter(({ server, ownName }) => !usedBy.has(`${server}/${ownName}`));
  if (unused.length === 0) return null;
  const sum = unused.reduce((all, { tokens }) => all + tokens, 0);
  const byServer = new Map<string, string[]>();
  for (const { server, ownName } of unused) byServer.set(server, [...(byServer.get(server) ?? []), ownName]);
  const hide = [...byServer].map(([server, names]) => [
    server,
    { tools: Object.fromEntries(names.map((name) => [name, { hide: true }])) },
  ]);
  return (
    <details>
      <summary>
        {unused.length.toLocaleString()} tools, about {sum.toLocaleString()} tokens, were never called: the lines that
        hide them
      </summary>
      <p>Into the entries of these servers in the config:</p>
      <pre>
        <Foreign text={JSON.stringify(Object.fromEntries(hide), undefined, 2)} lines />
      </pre>
    </details>
  );
}

export function OneTool({ name }: { name: string }) {
  const { value, trouble } = useLoaded<{ tool: Tool }>(`/tools/one?name=${encodeURIComponent(name)}`);
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
          <button type="button" onClick={() => go(`/pins/${encodeURIComponent(tool.server)}`)}>
            Look at it
          </button>
        </p>
      )}
      <p class="description">
        <Foreign text={tool.description ?? ""} lines />
      </p>
      {tool.annotations?.["readOnlyHint"] === true ? <p>Its server says that it only reads.</p> : null}
      <p>
        <Line text={`toolway call ${shellWord(tool.name)}`} /> <Line text={`toolway inspect ${shellWord(tool.name)}`} />
      </p>
      <Access tool={tool} />
      {tool.quarantined === undefined ? <Try tool={tool} /> : null}
      <h2>Parameters</h2>
      <pre>
        <Foreign text={JSON.stringify(tool.inputSchema, undefined, 2) ?? ""} lines />
      </pre>
      {tool.outputSchema === undefined ? null : (
        <>
          <h2>Result</h2>
          <pre>
            <Foreign text={JSON.stringify(tool.outputSchema, undefined, 2)} lines />
          </pre>
        </>
      )}
    </>
  );
}

interface RoleAccess {
  readonly role: string;
  readonly allowed: boolean;
  readonly rule?: string;
}

function Access({ tool }: { tool: Tool }) {
  const path = `/access?server=${encodeURIComponent(tool.server)}&tool=${encodeURIComponent(tool.ownName)}`;
  const { value } = useLoaded<{ access: readonly RoleAccess[] }>(path);
  if (value === undefined) return null;
  return (
    <>
      <h2>Who may call it</h2>
      <ul>
        {value.access.map(({ role, allowed, rule }) => (
          <li key={role}>
            <Foreign text={`${role}: ${allowed ? "yes" : `no, ${rule ?? ""}`}`} />
          </li>
        ))}
      </ul>
    </>
  );
}
