// Who acts for a partition: one gateway's view of all of them, as a state machine without I/O and clock.
//
// A gateway announces itself by a record that it renews; a partition's record names its holder, and is written only when the
// partition changes hands. So 64 partitions cost one write every few seconds, not 64. Nobody takes a partition from another
// before that gateway's own record has been ended by compare-and-set, which takes a silence of the whole lease by the
// observer's own clock; and an ended record cannot be renewed. The holder stops some time before, by its own clock. So two
// never act at once, whatever was lost or late, and no clock is compared with another.

/** As it is kept, under the name of one term of a gateway. A record that is not understood is left alone. */
export interface GatewayRecord {
  readonly v: 1;
  /** Rises with each write, so that a gateway knows its own where an answer was lost. */
  readonly beat: number;
  /** It hands over, and wants nothing any more. */
  readonly isLeaving?: true;
  /** For good: by itself, or by another that heard nothing of it. It goes on under another name. */
  readonly isEnded?: true;
}

/** As it is kept, under the partition's number. */
export interface PartitionRecord {
  readonly v: 1;
  /** The name that its holder announces; empty where it was given back. */
  readonly holder: string;
}

/**
 * Another takes over at most ten seconds after a kill: this silence, two writes and the reading of the partition are within
 * them. A shorter one would be lost in each small pause.
 */
export const LEASE_MS = 8_000;
/** Of the lease: renewed at a third, and nothing is done any more at 0.7 since the last renewal was sent. */
const RENEW_AT = 1 / 3;
const ACT_UNTIL = 0.7;
/** After an election all renew at once. Whoever is heard first must not take the others for dead. */
const GRACE_MS = LEASE_MS / 2;
/** A write of our own record that failed is made again. */
const RETRY_MS = 500;
/** What nobody has taken for so long is taken by whoever sees it, even beyond its share. */
const LEFT_OVER_MS = 1_000;
/** A partition that could not be opened here is left to others for so long. */
const AVOID_MS = 30_000;
/** Ended records that no partition names stay for so long: a late reader may still look for them. */
const FORGET_MS = 60_000;
/** Taken or opened at one time, so that a takeover of all is done in a second and no engine is flooded. */
const TAKEN_AT_ONCE = 16;
/** Given back at one time where others have too few: the work of the rest goes on meanwhile. */
const GIVEN_AT_ONCE = 4;
/** A machine that slept is noticed soon after. */
const LONGEST_WAIT_MS = 1_000;

export interface Moment {
  /** Goes forward only; may stand still while the machine sleeps. */
  readonly nowMs: number;
  /** Jumps, but not by standing still. */
  readonly wallMs: number;
}

export type OwnershipStep =
  /** Of our own record (`isOwn`), or of one whose gateway is silent. Written on this revision; undefined: created. */
  | {
      readonly do: "gateway";
      readonly isOwn: boolean;
      readonly name: string;
      readonly record: GatewayRecord;
      readonly revision: number | undefined;
    }
  | {
      readonly do: "partition";
      readonly partition: number;
      readonly record: PartitionRecord;
      readonly revision: number | undefined;
    }
  /** To be told by `opened` or `notOpened`. */
  | { readonly do: "open"; readonly partition: number }
  /** Acts no more; to be told by `closed`. */
  | { readonly do: "close"; readonly partition: number }
  | { readonly do: "forget"; readonly name: string };

interface GatewayView {
  record: GatewayRecord | undefined;
  revision: number | undefined;
  /** When it was first seen as it is now. */
  movedMs: number;
  isAsked: boolean;
}

interface PartitionView {
  record: PartitionRecord | undefined;
  revision: number | undefined;
  stage: "none" | "opening" | "open" | "closing";
  /** Of the record that it was opened on. Once another has held it, what is open here is old. */
  openedOn: number | undefined;
  isAsked: boolean;
  /** It goes to another when it is closed. */
  isGiven: boolean;
  freeSinceMs: number | undefined;
  avoidUntilMs: number;
}

interface Attempt {
  readonly beat: number;
  readonly sent: Moment;
}

/** The gateway that announces itself by this name. */
export function gatewayOf(name: string): string {
  return name.slice(0, name.lastIndexOf("."));
}

export class Ownership {
  readonly #self: string;
  readonly #gateways = new Map<string, GatewayView>();
  readonly #partitions: readonly PartitionView[];
  #term = 0;
  #name = "";
  #beat = 0;
  #attempt: Attempt | undefined;
  /** When the last renewal that is known to have happened was sent. */
  #sent: Moment | undefined;
  /** Since when our renewals have come through without a gap. */
  #steadySinceMs = 0;
  #retryMs = 0;
  #isLeaving = false;
  #isRunning = false;
  #wakeMs = 0;

