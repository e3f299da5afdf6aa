// The operator's side of mailboxes that several brokers keep: asks each for what it has in hand, and puts it together. What
// changes something is done by the one that has it.

import type { PeerError, Peers } from "../../contracts/engine/peers.js";
import type {
  DeadLetterSummary,
  MailboxesStatus,
  MailboxSummary,
  MessageSummary,
  Page,
} from "../../contracts/status.js";
import { sentence } from "../../runtime/words/sentence.js";
import { type MailboxOperator, OperatorError, type Range, type Selection } from "../broker/operator.js";

const OPERATE = "mail.operate";
const ASK_MS = 10_000;
/** Of the status: so many of the fullest mailboxes, as of one broker. */
const MAX_IN_STATUS = 100;

interface Asks {
  list: { readonly range: Range };
  summary: { readonly name: string };
  names: Record<string, never>;
  messages: { readonly name: string; readonly range: Range };
  deadLetters: { readonly name: string; readonly range: Range };
  retry: { readonly name: string; readonly id: string; readonly from?: string | undefined };
  drop: { readonly name: string; readonly selection: Selection };
  totals: Record<string, never>;
}

interface Answers {
  list: Page<MailboxSummary>;
  summary: MailboxSummary;
  names: string[];
  messages: Page<MessageSummary>;
  deadLetters: Page<DeadLetterSummary>;
  retry: { id: string; from: string };
  drop: { messages: number; deadLetters: number };
  totals: MailboxesStatus;
}

type Ask = keyof Asks;
type OperatorErrorCode = OperatorError["code"];

interface Told<A extends Ask> {
  readonly found: Answers[A][];
  /** Why there is nothing, of those who have nothing. */
  readonly refused: { readonly code: OperatorErrorCode; readonly message: string }[];
}

export interface SharedOperatorOptions {
  readonly peers: Peers;
  /** Of the partitions that are here. */
  readonly here: () => Iterable<MailboxOperator>;
  readonly others: () => readonly string[];
  /** Of this broker, with who is connected to it. */
  readonly own: () => MailboxesStatus | undefined;
}

export class SharedOperator {
  readonly #options: SharedOperatorOptions;
  readonly #unanswer: () => void;

  constructor(options: SharedOperatorOptions) {
    this.#options = options;
    this.#unanswer = options.peers.answer(OPERATE, async (_, body) => {
      const { ask, asked, isOne } = JSON.parse(Buffer.from(body).toString()) as {
        ask: Ask;
        asked: Asks[Ask];
        isOne: boolean;
      };
      return Buffer.from(JSON.stringify(await this.#here(ask, asked as never, isOne)));
    });
  }

  close(): void {
    this.#unanswer();
  }

