// Small pieces of every view: times, lines to type, buttons that act, and text that a server wrote.

import { computed, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call, lines } from "./door.js";
import { piecesOf } from "./foreign.js";
import { link, messageOf, power } from "./model.js";
import type { Act } from "./needs.js";

const now = signal(Date.now());
setInterval(() => {
  now.value = Date.now();
}, 1_000);

/** By `t`: exact times in place of "3 min ago". */
export const isExact = signal(false);

const UNITS: readonly [ms: number, name: string][] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
];

export function ageText(ms: number): string {
  const [unit, name] = UNITS.find(([size]) => ms >= size) ?? [1_000, "s"];
  return `${Math.max(0, Math.floor(ms / unit))} ${name}`;
}

/** How long ago, and exactly when on hover, focus and by `t`. */
export function Since({ at, suffix = " ago" }: { at: string | number | undefined; suffix?: string }) {
  if (at === undefined) return null;
  const date = new Date(at);
  const text = computed(() =>
    isExact.value ? date.toLocaleString() : `${ageText(now.value - date.getTime())}${suffix}`,
  );
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {text}
    </time>
  );
}

/** By a clock on the wall. */
export function ClockTime({ at }: { at: number }) {
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}
    </time>
  );
}

/** Until when, for a countdown. */
export function Until({ at }: { at: number }) {
  const text = computed(() => ageText(at - now.value));
  return <span>{text}</span>;
}

/** A line for a terminal, with a button that copies it. Names in it are words of a shell: by `shellWord`. */
export function Line({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <span class="line">
      <code>{text}</code>
      <button type="button" class="quiet" aria-label={`Copy ${text}`} onClick={() => void copy()}>
        {isCopied ? "copied" : "copy"}
      </button>
    </span>
  );
}

/** The same where there is no room for the line: it is seen on hover and focus. */
export function ShortLine({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <button type="button" class="quiet" title={text} aria-label={`Copy ${text}`} onClick={() => void copy()}>
      {isCopied ? "copied" : "copy"}
    </button>
  );
}

/** A button that copies a text which is made when it is asked for. */
export function Copy({ label, text }: { label: string; text: () => string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text());
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <button type="button" onClick={() => void copy()}>
      {isCopied ? "copied" : label}
    </button>
  );
}

