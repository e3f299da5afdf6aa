// Small pieces of every view: times, lines to type, text that a server wrote, and what a view loads.

import { computed, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { visible } from "../src/runtime/visible.js";
import { call, lines } from "./door.js";
import { piecesOf } from "./foreign.js";
import { type Held, heldRows } from "./held.js";
import { link, messageOf } from "./model.js";

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

/**
 * How long ago, and exactly when on hover and by `t`. Where something in its row has the focus it is shown too, by the style: a
 * stop of the Tab key at each time would be one more in every row.
 */
export function Since({ at, suffix = " ago" }: { at: string | number | undefined; suffix?: string }) {
  if (at === undefined) return null;
  const date = new Date(at);
  const text = computed(() =>
    isExact.value ? date.toLocaleString() : `${ageText(now.value - date.getTime())}${suffix}`,
  );
  return (
    <time class="since" dateTime={date.toISOString()} title={date.toLocaleString()}>
      {text}
    </time>
  );
}

/**
 * For how long something has been so: `for 8 s`, or with other words before it; exactly it is `since` a time. Shown as by
 * `Since`.
 */
export function Lasting({ at, words = "for" }: { at: string | number; words?: string }) {
  const date = new Date(at);
  const exactly = `since ${date.toLocaleString()}`;
  const text = computed(() => (isExact.value ? exactly : `${words} ${ageText(now.value - date.getTime())}`));
  return (
    <time class="since" dateTime={date.toISOString()} title={exactly}>
      {text}
    </time>
  );
}

/** By a clock on the wall, and with its day on hover and by `t`. */
export function ClockTime({ at }: { at: number }) {
  const date = new Date(at);
  const exactly = date.toLocaleString();
  const text = computed(() =>
    isExact.value ? exactly : date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }),
  );
  return (
    <time class="since" dateTime={date.toISOString()} title={exactly}>
      {text}
    </time>
  );
}

/** How long until then, and exactly when on hover and by `t`, as in `Since`. */
export function Until({ at }: { at: number }) {
  const exactly = new Date(at).toLocaleString();
  const text = computed(() => `${ageText(at - now.value)}${isExact.value ? ` (${exactly})` : ""}`);
  return (
    <time class="since" dateTime={new Date(at).toISOString()} title={exactly}>
      {text}
    </time>
  );
}

/** How long something goes on: `is good for 59 min more`, and `ended 3 min ago` where that is over. Shown as by `Since`. */
export function Lasts({ at, is, was }: { at: string; is: string; was: string }) {
  const atMs = Date.parse(at);
  const isOver = computed(() => atMs <= now.value);
  const exactly = computed(() => `${isOver.value ? was : `${is} until`} ${new Date(atMs).toLocaleString()}`);
  const text = computed(() => {
    if (isExact.value) return exactly.value;
    const left = atMs - now.value;
    return isOver.value ? `${was} ${ageText(-left)} ago` : `${is} for ${ageText(left)} more`;
  });
  return (
    <time class="since" dateTime={new Date(atMs).toISOString()} title={exactly}>
      {text}
    </time>
  );
}

/** What ends then, or has: a time that is over is no countdown. */
export function Ends({ at }: { at: string }) {
  const atMs = Date.parse(at);
  const isOver = computed(() => atMs <= now.value);
  return isOver.value ? (
    <Since at={at} />
  ) : (
    <>
      in{"\u00a0"}
      <Until at={atMs} />
    </>
  );
}

/** A try is under way as soon as its time has come. */
export function NextTry({ at }: { at: number }) {
  const text = computed(() => (at > now.value ? `next try in ${ageText(at - now.value)}` : "trying again"));
  return <span>{text}</span>;
}

/** A line for a terminal, with a button that copies it. Names in it are words of a shell: by `shellWord`. */
export function Line({ text }: { text: string }) {
  return (
    <span class="line">
      <code>{text}</code>
      <CopyLine text={text} />
    </span>
  );
}

/** The button alone, where there is no room for the line: it is seen on hover. */
export function CopyLine({ text }: { text: string }) {
  return <Copy label="copy" name={`Copy ${visible(text)}`} text={() => text} isQuiet />;
}