  /** Of the partitions that are here: whoever wants all adds them up. */
  status(connections: number): MailboxesStatus {
    return { ...totalOf([...this.#options.here()].map((one) => one.status(connections))), connections };
  }

  /** Of all brokers together. */
  async totals(): Promise<MailboxesStatus> {
    return totalOf(await this.#all("totals", {}));
  }

  async list({ offset, limit }: Range): Promise<Page<MailboxSummary>> {
    // A mailbox may be in several partitions, and is full only where these are put together.
    const all = merged((await this.#all("list", { range: EVERYTHING })).flatMap(({ items }) => items));
    return { items: all.slice(offset, offset + limit), total: all.length };
  }

  async summary(name: string): Promise<MailboxSummary> {
    const [first] = merged(await this.#all("summary", { name }));
    if (first === undefined) throw new OperatorError("not-found", `There is no mailbox "${name}".`);
    return first;
  }

  async names(): Promise<string[]> {
    return [...new Set((await this.#all("names", {})).flat())];
  }

  async messages(name: string, range: Range): Promise<Page<MessageSummary>> {
    const found = await this.#all("messages", { name, range: { offset: 0, limit: range.offset + range.limit } });
    return pageOf(found, range, (a, b) => a.at < b.at);
  }

  async deadLetters(name: string, range: Range): Promise<Page<DeadLetterSummary>> {
    const found = await this.#all("deadLetters", { name, range: { offset: 0, limit: range.offset + range.limit } });
    return pageOf(found, range, (a, b) => a.failedAt > b.failedAt);
  }

  retry(name: string, id: string, from: string | undefined): Promise<{ id: string; from: string }> {
    return this.#one("retry", { name, id, from });
  }

  async drop(name: string, selection: Selection): Promise<{ messages: number; deadLetters: number }> {
    if (selection.id !== undefined) return this.#one("drop", { name, selection });
    const all = await this.#all("drop", { name, selection });
    return all.reduce((sum, one) => ({
      messages: sum.messages + one.messages,
      deadLetters: sum.deadLetters + one.deadLetters,
    }));
  }

  /** What each partition says. Throws where none has anything to say, or where one could not be asked. */
  async #all<A extends Ask>(ask: A, asked: Asks[A]): Promise<Answers[A][]> {
    const others = this.#options.others().map((other) => this.#there(other, ask, asked, false));
    const told = await Promise.all([this.#here(ask, asked, false), ...others]);
    const found = told.flatMap((one) => one.found);
    if (found.length === 0 && ask !== "list" && ask !== "names") throw why(told);
    return found;
  }

  /** Of the first that has it. */
  async #one<A extends Ask>(ask: A, asked: Asks[A]): Promise<Answers[A]> {
    const told: Told<A>[] = [];
    for (const who of [undefined, ...this.#options.others()]) {
      const one = who === undefined ? await this.#here(ask, asked, true) : await this.#there(who, ask, asked, true);
      const [first] = one.found;
      if (first !== undefined) return first;
      told.push(one);
    }
    throw why(told);
  }

  async #there<A extends Ask>(other: string, ask: A, asked: Asks[A], isOne: boolean): Promise<Told<A>> {
    const body = Buffer.from(JSON.stringify({ ask, asked, isOne }));
    try {
      const answer = await this.#options.peers.ask(other, OPERATE, body, { timeoutMs: ASK_MS });
      return JSON.parse(Buffer.from(answer).toString()) as Told<A>;
    } catch (error) {
      const { code, message } = error as PeerError;
      // What it had in hand is another's soon.
      const text = `Broker ${other} keeps some of the mailboxes, and does not answer (${code}): ${sentence(message)} Ask again.`;
      throw new OperatorError("denied", text);
    }
  }

  async #here<A extends Ask>(ask: A, asked: Asks[A], isOne: boolean): Promise<Told<A>> {
    const told: Told<A> = { found: [], refused: [] };
    if (ask === "totals") {
      const own = this.#options.own();
      if (own !== undefined) told.found.push(own as Answers[A]);
      return told;
    }
    for (const operator of this.#options.here()) {
      try {
        told.found.push((await act(operator, ask, asked)) as Answers[A]);
        if (isOne) return told;
      } catch (error) {
        if (!(error instanceof OperatorError)) throw error;
        told.refused.push({ code: error.code, message: error.message });
      }
    }
    return told;
  }
}

const EVERYTHING: Range = { offset: 0, limit: Number.MAX_SAFE_INTEGER };

function act(operator: MailboxOperator, ask: Ask, asked: Asks[Ask]): unknown {
  const { name, range, id, from, selection } = asked as Asks["messages"] & Asks["retry"] & Asks["drop"];
  switch (ask) {
    case "list":
      return operator.list(range);
    case "summary":
      return operator.summary(name);
    case "names":
      return operator.names();
    case "messages":
      return operator.messages(name, range);
    case "deadLetters":
      return operator.deadLetters(name, range);
    case "retry":
      return operator.retry(name, id, from);
    case "drop":
      return operator.drop(name, selection);
    case "totals":
      // Of a broker, not of a partition.
      return undefined;
  }
}

function totalOf(all: readonly MailboxesStatus[]): MailboxesStatus {
  const sum = (of: (one: MailboxesStatus) => number) => all.reduce((total, one) => total + of(one), 0);
  const oldest = all
    .flatMap(({ oldest: one }) => one ?? [])
    .sort((a, b) => (a.at < b.at ? -1 : 1))
    .at(0);
  const deadSince = all
    .flatMap((one) => one.deadSince ?? [])
    .sort()
    .at(0);
  return {
    inUse: sum(({ inUse }) => inUse),
    waiting: sum(({ waiting }) => waiting),
    leased: sum(({ leased }) => leased),
    dead: sum(({ dead }) => dead),
    ...(deadSince === undefined ? {} : { deadSince }),
    connections: sum(({ connections }) => connections),
    ...(all.some(({ sharers }) => sharers !== undefined) ? { sharers: sum(({ sharers = 0 }) => sharers) } : {}),
    oldest,
    mailboxes: merged(all.flatMap((one) => one.mailboxes)).slice(0, MAX_IN_STATUS),
  };
}

/** What one has to say of it goes before that others do not know it. */
function why(told: readonly Told<Ask>[]): OperatorError {
  const refused = told.flatMap((one) => one.refused);
  const { code, message } = refused.find((one) => one.code !== "not-found") ??
    refused[0] ?? { code: "denied", message: "No broker has the mailboxes in hand now: ask again in some seconds." };
  return new OperatorError(code, message);
}

/** One of each name, the fullest first. */
function merged(all: readonly MailboxSummary[]): MailboxSummary[] {
  const byName = new Map<string, MailboxSummary>();
  for (const one of all) {
    const before = byName.get(one.mailbox);
    byName.set(one.mailbox, before === undefined ? one : sumOf(before, one));
  }
  const weight = ({ waiting, leased, dead }: MailboxSummary) => waiting + leased + dead;
  return [...byName.values()].sort((a, b) => weight(b) - weight(a) || (a.mailbox < b.mailbox ? -1 : 1));
}

function sumOf(a: MailboxSummary, b: MailboxSummary): MailboxSummary {
  return {
    mailbox: a.mailbox,
    waiting: a.waiting + b.waiting,
    leased: a.leased + b.leased,
    dead: a.dead + b.dead,
    bytes: a.bytes + b.bytes,
    oldestAt: [a.oldestAt, b.oldestAt].flatMap((at) => at ?? []).sort()[0],
    connections: Math.max(a.connections, b.connections),
    since: a.since ?? b.since,
  };
}

function pageOf<T>(found: readonly Page<T>[], { offset, limit }: Range, isBefore: (a: T, b: T) => boolean): Page<T> {
  const items = found.flatMap((one) => one.items).sort((a, b) => (isBefore(a, b) ? -1 : 1));
  return { items: items.slice(offset, offset + limit), total: found.reduce((sum, one) => sum + one.total, 0) };
}
