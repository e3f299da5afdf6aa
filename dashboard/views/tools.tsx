// The tools of all servers in one table, and one tool with its definition.

import { shellWord } from "../../src/runtime/words/shell-word.js";
import { go, query, setQuery } from "../router.js";
import { Foreign, Line, Table, useLoaded } from "../words.js";

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

/** JSON of a definition, as models read it: four characters are about a token. */
function tokensOf({ name, description = "", inputSchema }: Tool): number {
  return Math.ceil((name.length + description.length + JSON.stringify(inputSchema ?? {}).length) / 4);
}

export function Tools() {
  const as = query.value.get("as") ?? "";
  const wanted = (query.value.get("find") ?? "").toLowerCase();
  const { value, trouble } = useLoaded<{ tools: readonly Tool[] }>(
    as === "" ? "/tools" : `/tools?as=${encodeURIComponent(as)}`,
  );
  const tokens = useLoaded<{ tokens: readonly { id: string }[] }>("/tokens").value?.tokens ?? [];
  const tools = (value?.tools ?? []).filter(
    ({ name, server, description = "" }) =>
      wanted === "" || [name, server, description].some((text) => text.toLowerCase().includes(wanted)),
  );
  const sum = tools.reduce((all, tool) => all + tokensOf(tool), 0);
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
            {tokens.map(({ id }) => (
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
          {tools.length} {tools.length === 1 ? "tool" : "tools"}, about {sum.toLocaleString()} tokens in each
          conversation (an estimate).
        </p>
      )}
      <Table heads={["Tool", "Server", "What it does", { number: "Tokens, about" }]}>
        {tools.map((tool) => (
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
                <Foreign text={tool.description ?? ""} />
              </div>
            </td>
            <td class="number">{tokensOf(tool).toLocaleString()}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}

export function OneTool({ name }: { name: string }) {
  const { value, trouble } = useLoaded<{ tools: readonly Tool[] }>("/tools");
  const tool = value?.tools.find((one) => one.name === name);
  if (tool === undefined) {
    return (
      <>
        <h1>
          <Foreign text={name} />
        </h1>
        <p class="empty">{value === undefined ? trouble : "There is no such tool."}</p>
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
