// What a broker has said to be delivered, whatever becomes of it: kills, copies of its files in mid-write, a full disk.
// Bare clients send and take; what they were told is compared with what is there.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { headerOf, messageOf } from "../../src/mailbox/broker/record.js";
import { openStore } from "../../src/store/local/store.js";
import { type Gateway, startGateway, temporaryDirectory, until } from "../e2e/harness.js";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { figure } from "./length.js";
import { linux, report } from "./measure.js";

const KILLS = figure(3, 20);
const COPIES = figure(6, 300);
const BOXES = 4;
/** Messages of one sender: all of them are read in each copy, and a mailbox holds no more than 5,000 of one. */
const MAX_SENT = 3_000;
/** Deliveries of one sender that are not answered yet. */
const AT_ONCE = 16;

let gateway: Gateway;
const url = () => `${gateway.origin.replace("http", "ws")}/mailboxes`;

beforeAll(async () => {
  gateway = await startGateway({ mcpServers: {}, mailboxes: {} } as never);
});
afterAll(closeBareClients);

/** Mailboxes of one test's own, at each of its tries. */
let rounds = 0;

/** Sends for ever, and repeats with the same ids what was not answered before its connection broke. */
class Sender {
  readonly delivered = new Set<string>();
  readonly #box: string;
  readonly #most: number;
  #next = 0;
  readonly #open = new Set<string>();
  #isOver = false;

  constructor(box: string, most: number) {
    this.#box = box;
    this.#most = most;
  }