  constructor(self: string, count: number) {
    this.#self = self;
    this.#partitions = Array.from({ length: count }, () => ({
      record: undefined,
      revision: undefined,
      stage: "none",
      openedOn: undefined,
      isAsked: false,
      isGiven: false,
      freeSinceMs: undefined,
      avoidUntilMs: Number.NEGATIVE_INFINITY,
    }));
    this.#newTerm();
  }

  /** From now on partitions are wanted; without it the gateway only looks on. */
  run(): void {
    this.#isRunning = true;
  }

  /** Gives everything back. Done when `isGone`. */
  leave(): void {
    this.#isLeaving = true;
    this.#retryMs = Number.NEGATIVE_INFINITY;
  }

  get isGone(): boolean {
    return this.#isLeaving && (!this.#isRunning || this.#ownView()?.record?.isEnded === true);
  }

  mayAct(partition: number, moment: Moment): boolean {
    const view = this.#partitions[partition];
    return view?.stage === "open" && this.#isOurs(view) && this.holds(moment);
  }

  /** As `mayAct`, and while it is being given away: nobody else has it before that is done. */
  keeps(partition: number, moment: Moment): boolean {
    const view = this.#partitions[partition];
    return (view?.stage === "open" || view?.stage === "closing") && this.#isOurs(view) && this.holds(moment);
  }

  ownerOf(partition: number): string | undefined {
    const holder = this.#partitions[partition]?.record?.holder ?? "";
    return holder === "" || this.#gateways.get(holder)?.record?.isEnded === true ? undefined : gatewayOf(holder);
  }

  /** Those that live, by what was heard of them. */
  living(): { readonly name: string; readonly isLeaving: boolean; readonly held: number }[] {
    const held = new Map<string, number>();
    for (const { record } of this.#partitions) {
      if (record !== undefined) held.set(record.holder, (held.get(record.holder) ?? 0) + 1);
    }
    const living: { name: string; isLeaving: boolean; held: number }[] = [];
    for (const [name, { record }] of this.#gateways) {
      if (record === undefined || record.isEnded === true) continue;
      living.push({ name, isLeaving: record.isLeaving === true, held: held.get(name) ?? 0 });
    }
    return living;
  }

  /** Those that have ended, as long as that is remembered: one that handed over may still let its calls end. */
  left(): string[] {
    const living = new Set(this.living().map(({ name }) => gatewayOf(name)));
    const left = new Set<string>();
    for (const [name, { record }] of this.#gateways) {
      if (record?.isEnded === true && !living.has(gatewayOf(name))) left.add(gatewayOf(name));
    }
    return [...left];
  }

  // ---- what is seen

  sawGateway(name: string, record: GatewayRecord | undefined, revision: number | undefined, nowMs: number): void {
    const view = this.#viewOf(name, nowMs);
    if (revision === view.revision || (revision ?? Number.POSITIVE_INFINITY) < (view.revision ?? 0)) return;
    view.movedMs = nowMs;
    view.revision = revision;
    view.record = record;
    if (name === this.#name) this.#recognise(record, nowMs);
    // What nobody names and is not there any more need not be remembered.
    else if (record === undefined && !this.#isNamed(name)) this.#gateways.delete(name);
  }

  sawPartition(partition: number, record: PartitionRecord | undefined, revision: number | undefined): void {
    const view = this.#partitions[partition];
    if (view === undefined || (revision ?? Number.POSITIVE_INFINITY) < (view.revision ?? 0)) return;
    view.record = record;
    view.revision = revision;
  }

  /** A write has come to an end, whichever; what it came to is told by what is seen. */
  answered(step: OwnershipStep, outcome: "written" | "refused" | "unknown", nowMs: number): void {
    if (step.do === "partition") {
      const view = this.#partitions[step.partition];
      if (view !== undefined) view.isAsked = false;
      return;
    }
    if (step.do !== "gateway") return;
    const view = this.#gateways.get(step.name);
    if (view !== undefined) view.isAsked = false;
    if (step.name !== this.#name || outcome === "written") return;
    this.#retryMs = nowMs + RETRY_MS;
  }

  opened(partition: number): void {
    const view = this.#partitions[partition];
    if (view?.stage === "opening") view.stage = "open";
  }

  notOpened(partition: number, nowMs: number): void {
    const view = this.#partitions[partition];
    if (view === undefined) return;
    view.stage = "none";
    view.isGiven = true;
    view.avoidUntilMs = nowMs + AVOID_MS;
  }

  closed(partition: number): void {
    const view = this.#partitions[partition];
    if (view !== undefined) view.stage = "none";
  }

  // ---- what is to be done

  /** When to ask again, if nothing is seen before. */
  get wakeMs(): number {
    return this.#wakeMs;
  }

  next(moment: Moment): OwnershipStep[] {
    const { nowMs } = moment;
    const steps: OwnershipStep[] = [];
    this.#wakeMs = nowMs + LONGEST_WAIT_MS;
    if (!this.#isRunning) return steps;
    const holds = this.holds(moment);
    for (const [partition, view] of this.#partitions.entries()) {
      // One that is being opened is closed when it is open.
      if (view.stage === "open" && !(holds && this.#isOurs(view) && !this.#isLeaving)) close(partition, view, steps);
    }
    this.#announce(moment, steps);
    if (this.isGone) return steps;
    if (holds && this.#sent !== undefined) this.#wakeBy(this.#sent.nowMs + ACT_UNTIL * LEASE_MS);
    if (!holds) return steps;
    this.#endTheSilent(nowMs, steps);
    this.#spread(nowMs, steps);
    return steps;
  }

  /** Whether nobody else can have taken what is ours, by our own clock. */
  holds({ nowMs, wallMs }: Moment): boolean {
    if (this.#sent === undefined) return false;
    const sinceMs = Math.max(nowMs - this.#sent.nowMs, wallMs - this.#sent.wallMs);
    return sinceMs < ACT_UNTIL * LEASE_MS;
  }

  #announce(moment: Moment, steps: OwnershipStep[]): void {
    const { nowMs } = moment;
    const own = this.#viewOf(this.#name, nowMs);
    if (own.isAsked || own.record?.isEnded === true) return;
    const isEnd = this.#isLeaving && this.#isEmpty();
    if (isEnd && own.record === undefined) {
      // It was never announced, or nobody knows: others see its end by its silence.
      own.record = { v: 1, beat: 0, isEnded: true };
      return;
    }
    const wantsToLeave = this.#isLeaving && own.record?.isLeaving !== true;
    const lastMs = Math.max(this.#sent?.nowMs ?? 0, this.#attempt?.sent.nowMs ?? 0);
    const dueMs = own.record === undefined || isEnd || wantsToLeave ? nowMs : lastMs + RENEW_AT * LEASE_MS;
    const atMs = Math.max(dueMs, this.#retryMs);
    if (nowMs < atMs) {
      this.#wakeBy(atMs);
      return;
    }
    own.isAsked = true;
    this.#attempt = { beat: ++this.#beat, sent: moment };
    const leaving = this.#isLeaving ? { isLeaving: true as const } : {};
    const record = { v: 1 as const, beat: this.#beat, ...leaving, ...(isEnd ? { isEnded: true as const } : {}) };
    steps.push({ do: "gateway", isOwn: true, name: this.#name, record, revision: own.revision });
  }

  #recognise(record: GatewayRecord | undefined, nowMs: number): void {
    if (record === undefined || record.isEnded === true) {
      this.#sent = undefined;
      // Somebody heard nothing of us for the whole lease. What we held is taken; we begin anew.
      if (!this.#isLeaving) this.#newTerm();
      return;
    }
    if (record.beat !== this.#attempt?.beat) return;
    const { sent } = this.#attempt;
    if (this.#sent === undefined || nowMs - this.#sent.nowMs >= ACT_UNTIL * LEASE_MS) this.#steadySinceMs = nowMs;
    this.#sent = sent;
  }

  #newTerm(): void {
    this.#name = `${this.#self}.${++this.#term}`;
    this.#attempt = undefined;
    this.#sent = undefined;
  }

  #endTheSilent(nowMs: number, steps: OwnershipStep[]): void {
    // A holder that nobody announced is given the same time, and ended in the same way.
    for (const { record } of this.#partitions)
      if (record !== undefined && record.holder !== "") this.#viewOf(record.holder, nowMs);
    for (const [name, view] of this.#gateways) {
      if (name === this.#name || view.isAsked || (view.record !== undefined && view.record.v !== 1)) continue;
      if (view.record?.isEnded === true) {
        if (nowMs < view.movedMs + FORGET_MS || this.#isNamed(name)) continue;
        view.movedMs = nowMs;
        steps.push({ do: "forget", name });
        continue;
      }
      if (view.record === undefined && !this.#isNamed(name)) continue;
      const dueMs = Math.max(view.movedMs + LEASE_MS, this.#steadySinceMs + GRACE_MS);
      if (nowMs < dueMs) {
        this.#wakeBy(dueMs);
        continue;
      }
      view.isAsked = true;
      const record = { v: 1 as const, beat: (view.record?.beat ?? 0) + 1, isEnded: true as const };
      steps.push({ do: "gateway", isOwn: false, name, record, revision: view.revision });
    }
  }

  /** Opens what is ours, takes what is free up to our share, and gives back what is beyond it where others have too few. */
  #spread(nowMs: number, steps: OwnershipStep[]): void {
    const living = this.living().filter(({ isLeaving }) => !isLeaving);
    const shares = sharesOf(
      living.map(({ name }) => name),
      this.#partitions.length,
    );
    const share = this.#isLeaving ? 0 : (shares.get(this.#name) ?? 0);
    let held = 0;
    let underWay = 0;
    let giving = 0;
    for (const view of this.#partitions) {
      const isOurs = view.record?.holder === this.#name;
      if (isOurs ? !view.isGiven : view.isAsked) held++;
      if (view.isAsked || view.stage === "opening") underWay++;
      if (isOurs && view.isGiven) giving++;
    }
    const isWanted = living.some(({ name, held: has }) => name !== this.#name && has < (shares.get(name) ?? 0));
    let surplus = isWanted ? held - share : 0;
    // Each begins elsewhere, so that few reach for the same one.
    const rank = Math.max(
      0,
      living.findIndex(({ name }) => name === this.#name),
    );
    const first = Math.floor((rank * this.#partitions.length) / Math.max(1, living.length));
    for (let n = 0; n < this.#partitions.length; n++) {
      const partition = (first + n) % this.#partitions.length;
      const view = this.#partitions[partition] as PartitionView;
      if (view.isAsked || (view.record !== undefined && view.record.v !== 1)) continue;
      if (view.record?.holder === this.#name) {
        view.freeSinceMs = undefined;
        if (view.stage === "open" && surplus > 0 && giving < GIVEN_AT_ONCE) {
          surplus--;
          giving++;
          view.isGiven = true;
          close(partition, view, steps);
        } else if (view.stage === "none" && (view.isGiven || this.#isLeaving)) {
          view.isAsked = true;
          steps.push({ do: "partition", partition, record: { v: 1, holder: "" }, revision: view.revision });
        } else if (view.stage === "none" && underWay < TAKEN_AT_ONCE) {
          underWay++;
          view.stage = "opening";
          view.openedOn = view.revision;
          steps.push({ do: "open", partition });
        }
        continue;
      }
      if (!this.#isFree(view)) {
        view.freeSinceMs = undefined;
        continue;
      }
      view.freeSinceMs ??= nowMs;
      if (this.#isLeaving || view.stage !== "none" || underWay >= TAKEN_AT_ONCE) continue;
      const leftOverMs = Math.max(view.freeSinceMs + LEFT_OVER_MS, view.avoidUntilMs);
      if (nowMs < view.avoidUntilMs || (held >= share && nowMs < leftOverMs)) {
        this.#wakeBy(leftOverMs);
        continue;
      }
      held++;
      underWay++;
      view.isAsked = true;
      view.isGiven = false;
      steps.push({ do: "partition", partition, record: { v: 1, holder: this.#name }, revision: view.revision });
    }
  }

  #isOurs({ record, revision, openedOn }: PartitionView): boolean {
    return record?.holder === this.#name && revision === openedOn;
  }

  #isFree({ record }: PartitionView): boolean {
    return record === undefined || record.holder === "" || this.#gateways.get(record.holder)?.record?.isEnded === true;
  }

  #isEmpty(): boolean {
    return this.#partitions.every(
      ({ record, stage, isAsked }) => record?.holder !== this.#name && stage === "none" && !isAsked,
    );
  }

  #isNamed(name: string): boolean {
    return this.#partitions.some(({ record }) => record?.holder === name);
  }

  #ownView(): GatewayView | undefined {
    return this.#gateways.get(this.#name);
  }

  #viewOf(name: string, nowMs: number): GatewayView {
    let view = this.#gateways.get(name);
    if (view === undefined) {
      view = { record: undefined, revision: undefined, movedMs: nowMs, isAsked: false };
      this.#gateways.set(name, view);
    }
    return view;
  }

  #wakeBy(ms: number): void {
    if (ms < this.#wakeMs) this.#wakeMs = ms;
  }
}

function close(partition: number, view: PartitionView, steps: OwnershipStep[]): void {
  view.stage = "closing";
  steps.push({ do: "close", partition });
}

/** The same at all that see the same gateways: nobody gives what another would give back. */
function sharesOf(names: readonly string[], count: number): Map<string, number> {
  const sorted = [...names].sort((a, b) => (a < b ? -1 : 1));
  const each = Math.floor(count / Math.max(1, sorted.length));
  return new Map(sorted.map((name, rank) => [name, rank < count % sorted.length ? each + 1 : each]));
}
