// Pins of one server: the hash of each tool's whole definition as it was first seen or accepted, and which tools are
// quarantined because theirs is another now. Lists and the time are passed in; the disk is gateway/state/stored-pins.ts's.

import { type OwnToolName, ownToolName } from "../contracts/names.js";
import { type Canonical, canonicalizeText, takeCanonical } from "../protocol/canonical.js";
import { Fault } from "../protocol/errors.js";
import { shellWord } from "../runtime/words/shell-word.js";

export interface Pin {
  /** SHA-256 of the accepted definition's RFC 8785 text. */
  readonly hash: string;
  readonly firstSeenMs: number;
  /** It equals `firstSeenMs` until somebody accepts a change. */
  readonly acceptedMs: number;
  /** The definition as it was last seen, where it is another than the accepted one. */
  readonly changed: ChangedPin | undefined;
}

export interface ChangedPin {
  readonly hash: string;
  readonly seenMs: number;
  /** When a person said that it stays hidden as it is: nobody is asked about it again. Undefined where nobody did. */
  readonly rejectedMs?: number | undefined;
}

/** A tool as its server lists it; what a list entry has beside its name is all in `json`. */
export interface ListedTool {
  readonly json: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** A pin that has to be written, with the definition that it is about. */
export interface PinToWrite {
  readonly kind: "first" | "changed" | "restored";
  readonly tool: OwnToolName;
  readonly pin: Pin;
  /** RFC 8785's text. */
  readonly definition: string;
}

export interface Seen {
  readonly toWrite: readonly PinToWrite[];
  /** True where other tools are quarantined than before, or others are free. */
  readonly differs: boolean;
}

/**
 * More tools than the catalog takes of a server. A server that makes up new names at every list must not fill the
 * disk; and old pins must not give way to new ones, or it could wash them out.
 */
const MAX_PINS = 10_000;

/** What is longer is no name, as in the catalog. */
const MAX_NAME = 4096;

/** The pin after a list that has the tool with this hash. The same object where nothing changes. */
function afterList(pin: Pin | undefined, hash: string, nowMs: number): Pin {
  if (pin === undefined) return { hash, firstSeenMs: nowMs, acceptedMs: nowMs, changed: undefined };
  if (pin.hash === hash) return pin.changed === undefined ? pin : { ...pin, changed: undefined };
  return pin.changed?.hash === hash ? pin : { ...pin, changed: { hash, seenMs: nowMs } };
}

/** `hash` is what somebody accepted; what has been seen since and is another stays a change. */
export function accept(pin: Pin, hash: string, nowMs: number): Pin {
  const { changed } = pin;
  return { ...pin, hash, acceptedMs: nowMs, changed: changed?.hash === hash ? undefined : changed };
}

/** `hash` is what somebody looked at; what has been seen since asks anew. */
export function reject(pin: Pin, hash: string, nowMs: number): Pin {
  const { changed } = pin;
  return changed?.hash === hash ? { ...pin, changed: { ...changed, rejectedMs: nowMs } } : pin;
}

interface Printed {
  readonly json: string;
  readonly hash: string;
}

export class ServerPins {
  readonly #server: string;
  readonly #pins = new Map<OwnToolName, Pin>();
  /** The hashes of the last list: to read the same again costs a comparison, not a hash. */
  #printed = new Map<OwnToolName, Printed>();
  /** Whether a list has been seen at all: before that nothing is known to be gone. */
  #listed = false;
  /** Tools of the last list that cannot be pinned, and why. */
  #problems: ReadonlyMap<OwnToolName, string> = new Map();
  /** Tools that cannot be pinned, and tools that have changed, with the reason. */
  #quarantined = new Map<OwnToolName, string>();

  constructor(server: string) {
    this.#server = server;
  }

  get quarantined(): ReadonlyMap<OwnToolName, string> {
    return this.#quarantined;
  }

  get pins(): ReadonlyMap<OwnToolName, Pin> {
    return this.#pins;
  }

  /** True where there is no room for another pin. */
  get isFull(): boolean {
    return this.#pins.size >= MAX_PINS;
  }

  /** Why the tool, as the last list had it, cannot be pinned. */
  problem(tool: OwnToolName): string | undefined {
    return this.#problems.get(tool);
  }

  /** True for a tool that the last list no longer had. */
  isGone(tool: OwnToolName): boolean {
    return this.#listed && !this.#printed.has(tool) && !this.#problems.has(tool);
  }

