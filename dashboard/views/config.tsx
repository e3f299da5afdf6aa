// The config as it runs: where it is, what is wrong with the last edit, and what waits for a restart. Not to be edited
// here: the file is the user's.

import { config, conflicts, gateway, notes } from "../model.js";
import { ActButton, Foreign, Line } from "../words.js";

export function ConfigView() {
  const { path, error, warnings = [], unusedPatterns = [], waitsForRestart = [] } = config.value ?? {};
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
          <pre class="trouble">
            <Foreign text={error} lines />
          </pre>
        </section>
      )}
      <p class="acts">
        <ActButton act={{ label: "Read it again", method: "POST", path: "/reload" }} line="toolway reload" />
        <Line text="toolway config check" />
      </p>
      <Told title="Warnings" lines={warnings} />
      <Told title="Patterns that fit no tool" lines={unusedPatterns} />
      <Told title="Waits for a restart" lines={waitsForRestart} />
      <Told title="Names that two servers claim" lines={conflicts.value ?? []} />
      <Told title="Notes" lines={notes.value ?? []} />
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
      <ul>
        {lines.map((line) => (
          <li key={line}>
            <Foreign text={line} />
          </li>
        ))}
      </ul>
    </section>
  );
}
