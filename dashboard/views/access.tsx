// Who has access: tokens, runs and executors.

import { useState } from "preact/hooks";
import { shellWord } from "../../src/runtime/words/shell-word.js";
import { executors, gateway, power } from "../model.js";
import { ActButton, Foreign, Line, Since, Table, useLoaded } from "../words.js";

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
  const [shown, setShown] = useState<{ readonly id: string; readonly token: string }>();
  const { sessions = 0, presences = 0 } = gateway.value ?? {};
  return (
    <>
      <h1>Access</h1>
      <p>
        {sessions} {sessions === 1 ? "session" : "sessions"} of agents of the legacy era, and {presences}{" "}
        {presences === 1 ? "agent" : "agents"} of the modern one that called lately.
      </p>
      <section>
        <h2>Tokens</h2>
        {shown === undefined ? null : (
          <p class="secret">
            The token of <Foreign text={shown.id} />, which is shown this once: <Line text={shown.token} />
          </p>
        )}
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
              <td>{expiresAt === undefined ? "never" : new Date(expiresAt).toLocaleString()}</td>
              <td>
                <span class="acts">
                  {role === undefined || source !== "created" ? null : (
                    <ActButton
                      act={{
                        label: "Rotate",
                        method: "POST",
                        path: `/tokens/${encodeURIComponent(id)}/rotate`,
                        sure: "The old secret is good for 10 minutes more.",
                      }}
                      onDone={(answer) => {
                        setShown({ id, token: (answer as { token: string }).token });
                        tokens.again();
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
                      onDone={tokens.again}
                    />
                  )}
                </span>
              </td>
            </tr>
          ))}
        </Table>
        {power.value === "operator" ? <NewToken onMade={setShown} again={tokens.again} /> : null}
      </section>
      <section>
        <h2>Runs</h2>
        {runs.value?.runs.length === 0 ? (
          <p class="empty">
            No agent runs by Toolway. <Line text="toolway run claude" />
          </p>
        ) : null}
        <ul>
          {(runs.value?.runs ?? []).map(({ id, role, client, startedAt }) => (
            <li key={id}>
              <Foreign text={`${client ?? "a program"} as ${id}, role ${role}`} />, started <Since at={startedAt} />
            </li>
          ))}
        </ul>
      </section>
      {executors.value === undefined || executors.value.length === 0 ? null : (
        <section>
          <h2>Executors</h2>
          <ul>
            {executors.value.map((executor) => (
              <li key={executor.name}>
                <Foreign text={executor.name} />
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function NewToken({ onMade, again }: { onMade: (made: { id: string; token: string }) => void; again: () => void }) {
  const [id, setId] = useState("");
  const [role, setRole] = useState("default");
  return (
    <p class="filters">
      <label>
        Id <input value={id} onInput={({ currentTarget }) => setId(currentTarget.value)} />
      </label>
      <label>
        Role <input value={role} onInput={({ currentTarget }) => setRole(currentTarget.value)} />
      </label>
      <ActButton
        act={{ label: "Create token", method: "POST", path: "/tokens", body: { id, role } }}
        line={`toolway token create --id ${id === "" ? "ID" : shellWord(id)} --role ${shellWord(role)}`}
        onDone={(answer) => {
          onMade({ id, token: (answer as { token: string }).token });
          setId("");
          again();
        }}
      />
    </p>
  );
}
