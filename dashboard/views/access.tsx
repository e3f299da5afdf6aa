// Who has access: agents that are connected, tokens, runs, roles with what each sees, what was refused, and executors.

import { useState } from "preact/hooks";
import type { AgentsAnswer } from "../../src/contracts/control/agents.js";
import type { RolesAnswer } from "../../src/contracts/control/tools.js";
import { shellWord } from "../../src/runtime/words/shell-word.js";
import { ActButton, Acts } from "../act-button.js";
import { agentRows } from "../agents.js";
import { RULES } from "../call-words.js";
import { executors, gateway, power } from "../model.js";
import { Ends, Foreign, Lasting, Line, Since, Table, useLoaded, useLooked } from "../words.js";

interface Token {
  readonly id: string;
  /** Undefined for a token of this door. */
  readonly role?: string;
  /** What a token of this door opens. */
  readonly admin?: string;
  readonly source?: string;
  readonly createdAt?: string;
  readonly expiresAt?: string;
}

interface Run {
  readonly id: string;
  readonly role: string;
  readonly client?: string;
  readonly startedAt?: string;
}

export function Access() {
  const tokens = useLoaded<{ tokens: readonly Token[] }>("/tokens");
  const runs = useLoaded<{ runs: readonly Run[] }>("/runs");
  const agents = useLooked<AgentsAnswer>("/agents", LOOK_MS);
  const roles = useLoaded<RolesAnswer>("/roles").value?.roles ?? [];
  const [shown, setShown] = useState<{ readonly id: string; readonly token: string }>();
  return (
    <>
      <h1>Access</h1>
      {agents === undefined ? null : <Connected answer={agents} />}
      <section>
        <h2>Tokens</h2>
        {shown === undefined ? null : (
          <p class="secret">
            The token of <Foreign text={shown.id} />, which is shown this once: <Line text={shown.token} />
          </p>
        )}
        <Trouble text={tokens.trouble} />
        {tokens.value?.tokens.length === 0 ? <p class="empty">There is no token yet.</p> : null}
        <Table heads={["Id", "Role", "Made", "Ends", "What to do"]}>
          {(tokens.value?.tokens ?? []).map(({ id, role, admin, createdAt, expiresAt, source }) => (
            <tr key={id}>
              <th scope="row">
                <Foreign text={id} />
              </th>
              <td>
                <Foreign text={role ?? `this door: ${admin ?? ""}`} />
              </td>
              <td>{createdAt === undefined ? (source ?? "") : <Since at={createdAt} />}</td>
              <td>{expiresAt === undefined ? "never" : <Ends at={expiresAt} />}</td>
              <td>
                <Acts>
                  {role === undefined || source !== "created" ? null : (
                    <ActButton
                      act={{
                        label: "Rotate",
                        method: "POST",
                        path: `/tokens/${encodeURIComponent(id)}/rotate`,
                        sure: "The old secret is good for 10 minutes more.",
                      }}
                      line={`toolway token rotate ${shellWord(id)}`}
                      isShort
                      onDone={(answer) => {
                        setShown({ id, token: (answer as { token: string }).token });
                        return tokens.again();
                      }}
                    />
                  )}
                  {source !== "created" ? null : (
                    <ActButton
                      act={{
                        label: "Revoke",
                        method: "DELETE",
                        path: `/tokens/${encodeURIComponent(id)}`,
                        sure: "Whoever uses it is cut off within 5 seconds.",
                      }}
                      line={`toolway token revoke ${shellWord(id)}`}
                      isShort
                      onDone={tokens.again}
                    />
                  )}
                </Acts>
              </td>
            </tr>
          ))}
        </Table>
        {power.value === "operator" ? <NewToken roles={roles} onMade={setShown} again={tokens.again} /> : null}
      </section>
      <section>
        <h2>Runs</h2>
        <Trouble text={runs.trouble} />
        {runs.value?.runs.length === 0 ? (
          <p class="empty">
            No agent runs by Toolway. <Line text="toolway run claude" />
          </p>
        ) : null}
        {runs.value === undefined || runs.value.runs.length === 0 ? null : (
          <Table heads={["Agent", "Id", "Role", "Started"]}>
            {runs.value.runs.map(({ id, role, client, startedAt }) => (
              <tr key={id}>
                <th scope="row">
                  <Foreign text={client ?? "a program"} />
                </th>
                <td>
                  <Foreign text={id} />
                </td>
                <td>
                  <Foreign text={role} />
                </td>
                <td>
                  <Since at={startedAt} />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </section>
      {roles.length === 0 ? null : <Roles roles={roles} />}
      {agents === undefined ? null : <Refused counts={agents.refused} />}
      {executors.value === undefined || executors.value.length === 0 ? null : (
        <section>
          <h2>Executors</h2>
          <ul>
            {executors.value.map(({ name, ready, problem, members }) => (
              <li key={name}>
                <Foreign text={name} />{" "}
                <span class={`state ${ready ? "good" : "bad"}`}>
                  <span aria-hidden="true">{ready ? "●" : "▲"}</span> {ready ? "ready" : "out of reach"}
                </span>
                {problem === undefined ? `, ${members.length} connected` : ": "}
                <Foreign text={problem ?? ""} />
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function Trouble({ text }: { text: string }) {
  return text === "" ? null : (
    <p class="trouble" role="alert">
      {text}
    </p>
  );
}

/** Often enough to see who comes and goes. */
const LOOK_MS = 5_000;

function Connected({ answer: { agents, total } }: { answer: AgentsAnswer }) {
  return (
    <section>
      <h2>Connected now</h2>
      {total === 0 ? (
        <p class="empty">
          No agent is connected. <Line text="toolway run claude" />
        </p>
      ) : (
        <Table
          heads={[
            ...["Agent", "As", "Role", "Speaks", "To"],
            ...[{ number: "Sessions" }, { number: "Calls" }, { number: "Failed" }],
            "Last call",
          ]}
        >
          {agentRows(agents).map(({ agent, sessions }, i) => (
            <tr key={`${agent.principal}/${agent.client}/${i}`}>
              <th scope="row">
                <Foreign text={agent.client ?? "(no name)"} />
              </th>
              <td>
                <a href={`/calls?principal=${encodeURIComponent(agent.principal)}`}>
                  <Foreign text={agent.principal} />
                </a>
              </td>
              <td>
                <Foreign text={agent.role} />
              </td>
              <td>
                {agent.era}, <Foreign text={agent.version} />
              </td>
              <td>
                <Foreign text={agent.server ?? "all servers"} />
              </td>
              <td class="number">{sessions.toLocaleString()}</td>
              <td class="number">{agent.calls.toLocaleString()}</td>
              <td class="number">{agent.failed === 0 ? "" : agent.failed.toLocaleString()}</td>
              <td>
                <Since at={agent.lastCallAt} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {total > agents.length ? <p class="empty">And {(total - agents.length).toLocaleString()} more.</p> : null}
    </section>
  );
}

function Roles({ roles }: { roles: RolesAnswer["roles"] }) {
  return (
    <section>
      <h2>Roles</h2>
      <Table heads={["Role", { number: "Tools it may call" }, { number: "Tokens, about" }, "Which"]}>
        {roles.map(({ role, tools, of, tokens }) => (
          <tr key={role}>
            <th scope="row">
              <Foreign text={role === "*" ? (roles.length === 1 ? "every role" : "every other role") : role} />
            </th>
            <td class="number">
              {tools.toLocaleString()} of {of.toLocaleString()}
            </td>
            <td class="number">{tokens.toLocaleString()}</td>
            <td>
              <a href={`/tools?role=${encodeURIComponent(role)}`}>
                What <Foreign text={role === "*" ? "they see" : `${role} sees`} />
              </a>
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function Refused({ counts }: { counts: AgentsAnswer["refused"] }) {
  const rows = Object.entries(counts).sort(([, a], [, b]) => b - a);
  return (
    <section>
      <h2>Refused since the start</h2>
      {rows.length === 0 ? (
        <p class="empty">
          Nothing was refused
          {gateway.value === undefined ? null : (
            <>
              {" "}
              <Lasting at={gateway.value.startedAt} words="in the last" />
            </>
          )}
          .
        </p>
      ) : (
        <Table heads={["Rule", { number: "Times" }, "Why"]}>
          {rows.map(([rule, count]) => (
            <tr key={rule}>
              <th scope="row">{rule}</th>
              <td class="number">{count.toLocaleString()}</td>
              <td>{RULES[rule] ?? ""}</td>
            </tr>
          ))}
        </Table>
      )}
      <p>
        <a href="/calls?failed=true">The calls that failed</a>
      </p>
    </section>
  );
}

function NewToken({
  roles,
  onMade,
  again,
}: {
  roles: RolesAnswer["roles"];
  onMade: (made: { id: string; token: string }) => void;
  again: () => Promise<unknown>;
}) {
  const [id, setId] = useState("");
  const [role, setRole] = useState("default");
  return (
    <p class="filters">
      <label>
        Id <input value={id} onInput={({ currentTarget }) => setId(currentTarget.value)} />
      </label>
      <label>
        Role <input list="roles" value={role} onInput={({ currentTarget }) => setRole(currentTarget.value)} />
      </label>
      <datalist id="roles">
        {roles
          .filter((one) => one.role !== "*")
          .map((one) => (
            <option key={one.role} value={one.role} />
          ))}
      </datalist>
      <ActButton
        act={{ label: "Create token", method: "POST", path: "/tokens", body: { id, role } }}
        line={`toolway token create --id ${id === "" ? "ID" : shellWord(id)} --role ${shellWord(role)}`}
        onDone={(answer) => {
          onMade({ id, token: (answer as { token: string }).token });
          setId("");
          return again();
        }}
      />
    </p>
  );
}
