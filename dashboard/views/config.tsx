// The config as it runs: its text, what is wrong with the last edit, what that changed, and what waits for a restart. Not to
// be edited here: the file is the user's.

import type { ConfigTextAnswer } from "../../src/contracts/control/config.js";
import { ActButton } from "../act-button.js";
import { config, conflicts, gateway, notes, power } from "../model.js";
import { Foreign, Line, Since, useLoaded } from "../words.js";

export function ConfigView() {
  const { path, error, warnings = [], unusedPatterns = [], waitsForRestart = [], lastEdit } = config.value ?? {};
  return (
    <>
      <h1>Config</h1>
      <p>
        {path === undefined ? (
          "There is no file: the built-in demo runs."
        ) : (
          <code>
            <Foreign text={path} />
          </code>
        )}
      </p>
      {error === undefined ? null : (
        <section>
          <h2>The last edit is not applied</h2>
          <p>What ran before goes on.</p>
          <pre class="trouble">
            <Foreign text={error} lines />
          </pre>
        </section>
      )}
      <p class="acts">
        <ActButton act={{ label: "Read it again", method: "POST", path: "/reload" }} line="toolway reload" />
        <Line text="toolway config check" />
      </p>
      {lastEdit === undefined ? null : (
        <section>
          <h2>
            The last edit, <Since at={lastEdit.at} />, changed
          </h2>
          <List lines={lastEdit.changes.length === 0 ? ["nothing that is in use"] : lastEdit.changes} />
        </section>
      )}
      <Told title="Waits for a restart" lines={waitsForRestart} />
      <Told title="Warnings" lines={warnings} />
      <Told title="Rules that fit no tool" lines={unusedPatterns} />
      <Told title="Names that two servers claim" lines={conflicts.value ?? []} />
      <Told title="Notes" lines={notes.value ?? []} />
      {path === undefined || power.value === "operator" ? null : (
        <p class="empty">Its text is shown to who may act: commands and paths stand in it.</p>
      )}
      {path === undefined || power.value !== "operator" ? null : (
        // Loaded again when something else is read, or is wrong.
        <Text key={`${lastEdit?.at ?? ""}/${error ?? ""}`} />
      )}
      <p>
        Toolway {gateway.value?.toolway}, process {gateway.value?.pid}, agents connect to{" "}
        <code>{gateway.value?.endpoint ?? "stdio"}</code>.
      </p>
    </>
  );
}

function Told({ title, lines }: { title: string; lines: readonly string[] }) {
  if (lines.length === 0) return null;
  return (
    <section>
      <h2>{title}</h2>
      <List lines={lines} />
    </section>
  );
}

function List({ lines }: { lines: readonly string[] }) {
  return (
    <ul>
      {lines.map((line) => (
        <li key={line}>
          <Foreign text={line} />
        </li>
      ))}
    </ul>
  );
}

/** With its lines numbered, and what is said of a line under it. */
function Text() {
  const { value } = useLoaded<ConfigTextAnswer>("/config");
  if (value === undefined) return null;
  const { text, remarks, edit } = value;
  return (
    <>
      {edit === undefined || edit.lines.length === 0 ? null : (
        <section>
          <h2>Where the edit is wrong</h2>
          {edit.isMasked ? (
            <p class="empty">Values are left out: of a text that is no JSON, nobody can say which of them are keys.</p>
          ) : null}
          <Lines lines={edit.lines} remarks={edit.mistakes} />
        </section>
      )}
      <section>
        <h2>As it runs</h2>
        <p class="empty">Secrets are shown by the names of their variables, or hidden. It is edited in its file.</p>
        {text === undefined ? (
          <p class="empty">It is too long to be shown here.</p>
        ) : (
          <Lines lines={text.split("\n").map((line, i) => ({ line: i + 1, text: line }))} remarks={remarks} />
        )}
      </section>
    </>
  );
}

function Lines({
  lines,
  remarks,
}: {
  lines: readonly { readonly line: number; readonly text: string }[];
  remarks: ConfigTextAnswer["remarks"];
}) {
  return (
    <ol class="source">
      {lines.map(({ line, text }) => {
        const said = remarks.filter((remark) => remark.line === line);
        return (
          <li key={line} value={line} class={said.length > 0 ? "wrong" : undefined}>
            <code>
              <Foreign text={text} lines />
            </code>
            {said.map((remark) => (
              <div key={remark.text} class="trouble">
                ▲ <Foreign text={remark.text} />
              </div>
            ))}
          </li>
        );
      })}
    </ol>
  );
}
