// A broker, machines that share through it and whoever calls them, each a process of its own that can be killed and started
// again as it was; and a sender that knows the frames alone. For tests that compare what callers were told with what ran.

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cli, freePort, stdioFixture, temporaryDirectory, until } from "../e2e/harness.js";
import type { callTool } from "../e2e/operator.js";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { type Started, start } from "../fixtures/processes.js";
import { Gone } from "../fixtures/wait.js";

// ── The processes ──────────────────────────────────────────────────────────────────────────────────────────────────

/** One process that can be killed and started again as it was. */
export class Part {
  readonly #what: string;
  readonly #words: readonly string[];
  /** What its output has when it is there. */
  readonly #ready: string;
  #process: Started | undefined;

  /** `program` is what stands before the words of the line: the built program, or one that can be held. */
  constructor(what: string, line: readonly string[], ready: string, program: readonly string[] = [cli]) {
    this.#what = what;
    this.#words = [...program, ...line];
    this.#ready = ready;
    parts.push(this);
  }

  get pid(): number {
    return this.#process?.child.pid ?? 0;
  }

  /** All that it wrote since it was last started. */
  get log(): string {
    return this.#process?.log() ?? "";
  }

  get lastWords(): string {
    return `--- ${this.#what}\n${this.log.slice(-3_000)}\n`;
  }

  async start(): Promise<this> {
    const env = { ...process.env };
    delete env["TOOLWAY_TOKEN"];
    const one = start(this.#what, process.execPath, this.#words, env);
    this.#process = one;
    await until(`${this.#what} to be there`, () => {
      if (one.child.exitCode !== null) throw new Gone(`${this.#what} ended:\n${one.log()}`);
      return one.log().includes(this.#ready);
    });
    return this;
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await this.#process?.stop(signal);
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.child.kill(signal);
  }
}

const parts: Part[] = [];

/** Ends all that was started, and shows what they said where a test has failed. */
export async function endParts(hasFailed: boolean): Promise<void> {
  if (hasFailed) for (const { lastWords } of parts) process.stderr.write(lastWords);
  closeBareClients();
  await Promise.all(parts.splice(0).map((part) => part.kill()));
}

export interface Broker {
  readonly part: Part;
  readonly url: string;
}

export async function startBroker(program?: readonly string[], more: readonly string[] = []): Promise<Broker> {
  const listen = `127.0.0.1:${await freePort()}`;
  const state = join(await temporaryDirectory(), "state");
  const line = ["broker", "--listen", listen, "--no-auth", "--state", state, "--json", ...more];
  return { part: await new Part("broker", line, '{"broker"', program).start(), url: `ws://${listen}` };
}

/** A machine with a ledger; several of one mailbox have a state, and so a journal, of their own each. */
export class Machine {
  readonly part: Part;
  readonly #ledger: string;

  private constructor(part: Part, ledger: string) {
    this.part = part;
    this.#ledger = ledger;
  }

  static async start(broker: Pick<Broker, "url">, mailbox: string, program?: readonly string[]): Promise<Machine> {
    const folder = await temporaryDirectory();
    const config = join(folder, "mcp.json");
    const ledger = join(folder, "ledger.txt");
    await writeFile(ledger, "");
    const mcpServers = { ledger: stdioFixture("ledger", [], { env: { LEDGER: ledger } }) };
    await writeFile(config, JSON.stringify({ mcpServers }));
    const at = ["--broker", broker.url, "--as", mailbox, "--state", join(folder, "state")];
    const part = new Part(`sharer of ${mailbox}`, ["share", config, ...at, "--json"], '"connected"', program);
    return new Machine(await part.start(), ledger);
  }

  effects(): Promise<string[]> {
    return linesOf(this.#ledger);
  }
}

/** What a tool `note` has written down. */
export async function linesOf(file: string): Promise<string[]> {
  return (await readFile(file, "utf8")).split("\n").filter((line) => line !== "");
}

export async function effectsOf(machines: readonly Machine[]): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const machine of machines) {
    for (const effect of await machine.effects()) counts.set(effect, (counts.get(effect) ?? 0) + 1);
  }
  return counts;
}

// ── What callers were told ─────────────────────────────────────────────────────────────────────────────────────────

export type Told =
  | { readonly kind: "result" }
  | { readonly kind: "unknown" | "not run"; readonly why: string }
  /** The gateway itself was killed. */
  | { readonly kind: "cut" };

export function tellingOf({ result, error }: Awaited<ReturnType<typeof callTool>>): Told {
  if (error === undefined) {
    if (result?.["isError"] === true) return { kind: "not run", why: JSON.stringify(result) };
    return { kind: "result" };
  }
  return { kind: /is unknown/i.test(JSON.stringify(error)) ? "unknown" : "not run", why: error.message };
}

export function cut(): Told {
  return { kind: "cut" };
}

/** What callers were told, beside what ran: how often each, and each that does not fit. */
export function compare(told: ReadonlyMap<string, Told>, effects: ReadonlyMap<string, number>) {
  const sums = { result: 0, unknown: 0, "not run": 0, cut: 0 };
  const wrong: string[] = [];
  let lost = 0;
  for (const [text, outcome] of told) {
    sums[outcome.kind]++;
    const count = effects.get(text) ?? 0;
    if (outcome.kind === "result" && count === 0) lost++;
    const isRight = outcome.kind === "result" ? count === 1 : outcome.kind === "not run" ? count === 0 : count <= 1;
    if (!isRight) wrong.push(`${text}: ${count} effects, and its caller was told ${JSON.stringify(outcome)}`);
  }
  for (const [text, count] of effects)
    if (!told.has(text)) wrong.push(`${text}: ${count} effects, and nobody called it`);
  return { sums, wrong, lost, doubled: [...effects.values()].filter((count) => count > 1).length };
}

// ── A client that knows the frames alone ───────────────────────────────────────────────────────────────────────────

export interface Reply {
  readonly result?: { readonly success: boolean; readonly result: string };
  readonly error?: string;
  readonly outcome?: string;
}

/** Sends calls of "note", and keeps the replies by the ids of what they answer. */
export class Sender {
  readonly replies = new Map<string, Reply>();
  readonly delivered = new Set<string>();
  readonly #client: BareClient;

  readonly #acknowledges: boolean;

  private constructor(client: BareClient, acknowledges: boolean) {
    this.#client = client;
    this.#acknowledges = acknowledges;
    client.send({ kind: "subscribe" });
    void this.#take().catch(() => {});
  }

  /** One that acknowledges nothing is told again, by its next connection, what it was told. */
  static async connect(broker: Broker, { acknowledges = true } = {}): Promise<Sender> {
    return new Sender(await BareClient.connect(broker.url, "worker", ""), acknowledges);
  }

  /** It is gone, as one that was killed. */
  cut(): void {
    this.#client.socket.terminate();
  }

  note(to: string, id: string, leftMs: number, more: object = {}): void {
    const body = { op: "call", tool: "note", arguments: { text: id, ...more } };
    this.#client.deliver(to, id, body, { left_ms: leftMs });
  }

  reply(id: string): Promise<Reply> {
    return until(`the reply to ${id}`, () => this.replies.get(id));
  }

  async #take(): Promise<void> {
    for (;;) {
      const frame = await this.#client.next("message", "delivered");
      if (frame.kind === "delivered") this.delivered.add(String(frame["id"]));
      else {
        const { id, correlation_id: asked, body } = frame["message"] as Record<string, unknown>;
        this.replies.set(String(asked), body as Reply);
        if (this.#acknowledges) this.#client.send({ kind: "ack", id });
      }
    }
  }
}
