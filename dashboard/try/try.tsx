// To try a tool: its arguments as a form and as JSON, the call with its progress and questions, and what came of it.

import { useEffect, useRef, useState } from "preact/hooks";
import type { TryLine } from "../../src/contracts/control/tries.js";
import { isObject } from "../../src/runtime/words/json-object.js";
import { shellWord } from "../../src/runtime/words/shell-word.js";
import { call, stream } from "../door.js";
import { messageOf, power } from "../model.js";
import { Foreign, Line } from "../words.js";
import { takeFilled } from "./filled.js";
import { FormField, JsonInput } from "./form.js";
import { Result } from "./result.js";
import { type Schema, skeletonOf } from "./schema-form.js";

export interface TriedTool {
  readonly name: string;
  readonly server: string;
  readonly inputSchema?: unknown;
  readonly annotations?: Readonly<Record<string, unknown>>;
}

type Question = Extract<TryLine, { question: unknown }>["question"];

type State =
  | { readonly kind: "idle" }
  | {
      readonly kind: "running";
      readonly id: number;
      readonly progress: string;
      readonly question?: Question | undefined;
    }
  | { readonly kind: "done"; readonly result: unknown }
  | { readonly kind: "failed"; readonly why: string };

export function Try({ tool }: { tool: TriedTool }) {
  const root: Schema = isObject(tool.inputSchema) ? tool.inputSchema : {};
  const [value, setValue] = useState<unknown>(() => takeFilled(tool.name) ?? skeletonOf(root, root) ?? {});
  const [state, setState] = useState<State>({ kind: "idle" });
  const [isSure, setSure] = useState(false);
  const cancel = useRef<AbortController | undefined>(undefined);
  // Who leaves the view takes the call back.
  useEffect(() => () => cancel.current?.abort(), []);
  const isReadOnly = tool.annotations?.["readOnlyHint"] === true;
  const line = `toolway call ${shellWord(tool.name)} ${shellWord(JSON.stringify(value))}`;
  if (power.value !== "operator") {
    return (
      <p class="empty">
        Who looks by this link tries nothing. <Line text={line} />
      </p>
    );
  }
  const run = async () => {
    const taken = new AbortController();
    cancel.current = taken;
    setSure(false);
    setState({ kind: "running", id: 0, progress: "" });
    try {
      const body = { server: tool.server, tool: tool.name, arguments: value };
      for await (const said of stream("/try", body, taken.signal)) setState((now) => after(now, said as TryLine));
      setState((now) => (now.kind === "running" ? { kind: "failed", why: "The gateway ended the call." } : now));
    } catch (error) {
      setState({ kind: "failed", why: taken.signal.aborted ? "You took it back." : messageOf(error) });
    }
  };
  const isRunning = state.kind === "running";
  return (
    <section aria-labelledby="try">
      <h2 id="try">Try it</h2>
      <p>The call is yours, as the operator: rules of roles do not hide it, pins, guard and budgets count.</p>
      <div class="two">
        <FormField root={root} schema={root} value={value} name="" depth={0} onChange={setValue} />
        <div class="field">
          <span>The same as JSON</span>
          <JsonInput value={value} rows={12} label="The arguments as JSON" onChange={setValue} />
        </div>
      </div>
      {isReadOnly || !isSure ? null : (
        <p class="need" role="alert">
          Nothing says that this tool only reads: it may change something, and that is not undone.{" "}
          <button type="button" class="danger" onClick={() => void run()}>
            Call it
          </button>{" "}
          <button type="button" onClick={() => setSure(false)}>
            Leave it
          </button>
        </p>
      )}
      <p class="acts">
        <button
          type="button"
          disabled={isRunning || !isObject(value)}
          onClick={() => (isReadOnly ? void run() : setSure(true))}
        >
          Try
        </button>
        {isRunning ? (
          <button type="button" onClick={() => cancel.current?.abort()}>
            Cancel
          </button>
        ) : null}
        <Line text={line} />
      </p>
      {isObject(value) ? null : <p class="trouble">Arguments are an object.</p>}
      <div role="status">
        {isRunning ? <p class="late">Under way… {<Foreign text={state.progress} />}</p> : null}
        {state.kind === "failed" ? (
          <p class="trouble">
            <Foreign text={state.why} />
          </p>
        ) : null}
      </div>
      {isRunning && state.question !== undefined ? (
        <Asked
          key={String(state.question.id)}
          id={state.id}
          question={state.question}
          onDone={() => setState((now) => (now.kind === "running" ? { ...now, question: undefined } : now))}
        />
      ) : null}
      {state.kind === "done" ? <Result value={state.result} name={tool.name} /> : null}
    </section>
  );
}

function after(now: State, said: TryLine): State {
  if ("result" in said) return { kind: "done", result: said.result };
  if ("error" in said) return { kind: "failed", why: `${said.error.message} (${said.error.code})` };
  if (now.kind !== "running") return now;
  if ("id" in said) return { ...now, id: said.id };
  if ("question" in said) return { ...now, question: said.question };
  const { progress, total, message = "" } = said.progress;
  return { ...now, progress: `${progress}${total === undefined ? "" : ` of ${total}`} ${message}` };
}

/** What the server wants to know before it goes on. */
function Asked({ id, question, onDone }: { id: number; question: Question; onDone: () => void }) {
  const root: Schema = isObject(question.schema) ? question.schema : {};
  const [value, setValue] = useState<unknown>(() => skeletonOf(root, root) ?? {});
  const [trouble, setTrouble] = useState("");
  const answer = async (action: "accept" | "decline") => {
    try {
      await call("POST", "/try/answer", { id, question: question.id, action, content: value });
      onDone();
    } catch (error) {
      setTrouble(messageOf(error));
    }
  };
  return (
    <div class="need">
      <p>
        The server asks: <Foreign text={question.message} lines />
      </p>
      <FormField root={root} schema={root} value={value} name="" depth={0} onChange={setValue} />
      <p class="acts">
        <button type="button" onClick={() => void answer("accept")}>
          Answer
        </button>
        <button type="button" onClick={() => void answer("decline")}>
          Decline
        </button>
        {trouble === "" ? null : <span class="trouble">{trouble}</span>}
      </p>
    </div>
  );
}