/** So long a button says that it was done. */
const COPIED_MS = 1_500;

/** A button that copies a text which is made when it is asked for. */
export function Copy({
  label,
  text,
  name,
  isQuiet = false,
}: {
  label: string;
  text: () => string;
  /** What a screen reader says, and hover shows, where the label is too short for that. */
  name?: string;
  isQuiet?: boolean;
}) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text());
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  return (
    <button
      type="button"
      class={isQuiet ? "quiet" : undefined}
      title={name}
      aria-label={name}
      onClick={() => void copy()}
    >
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
  /** Until the answer is there, or nobody waits for it any more. */
  again: () => Promise<void>;
  /** It was asked for, and the answer is not there yet. */
  isUnderWay: () => boolean;
} {
  const [loaded, setLoaded] = useState<{ readonly path: string; readonly value?: T; readonly trouble: string }>();
  const [count, setCount] = useState(0);
  const underWay = useRef(false);
  const waiting = useRef<(() => void)[]>([]);
  const tellAll = () => {
    for (const tell of waiting.current.splice(0)) tell();
  };
  const isLive = link.value.kind === "live";
  useEffect(() => {
    let isLeft = false;
    underWay.current = isLive;
    const keep = (next: { value?: T; trouble: string }) => {
      if (isLeft) return;
      underWay.current = false;
      setLoaded({ path, ...next });
      tellAll();
    };
    // It is asked for when the gateway is back, however long that takes.
    if (!isLive) tellAll();
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
  useEffect(() => tellAll, []);
  const isOwn = loaded?.path === path;
  return {
    value: isOwn ? loaded.value : undefined,
    trouble: isOwn ? loaded.trouble : "",
    again: () =>
      new Promise((done) => {
        waiting.current.push(done);
        setCount((before) => before + 1);
      }),
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
 * The same, with `again` for who changed something. While the pointer or the keyboard is in `still`, or a question is open
 * there, it stays as it is: rows do not move under a hand.
 */
export function useFollowed<T>(
  path: string,
  everyMs: number,
  still?: string,
  isPaused = false,
): { value: T | undefined; trouble: string; again: () => Promise<void> } {
  const { value, trouble, again, isUnderWay } = useLoaded<T>(path);
  const [last, setLast] = useState<T>();
  useEffect(() => {
    if (value !== undefined) setLast(value);
  }, [value]);
  useEffect(() => {
    if (isPaused) return undefined;
    const timer = setInterval(() => {
      const isStill = still !== undefined && document.querySelector(underAHand(still)) !== null;
      // An answer that takes longer is waited for: asked again, it would be thrown away, each time.
      if (!document.hidden && !isStill && !isUnderWay()) void again();
    }, everyMs);
    return () => clearInterval(timer);
  }, [path, everyMs, isPaused]);
  return { value: value ?? last, trouble, again };
}

/** A hand that has gone is seen within this. */
const HAND_MS = 300;

/** Rows that are sent anew all the time, in an order of their own: they hold still while a hand is on `place`. */
export function useHeld<T>(now: readonly T[], keyOf: (one: T) => string, place: string): readonly Held<T>[] {
  const [, drawAgain] = useState(0);
  const shown = useRef<readonly Held<T>[]>([]);
  const isHeld = document.querySelector(underAHand(place)) !== null;
  shown.current = isHeld ? heldRows(shown.current, now, keyOf) : now.map((one) => ({ one, isOver: false }));
  useEffect(() => {
    if (!isHeld) return undefined;
    const timer = setInterval(() => {
      if (document.querySelector(underAHand(place)) === null) drawAgain((count) => count + 1);
    }, HAND_MS);
    return () => clearInterval(timer);
  }, [isHeld, place]);
  return shown.current;
}

/** Not `:focus-within`: what the mouse pressed keeps the focus long after the hand has gone. */
function underAHand(place: string): string {
  return `${place}:hover, ${place}:has(:focus-visible), ${place}:has([role="alertdialog"])`;
}
