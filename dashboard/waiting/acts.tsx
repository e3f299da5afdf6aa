// What can be done about one kept write.

import type { OutboxEntry } from "../../src/contracts/outbox.js";
import { shellWord } from "../../src/runtime/words/shell-word.js";
import { ActButton, Acts } from "../act-button.js";

/** Others in each state: a question that was open goes with the state that it was about. */
export function WriteActs({
  write: { id, state },
  isShort = false,
  onDone,
}: {
  write: OutboxEntry;
  isShort?: boolean;
  onDone: () => Promise<unknown>;
}) {
  const route = `/outbox/writes/${encodeURIComponent(id)}`;
  const line = (verb: string, option = "") => `toolway outbox ${verb} ${shellWord(id)}${option}`;
  if (state === "unknown") {
    const resolve = (as: "done" | "failed" | "again", label: string, sure: string) => (
      <ActButton
        act={{ label, method: "POST", path: `${route}/resolve`, body: { as }, sure }}
        line={line("resolve", ` --${as}`)}
        isShort={isShort}
        onDone={onDone}
      />
    );
    return (
      <Acts key={state}>
        {resolve("done", "It was done", "Its agent is told that it was done.")}
        {resolve("failed", "It was not", "Its agent is told that it failed.")}
        {resolve("again", "Send it again", "Where it was done, it is done twice.")}
      </Acts>
    );
  }
  const isOver = state === "done" || state === "cancelled";
  return (
    <Acts key={state}>
      {state === "failed" || state === "expired" ? (
        <ActButton
          act={{ label: "Retry", method: "POST", path: `${route}/retry` }}
          line={line("retry")}
          isShort={isShort}
          onDone={onDone}
        />
      ) : null}
      {state === "sending" || isOver ? null : (
        <ActButton
          act={{
            label: "Drop",
            method: "POST",
            path: `${route}/drop`,
            sure:
              state === "queued" ? "It is never sent, and its agent is told so." : "What is known of it is forgotten.",
          }}
          line={line("drop")}
          isShort={isShort}
          onDone={onDone}
        />
      )}
    </Acts>
  );
}