  /** Takes a pin from disk, or one that has been accepted. */
  put(tool: OwnToolName, pin: Pin): void {
    this.#pins.set(tool, pin);
    if (this.#problems.has(tool)) return;
    if (pin.changed === undefined) this.#quarantined.delete(tool);
    else this.#quarantined.set(tool, changedReason(this.#server, tool, pin.changed));
  }

  /**
   * Takes what was accepted elsewhere. Whether the tool has changed is what our own list says, where we have read one: another
   * gateway's server may be another version. True where it is quarantined now and was not, or the other way round.
   */
  take(tool: OwnToolName, pin: Pin): boolean {
    const was = this.#quarantined.has(tool);
    const seen = this.#printed.get(tool)?.hash;
    const { changed } = this.#pins.get(tool) ?? pin;
    if (seen === undefined) this.put(tool, pin);
    else if (seen === pin.hash) this.put(tool, { ...pin, changed: undefined });
    else this.put(tool, { ...pin, changed: { hash: seen, seenMs: changed?.seenMs ?? pin.acceptedMs } });
    return was !== this.#quarantined.has(tool);
  }

  delete(tool: OwnToolName): void {
    this.#pins.delete(tool);
    this.#quarantined.delete(tool);
  }

  /** `listed` is all that the server lists: what is not in it is gone. */
  see(listed: readonly ListedTool[], nowMs: number): Seen {
    const before = this.#quarantined;
    const printed = new Map<OwnToolName, Printed>();
    const problems = new Map<OwnToolName, string>();
    const toWrite: PinToWrite[] = [];
    for (const one of listed) {
      const { json, value } = one;
      const name = value["name"];
      if (typeof name !== "string" || name.length > MAX_NAME) continue;
      const tool = ownToolName(name);
      // The first of a name counts, as in the catalog.
      if (printed.has(tool) || problems.has(tool)) continue;
      const pin = this.#pins.get(tool);
      const known = this.#printed.get(tool);
      const print = known?.json === json ? { hash: known.hash, text: undefined } : fingerprint(one);
      if (typeof print === "string") {
        problems.set(tool, `its definition cannot be compared with another: ${print}`);
      } else if (pin === undefined && this.isFull) {
        problems.set(tool, `server "${this.#server}" has shown more than ${MAX_PINS} different tools`);
      } else {
        printed.set(tool, { json, hash: print.hash });
        const next = afterList(pin, print.hash, nowMs);
        if (next === pin) continue;
        this.#pins.set(tool, next);
        const kind = pin === undefined ? "first" : next.changed === undefined ? "restored" : "changed";
        toWrite.push({ kind, tool, pin: next, definition: print.text ?? canonicalizeText(json) });
      }
    }
    this.#listed = true;
    this.#printed = printed;
    this.#problems = problems;
    const quarantined = new Map(problems);
    // A tool that is away keeps its quarantine: it may be back before its next list is read.
    for (const [tool, { changed }] of this.#pins) {
      if (changed !== undefined && !problems.has(tool))
        quarantined.set(tool, changedReason(this.#server, tool, changed));
    }
    this.#quarantined = quarantined;
    return { toWrite, differs: !sameKeys(before, quarantined) };
  }
}

/** What is wrong with it, where it has no hash: then nobody could tell whether it changed. */
function fingerprint(tool: ListedTool): Canonical | string {
  try {
    return takeCanonical(tool);
  } catch (error) {
    if (error instanceof Fault) return error.message;
    throw error;
  }
}

/**
 * Agents read it, too, on other machines perhaps: so the commands have no path of ours in them. Where the operator reads
 * it, the command line adds the config that is meant.
 */
function changedReason(server: string, tool: string, { rejectedMs }: ChangedPin): string {
  const what = rejectedMs === undefined ? "" : ", and whoever runs the gateway rejected it as it is now";
  return (
    `its definition changed since it was accepted${what}: for whoever runs the gateway, ` +
    `\`toolway pins diff ${shellWord(server)}\` shows how, \`toolway pins accept ${shellWord(server)} ${shellWord(tool)}\` ` +
    "accepts it (in a program, `host.pins`)"
  );
}

function sameKeys(a: ReadonlyMap<string, unknown>, b: ReadonlyMap<string, unknown>): boolean {
  if (a.size !== b.size) return false;
  for (const key of a.keys()) if (!b.has(key)) return false;
  return true;
}
