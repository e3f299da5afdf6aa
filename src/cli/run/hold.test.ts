import { Duplex, PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { until } from "../../../test/fixtures/wait.js";
import type { RunLine, RunSummary } from "../../contracts/runs.js";
import { RunHold } from "./hold.js";
import { closingLine } from "./text.js";

/** A gateway's end of one connection: what the run asked, and what it is told. */
class Gateway {
  readonly #out = new PassThrough();
  readonly #in = new PassThrough();
  readonly socket = Duplex.from({ readable: this.#out, writable: this.#in });
  asked: string[] = [];

  constructor(answer: (kind: string) => RunLine | undefined) {
    this.#in.on("data", (chunk: Buffer) => {
      for (const line of chunk.toString().split("\n").filter(Boolean)) {
        const { kind } = JSON.parse(line) as { kind: string };
        this.asked.push(kind);
        const said = answer(kind);
        if (said !== undefined) this.say(said);
      }
    });
  }

  say(line: RunLine): void {
    this.#out.write(`${JSON.stringify(line)}\n`);
  }

  die(): void {
    this.socket.destroy();
  }
}

const HELD: RunLine = {
  kind: "held",
  run: "r",
  principal: "run-r",
  role: "default",
  url: "http://127.0.0.1:1/mcp",
  forRuns: true,
  noAuth: false,
  secret: "s",
};
const summary = (calls: number, more: Partial<RunSummary> = {}): RunSummary => ({
  calls,
  refused: [],
  restarts: 0,
  queued: 0,
  ...more,
});
const REQUEST = { kind: "begin", client: "claude", context: {} } as const;

/** A run whose gateways come one after another. */
async function held(...gateways: Gateway[]) {
  const rest = [...gateways];
  const hold = await RunHold.begin(async () => rest.shift()?.socket, REQUEST);
  if (hold === undefined) throw new Error("It was not begun.");
  return hold;
}

it("a run that is not wanted any more waits for no answer of its gateway", async () => {
  const busy = new Gateway(() => undefined);
  const wanted = new AbortController();
  const begun = RunHold.begin(async () => busy.socket, REQUEST, wanted.signal);
  await until("the gateway to be asked", () => busy.asked.length === 1);
  wanted.abort();
  expect(await begun).toBeUndefined();
  expect(busy.socket.destroyed).toBe(true);
});

describe("the closing line of a run", () => {
  it("counts what every gateway of the run did, those included that were killed [run-own] [restart-unseen]", async () => {
    const rule = 'role "reader"';
    const first = new Gateway(() => HELD);
    const second = new Gateway((kind) =>
      kind === "end"
        ? { kind: "ended", ...summary(2, { refused: [{ rule, count: 1 }], queued: 1, restarts: 1 }) }
        : HELD,
    );
    const hold = await held(first, second);
    first.say({ kind: "figures", ...summary(1) });
    first.say({ kind: "figures", ...summary(3, { refused: [{ rule, count: 2 }], queued: 2 }) });
    await new Promise((done) => setImmediate(done));
    first.die();
    await until("the next gateway", () => second.asked.includes("resume"));
    await until("the run to be held again", () => hold.restarts === 1);
    const closing = await hold.end();
    expect(closing).toEqual(summary(5, { refused: [{ rule, count: 3 }], queued: 3, restarts: 1 }));
    expect(closingLine("run-r", closing ?? summary(0), hold.restarts)).toBe(
      'run-r: 5 calls, 3 refused (3 × role "reader"), 3 writes queued, 1 restart of servers unseen, 1 restart of the gateway',
    );
  });

  it("has what is known where no gateway is there at the end, and is none where nothing is [run-own]", async () => {
    const gone = new Gateway(() => HELD);
    const hold = await held(gone);
    gone.say({ kind: "figures", ...summary(4) });
    await new Promise((done) => setImmediate(done));
    gone.die();
    expect(await hold.end()).toEqual(summary(4));
    const silent = new Gateway(() => HELD);
    const other = await held(silent);
    silent.die();
    expect(await other.end()).toBeUndefined();
  });

  it("says why the gateway could not be had again, where the run ended without it [told-why]", async () => {
    const first = new Gateway(() => HELD);
    const second = new Gateway((kind) => (kind === "end" ? { kind: "ended", ...summary(1) } : HELD));
    const sockets = [first.socket];
    let tries = 0;
    const hold = await RunHold.begin(async () => {
      const socket = sockets.shift();
      if (socket === undefined && ++tries > 0) throw new Error(`port 7 is taken (${tries})`);
      return socket;
    }, REQUEST);
    first.die();
    await until("two tries", () => tries >= 2);
    // While there is hope nothing is said.
    expect(hold?.problems).toEqual([]);
    await hold?.end();
    expect(hold?.problems).toEqual([
      expect.stringMatching(/^The gateway went away, and could not be had again: port 7 is taken \(\d\)$/),
    ]);

    // One that came in the end leaves nothing to say.
    const gone = new Gateway(() => HELD);
    const later: (Duplex | Error)[] = [gone.socket, new Error("taken"), second.socket];
    const back = await RunHold.begin(async () => {
      const next = later.shift();
      if (next instanceof Error) throw next;
      return next;
    }, REQUEST);
    gone.die();
    await until("the next gateway", () => back?.restarts === 1);
    await back?.end();
    expect(back?.problems).toEqual([]);
  });

  it("says little of a run in which little happened [run-own]", () => {
    expect(closingLine("run-r", summary(1), 0)).toBe("run-r: 1 call, none refused");
    expect(closingLine("run-r", summary(1, { queued: 1 }), 0)).toBe("run-r: 1 call, none refused, 1 write queued");
  });
});
