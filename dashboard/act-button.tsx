// Buttons that act. What cannot be undone asks once; what fails says so beside it; and the focus stays where the person is.

import { type Signal, useSignal } from "@preact/signals";
import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { call } from "./door.js";
import { messageOf, power } from "./model.js";
import type { Act } from "./needs.js";
import { CopyLine, Foreign, Line } from "./words.js";

const AnyUnderWay = createContext<Signal<boolean> | undefined>(undefined);

/**
 * What can be done about one thing. While one of it is under way, and until what it changed was read again, nothing else can
 * be begun: it would be about what is no more, and its question would go with the row.
 */
export function Acts({ children }: { children: ComponentChildren }) {
  const isAnyUnderWay = useSignal(false);
  return (
    <AnyUnderWay.Provider value={isAnyUnderWay}>
      <span class="acts">{children}</span>
    </AnyUnderWay.Provider>
  );
}

/** Of many each is done by itself, one after the other: what is refused keeps none of the others back, and is told at the end. */
async function done({ method, path, body, bodies }: Act): Promise<unknown> {
  if (bodies === undefined) return call(method, path, body ?? (method === "POST" ? {} : undefined));
  const refused: unknown[] = [];
  for (const one of bodies) await call(method, path, one).catch((error: unknown) => refused.push(error));
  if (refused.length > 0) throw refused[0];
  return undefined;
}

export function ActButton({
  act,
  line,
  isShort = false,
  onDone,
}: {
  act: Act;
  line?: string;
  /** In a row: the line is there to copy, and not to read. */
  isShort?: boolean;
  /** What it returns is waited for: the act is under way until then. */
  onDone?: (answer: unknown) => unknown;
}) {
  const [state, setState] = useState<"idle" | "sure" | "busy">("idle");
  const [trouble, setTrouble] = useState("");
  const question = useRef<HTMLSpanElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const wasAsked = useRef(false);
  const isAnyUnderWay = useContext(AnyUnderWay);
  // What was pressed is gone: whoever has no mouse would begin at the top again. Before anything is painted, because a focus
  // that comes later takes it from where the next key has led meanwhile.
  useLayoutEffect(() => {
    if (state === "sure") question.current?.focus();
    else if (wasAsked.current) button.current?.focus();
    wasAsked.current = state === "sure";
  }, [state]);
  // A question about many is one about these.
  const about = JSON.stringify(act.bodies);
  useEffect(() => setState((now) => (now === "sure" ? "idle" : now)), [about]);
  const shown = line === undefined ? null : isShort ? <CopyLine text={line} /> : <Line text={line} />;
  if (power.value !== "operator") return isShort ? null : shown;
  const isBusy = state === "busy";
  const isOtherUnderWay = !isBusy && isAnyUnderWay?.value === true;
  const setUnderWay = (isUnderWay: boolean) => {
    if (isAnyUnderWay !== undefined) isAnyUnderWay.value = isUnderWay;
  };
  const run = async () => {
    setState("busy");
    setUnderWay(true);
    setTrouble("");
    try {
      const answer = await done(act);
      await onDone?.(answer);
    } catch (error) {
      if (act.bodies !== undefined) await onDone?.(undefined);
      setTrouble(messageOf(error));
    }
    setUnderWay(false);
    setState("idle");
  };
  const begin = () => {
    if (isBusy) return;
    if (act.sure === undefined) void run();
    else setState("sure");
  };
  return (
    <span class="act">
      {state === "sure" ? (
        <span class="sure" role="alertdialog" aria-label={act.label} tabIndex={-1} ref={question}>
          <Foreign text={act.sure ?? ""} />{" "}
          <button type="button" class="danger" disabled={isOtherUnderWay} onClick={() => void run()}>
            {act.label}
          </button>{" "}
          <button type="button" onClick={() => setState("idle")}>
            Keep it
          </button>
        </span>
      ) : (
        // Not `disabled` while it is under way: a button that is has no focus.
        <button type="button" ref={button} disabled={isOtherUnderWay} aria-disabled={isBusy} onClick={begin}>
          {act.label}
        </button>
      )}
      {shown}
      {trouble === "" ? null : (
        <span class="trouble" role="alert">
          {trouble}
        </span>
      )}
    </span>
  );
}
