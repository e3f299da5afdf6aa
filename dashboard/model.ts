// What the page knows: the parts that the gateway sent, as signals, and whether they are live. It follows the stream and
// finds it again when it is lost.

import { computed, signal } from "@preact/signals";
import type { GatewayStatus, ServerStatus } from "../src/contracts/status.js";
import { enter, feed, forgetProof, leave, NotTheGateway, RequestRefused } from "./door.js";
import { pageName } from "./page-name.js";

/** The whole status but for what the page takes by name. */
export type GatewayPart = Omit<
  GatewayStatus,
  "servers" | "outbox" | "mailboxes" | "shares" | "executors" | "conflicts" | "notes" | "config" | "memory"
>;

export type GatewayLink =
  | { readonly kind: "opening" }
  | { readonly kind: "live" }
  /** `again` is when the next try is, and `since` when it was lost, both by the page's clock; `why` has no full stop. */
  | { readonly kind: "lost"; readonly since: number; readonly again: number; readonly why: string }
  | { readonly kind: "ended"; readonly why: string };

/** The first tries come soon: a gateway that is started again takes a second. */
const TRIES_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000];
/** A stream is silent for 10 s at most: one that is for longer is dead. */
const SILENCE_MS = 25_000;

/**
 * A browser opens six connections to one host for all its tabs together: streams of tabs that nobody looks at would leave
 * none for the tab in front. A hidden one looks only so often, for the number in its title and so that its session lives.
 */
const HIDDEN_LOOK_MS = 30_000;

const NO_LINK = "Open this page by `toolway dashboard`: it gives a link that is good once.";

export const link = signal<GatewayLink>({ kind: "opening" });
export const power = signal<"viewer" | "operator">("viewer");
const parts = signal<Readonly<Record<string, unknown>>>({});

function part<T>(name: string) {
  return computed(() => parts.value[name] as T | undefined);
}

export const gateway = part<GatewayPart>("gateway");
export const config = part<GatewayStatus["config"]>("config");
export const outbox = part<NonNullable<GatewayStatus["outbox"]>>("outbox");
export const mailboxes = part<NonNullable<GatewayStatus["mailboxes"]>>("mailboxes");
export const executors = part<GatewayStatus["executors"]>("executors");
export const shares = part<GatewayStatus["shares"]>("shares");
export const conflicts = part<GatewayStatus["conflicts"]>("conflicts");
export const notes = part<GatewayStatus["notes"]>("notes");
export const servers = computed<readonly ServerStatus[]>(() => {
  const all = parts.value;
  return ((all["order"] as readonly string[] | undefined) ?? []).flatMap((name) => {
    const one = all[`server/${name}`] as ServerStatus | undefined;
    return one === undefined ? [] : [one];
  });
});

/** Mailboxes and nothing else: `toolway broker`, which has no config. */
export const isBroker = computed(
  () =>
    config.value !== undefined &&
    config.value.path === undefined &&
    mailboxes.value !== undefined &&
    servers.value.length === 0,
);

/** What the page is of. */
export const name = computed(() => pageName(config.value?.path, isBroker.value, location.port));

/** Until the page is closed, or its session has ended. */
export async function follow(): Promise<void> {
  try {
    if ((await enter()) === undefined) {
      link.value = { kind: "ended", why: NO_LINK };
      return;
    }
  } catch (error) {
    link.value = { kind: "ended", why: messageOf(error) };
    return;
  }
  let tries = 0;
  let heard = Date.now();
  let since = 0;
  for (;;) {
    let why = "Toolway does not answer";
    try {
      const end = await read(() => {
        tries = 0;
        since = 0;
        heard = Date.now();
      });
      if (end === "hidden") {
        forgetProof();
        await shownOrLater();
        continue;
      }
    } catch (error) {
      if (error instanceof RequestRefused && error.ended) {
        leave();
        link.value = { kind: "ended", why: error.message };
        return;
      }
      if (error instanceof RequestRefused || error instanceof NotTheGateway) why = error.message.replace(/\.$/, "");
    }
    forgetProof();
    // One that hangs is noticed late: it has not answered since it was heard last.
    since ||= heard;
    const wait = TRIES_MS[Math.min(tries++, TRIES_MS.length - 1)] ?? 1_000;
    link.value = { kind: "lost", since, again: Date.now() + wait, why };
    await new Promise((done) => setTimeout(done, wait));
  }
}

/** Until the stream ends, or nobody looks at this tab any more. */
async function read(onLive: () => void): Promise<"ended" | "hidden"> {
  const silent = new AbortController();
  let timer = setTimeout(() => silent.abort(), SILENCE_MS);
  let isLive = false;
  const onHidden = () => {
    if (document.hidden && isLive) silent.abort();
  };
  document.addEventListener("visibilitychange", onHidden);
  try {
    for await (const line of feed(silent.signal)) {
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), SILENCE_MS);
      take(line as PageLine);
      // Not a new one for each line: every view that loads something would be drawn again with it.
      if (link.value.kind !== "live") link.value = { kind: "live" };
      onLive();
      isLive = true;
      if (document.hidden) return "hidden";
    }
    return "ended";
  } catch (error) {
    if (document.hidden && isLive && silent.signal.aborted) return "hidden";
    throw error;
  } finally {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", onHidden);
    // The connection is open until somebody ends it.
    silent.abort();
  }
}

function shownOrLater(): Promise<void> {
  return new Promise((done) => {
    const end = () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", end);
      done();
    };
    const timer = setTimeout(end, HIDDEN_LOOK_MS);
    document.addEventListener("visibilitychange", end);
  });
}

interface PageLine {
  readonly all?: Readonly<Record<string, unknown>>;
  readonly power?: "viewer" | "operator";
  readonly changed?: Readonly<Record<string, unknown>>;
}

function take({ all, power: own, changed }: PageLine): void {
  if (own !== undefined) power.value = own;
  if (all !== undefined) parts.value = all;
  if (changed === undefined) return;
  const next = { ...parts.value, ...changed };
  for (const [name, value] of Object.entries(changed)) if (value === null) delete next[name];
  parts.value = next;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