  /** Until its connection ends. */
  async run(): Promise<void> {
    const client = await BareClient.connect(url(), `to-${this.#box}`, "");
    const send = (id: string) => client.deliver(this.#box, id, { id, text: "x".repeat(id.length * 97) });
    for (const id of this.#open) send(id);
    for (;;) {
      while (!this.#isOver && this.#open.size < AT_ONCE && this.#next < this.#most) {
        const id = `m-${this.#box}-${this.#next++}`;
        this.#open.add(id);
        send(id);
      }
      if (this.#isOver && this.#open.size === 0) return;
      const { kind, id, reason } = await client.next("delivered", "error");
      if (kind === "error") throw new Error(`refused: ${reason}`);
      this.#open.delete(String(id));
      this.delivered.add(String(id));
    }
  }

  /** Sends no more, and waits for what is under way. */
  stop(): void {
    this.#isOver = true;
  }
}

/** Takes all that is in a mailbox, and acknowledges it. */
class Taker {
  readonly received = new Set<string>();
  readonly #box: string;

  constructor(box: string) {
    this.#box = box;
  }

  async run(): Promise<void> {
    const client = await BareClient.connect(url(), this.#box, "");
    client.send({ kind: "subscribe" });
    for (;;) {
      const { id } = await client.message();
      this.received.add(id);
      client.send({ kind: "ack", id });
    }
  }
}

/** Runs them until the broker is gone, and says what ended them. */
function untilCut(runs: readonly { run(): Promise<void> }[]): Promise<string[]> {
  return Promise.all(
    runs.map((one) =>
      one.run().then(
        () => "over",
        (error: Error) => error.message,
      ),
    ),
  );
}

class Scene {
  readonly senders: Sender[] = [];
  readonly takers: Taker[] = [];

  constructor() {
    const round = ++rounds;
    for (let n = 0; n < BOXES; n++) {
      this.senders.push(new Sender(`box-${round}-${n}`, n < BOXES / 2 ? MAX_SENT : Number.POSITIVE_INFINITY));
      this.takers.push(new Taker(`box-${round}-${n}`));
    }
  }

  get delivered(): number {
    return this.senders.reduce((sum, one) => sum + one.delivered.size, 0);
  }

  /** All send, and half of the mailboxes are emptied meanwhile; until the broker is gone. */
  run(): Promise<string[]> {
    return untilCut([...this.senders, ...this.takers.slice(BOXES / 2)]);
  }

  /** Ends when all that was said to be delivered has come. */
  async drain(running: Promise<unknown>): Promise<void> {
    for (const one of this.senders) one.stop();
    const rest = untilCut(this.takers.slice(0, BOXES / 2));
    const hasAll = (one: Sender, n: number) => [...one.delivered].every((id) => this.takers[n]?.received.has(id));
    await until("all that was delivered", () => this.senders.every(hasAll), 60_000);
    closeBareClients();
    await Promise.all([running, rest]);
  }
}

describe.skipIf(!linux)("what a broker has taken", () => {
  it(`is there after ${KILLS} kills during deliveries, all of it [ack-is-durable]`, async () => {
    const scene = new Scene();
    for (let kill = 0; kill < KILLS; kill++) {
      const cut = scene.run();
      const before = scene.delivered;
      await until("some to be delivered", () => scene.delivered >= before + 40 + 13 * kill);
      await gateway.stop("SIGKILL");
      for (const why of await cut) expect(why).toContain("closed");
      gateway = await gateway.again();
    }
    await scene.drain(scene.run());
    report("mailboxes", `${scene.delivered} delivered over ${KILLS} kills: none lost [ack-is-durable]`);
  }, 120_000);

  it(`is in each of ${COPIES} copies of its files that are taken in mid-write, which open whole [ack-is-durable]`, async () => {
    const [file = ""] = readdirSync(gateway.stateDir, { recursive: true, encoding: "utf8" }).filter((name) =>
      name.endsWith("data.mdb"),
    );
    const scratch = await temporaryDirectory();
    const scene = new Scene();
    const running = scene.run();
    let found = 0;
    for (let n = 0; n < COPIES; n++) {
      const before = scene.delivered;
      await until("some more to be delivered", () => scene.delivered >= before + 1 + (n % 7));
      const told = scene.senders.flatMap((one) => [...one.delivered]);
      const copy = join(scratch, `copy-${n}`);
      mkdirSync(copy);
      process.kill(gateway.pid, "SIGSTOP");
      try {
        await until("it to stand still", () => standsStill(gateway.pid));
        copyFileSync(join(gateway.stateDir, file), join(copy, "data.mdb"));
      } finally {
        process.kill(gateway.pid, "SIGCONT");
      }
      // What was acknowledged may be gone, and what is missing else was lost.
      const gone = new Set(scene.takers.flatMap((one) => [...one.received]));
      const ids = await idsIn(copy);
      const missing = told.filter((id) => !ids.has(id) && !gone.has(id));
      expect(missing, `copy ${n}`).toEqual([]);
      found += ids.size;
      rmSync(copy, { recursive: true });
    }
    expect(found).toBeGreaterThan(COPIES);
    await scene.drain(running);
    report("mailboxes", `${COPIES} copies in mid-write, ${found} messages in them: none lost [ack-is-durable]`);
  }, 240_000);

  it("stays when there is no room on the disk, where deliveries are refused by name, and go on with room [ack-is-durable]", async () => {
    const worker = await BareClient.connect(url(), "worker", "");
    const sizes = readdirSync(gateway.stateDir, { recursive: true }).map(
      (name) => statSync(join(gateway.stateDir, String(name))).size,
    );
    const limit = (bytes: string) => execFileSync("prlimit", ["--pid", String(gateway.pid), `--fsize=${bytes}:`]);
    limit(String(Math.max(...sizes)));
    const taken: string[] = [];
    let refused: string | undefined;
    for (let n = 0; n < 4_000 && refused === undefined; n++) {
      worker.deliver("attic", `d-${n}`, "x".repeat(50_000));
      const { kind, id, reason } = await worker.next("delivered", "error");
      if (kind === "delivered") taken.push(String(id));
      else refused = String(reason);
    }
    expect(refused).toMatch(/could not be stored: .*(full|room|space)/i);
    limit("unlimited");
    worker.deliver("attic", "after", "room again");
    await until("a delivery", async () => {
      const { kind } = await worker.next("delivered", "error");
      if (kind === "error") worker.deliver("attic", "after", "room again");
      return kind === "delivered";
    });
    await gateway.stop("SIGKILL");
    gateway = await gateway.again();
    const attic = await BareClient.connect(url(), "attic", "");
    attic.send({ kind: "subscribe" });
    for (const expected of [...taken, "after"]) {
      const { id } = await attic.message();
      expect(id).toBe(expected);
      attic.send({ kind: "ack", id });
    }
  }, 120_000);
});

function standsStill(pid: number): boolean {
  return readdirSync(`/proc/${pid}/task`).every((task) =>
    /^State:\s+T/m.test(readFileSync(`/proc/${pid}/task/${task}/status`, "latin1")),
  );
}

/** The ids of all messages in a store; each of them can be read. */
async function idsIn(dir: string): Promise<Set<string>> {
  const store = await openStore({ dir });
  try {
    const ids = new Set<string>();
    for (const [, record] of store.log("mail").entries()) {
      const { id } = headerOf(record);
      JSON.parse(messageOf(record));
      ids.add(id);
    }
    return ids;
  } finally {
    await store.close();
  }
}