/** A table that scrolls by itself where the window is narrow. Columns of numbers are on the right. */
export function Table({
  heads,
  children,
}: {
  heads: readonly (string | { number: string })[];
  children: ComponentChildren;
}) {
  return (
    <div class="wide">
      <table>
        <thead>
          <tr>
            {heads.map((head) =>
              typeof head === "string" ? (
                <th key={head} scope="col">
                  {head}
                </th>
              ) : (
                <th key={head.number} scope="col" class="number">
                  {head.number}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** A number with its name, and where more of it is. */
export function Figure({
  name,
  value,
  href,
  children,
}: {
  name: string;
  value: string;
  href?: string | undefined;
  children?: ComponentChildren;
}) {
  return (
    <div>
      <dd>
        {value} {children}
      </dd>
      <dt>{href === undefined ? name : <a href={href}>{name}</a>}</dt>
    </div>
  );
}

/** A button that acts. What cannot be undone asks once; what fails says so beside it. */
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
  onDone?: (answer: unknown) => void;
}) {
  const [state, setState] = useState<"idle" | "sure" | "busy">("idle");
  const [trouble, setTrouble] = useState("");
  const question = useRef<HTMLSpanElement>(null);
  // The button that was pressed is gone: whoever has no mouse would begin at the top again.
  useEffect(() => {
    if (state === "sure") question.current?.focus();
  }, [state]);
  const shown = line === undefined ? null : isShort ? <ShortLine text={line} /> : <Line text={line} />;
  if (power.value !== "operator") return isShort ? null : shown;
  const run = async () => {
    setState("busy");
    setTrouble("");
    try {
      const answer = await call(act.method, act.path, act.body ?? (act.method === "POST" ? {} : undefined));
      onDone?.(answer);
    } catch (error) {
      setTrouble(messageOf(error));
    }
    setState("idle");
  };
  return (
    <span class="act">
      {state === "sure" ? (
        <span class="sure" role="alertdialog" aria-label={act.label} tabIndex={-1} ref={question}>
          {act.sure}{" "}
          <button type="button" class="danger" onClick={() => void run()}>
            {act.label}
          </button>{" "}
          <button type="button" onClick={() => setState("idle")}>
            Keep it
          </button>
        </span>
      ) : (
        <button
          type="button"
          disabled={state === "busy"}
          onClick={() => (act.sure === undefined ? void run() : setState("sure"))}
        >
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

/** A text that somebody else wrote: what is hidden in it is shown as chips, and line breaks stay where `lines` says so. */
export function Foreign({ text, lines = false }: { text: string; lines?: boolean }) {
  return (
    <bdi>
      {piecesOf(text, lines).map((piece) => (piece.isHidden ? <span class="chip">{piece.text}</span> : piece.text))}
    </bdi>
  );
}

/** What a view loads when it is opened, when the gateway is back, and when `again` is called. */
export function useLoaded<T>(path: string): {
  value: T | undefined;
  trouble: string;
  again: () => void;
  /** It was asked for, and the answer is not there yet. */
  isUnderWay: () => boolean;
} {
  const [loaded, setLoaded] = useState<{ readonly path: string; readonly value?: T; readonly trouble: string }>();
  const [count, setCount] = useState(0);
  const underWay = useRef(false);
  const isLive = link.value.kind === "live";
  useEffect(() => {
    let isLeft = false;
    underWay.current = isLive;
    const keep = (next: { value?: T; trouble: string }) => {
      if (isLeft) return;
      underWay.current = false;
      setLoaded({ path, ...next });
    };
    if (isLive) {
      call<T>("GET", path).then(
        (value) => keep({ value, trouble: "" }),
        (error: unknown) => keep({ trouble: messageOf(error) }),
      );
    }
    return () => {
      isLeft = true;
    };
  }, [path, count, isLive]);
  const isOwn = loaded?.path === path;
  return {
    value: isOwn ? loaded.value : undefined,
    trouble: isOwn ? loaded.trouble : "",
    again: () => setCount((before) => before + 1),
    isUnderWay: () => underWay.current,
  };
}

/** The same of a list that comes in lines: all of it, when it is there. */
export function useLines<T>(path: string): { value: readonly T[] | undefined; trouble: string } {
  const [loaded, setLoaded] = useState<{
    readonly path: string;
    readonly value?: readonly T[];
    readonly trouble: string;
  }>();
  const isLive = link.value.kind === "live";
  useEffect(() => {
    const left = new AbortController();
    const load = async () => {
      const value: T[] = [];
      for await (const line of lines(path, left.signal)) value.push(line as T);
      setLoaded({ path, value, trouble: "" });
    };
    if (isLive) {
      load().catch((error: unknown) => {
        if (!left.signal.aborted) setLoaded({ path, trouble: messageOf(error) });
      });
    }
    return () => left.abort();
  }, [path, isLive]);
  const isOwn = loaded?.path === path;
  return { value: isOwn ? loaded.value : undefined, trouble: isOwn ? loaded.trouble : "" };
}

/** Loaded again and again while the view is open and somebody looks at it. */
export function useLooked<T>(path: string, everyMs: number): T | undefined {
  return useFollowed<T>(path, everyMs).value;
}

/**
 * The same, with `again` for who changed something. While the pointer or the keyboard is in `still`, it stays as it is: rows
 * do not move under a hand.
 */
export function useFollowed<T>(
  path: string,
  everyMs: number,
  still?: string,
): { value: T | undefined; trouble: string; again: () => void } {
  const { value, trouble, again, isUnderWay } = useLoaded<T>(path);
  const [last, setLast] = useState<T>();
  useEffect(() => {
    if (value !== undefined) setLast(value);
  }, [value]);
  useEffect(() => {
    const timer = setInterval(() => {
      const isStill = still !== undefined && document.querySelector(`${still}:hover, ${still}:focus-within`) !== null;
      // An answer that takes longer is waited for: asked again, it would be thrown away, each time.
      if (!document.hidden && !isStill && !isUnderWay()) again();
    }, everyMs);
    return () => clearInterval(timer);
  }, [path, everyMs]);
  return { value: value ?? last, trouble, again };
}
