// A link to a server that one of several gateways runs, in histories that a seed brings back: what is sent, and to whom, when the
// server moves at any moment.

import { Duplex } from "node:stream";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { seeded } from "../../../test/faults/random.js";
import { until } from "../../../test/fixtures/wait.js";
import { Fault } from "../../protocol/errors.js";
import { ownHolder } from "../../runtime/memory/held-bytes.js";
import type { Link, LinkEvents, Ticket } from "../link/link.js";
import { PassedLink } from "./passed-link.js";
import { PlacedLink } from "./placed-link.js";
import { takeSession, withSession, wordLine } from "./words.js";

const SEEDS = histories(2_000);
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** A child that answers when it is told to. */
class Child implements Link {
  readonly got: number[] = [];
  isRunning = false;
  /** A real one takes its time. */
  ending: Promise<void> = Promise.resolve();
  readonly #events: LinkEvents;

  constructor(events: LinkEvents) {
    this.#events = events;
  }

  async open(): Promise<void> {
    this.isRunning = true;
  }

  send(_text: string, ticket: Ticket | undefined): void {
    if (ticket !== undefined) this.got.push(ticket.id);
  }

  established(): void {}
  forget(): void {}

  async close(): Promise<void> {
    await this.ending;
    this.isRunning = false;
  }

  die(): void {
    this.isRunning = false;
    this.#events.onClosed(new Fault("outcome-unknown", "It exited."));
  }

  describe() {
    return { kind: "stdio" as const };
  }
}

interface Scene {
  readonly link: PlacedLink;
  readonly child: () => Child | undefined;
  readonly unsent: number[];
  readonly ends: string[];
  mayRun: boolean;
  move(isInTime: boolean): Promise<void>;
  readonly isEnded: () => boolean;
}

function sceneOf(): Scene {
  let child: Child | undefined;
  let end: ((isInTime: boolean) => Promise<void>) | undefined;
  let isEnded = false;
  const unsent: number[] = [];
  const ends: string[] = [];
  const events: LinkEvents = {
    onMessage() {},
    onPieces() {},
    onLargeReply() {},
    onFailed(ticket, fault, sent) {
      if (sent || fault.code !== "unavailable") throw new Error("it was told as sent");
      unsent.push(ticket.id);
    },
    onClosed: ({ code }) => void ends.push(code),
    onNoise() {},
  };
  const scene: Scene = {
    mayRun: true,
    unsent,
    ends,
    child: () => child,
    isEnded: () => isEnded,
    async move(isInTime: boolean) {
      scene.mayRun = false;
      await end?.(isInTime);
    },
    link: new PlacedLink(events, {
      place: {
        mayRun: () => scene.mayRun,
        find: async () => "here",
        runs(act) {
          end = act;
          return () => {
            isEnded = true;
          };
        },
      },
      own: (theirs) => {
        child = new Child(theirs);
        return child;
      },
      passed: () => {
        throw new Error("It is here.");
      },
    }),
  };
  return scene;
}

const ticketOf = (id: number): Ticket => ({ id, method: "tools/call", subject: undefined });

describe("a server that runs here", () => {
  it("gets each request once or is said not to have it, nothing once another may run it, and is gone when that is told [placement-one]", async () => {
    for (let seed = 1; seed <= SEEDS; seed++) await history(seed);
  });

  it("may end what is under way when it is handed over, and not when it was lost [placement-one]", async () => {
    const scene = sceneOf();
    await scene.link.open(new AbortController().signal);
    const ticket = ticketOf(1);
    scene.link.send("{}", ticket);
    const moving = scene.move(true);
    scene.link.send("{}", ticketOf(2));
    await settle();
    expect([scene.child()?.isRunning, scene.ends, scene.unsent]).toEqual([true, [], [2]]);
    scene.link.forget(ticket);
    await moving;
    expect([scene.child()?.isRunning, scene.ends]).toEqual([false, ["outcome-unknown"]]);

    const lost = sceneOf();
    await lost.link.open(new AbortController().signal);
    lost.link.send("{}", ticketOf(1));
    await lost.move(false);
    expect([lost.child()?.isRunning, lost.ends]).toEqual([false, ["outcome-unknown"]]);
  });

  it("has what comes while it ends told as not sent, so that it goes to the next [placement-one]", async () => {
    for (const isInTime of [true, false]) {
      const scene = sceneOf();
      await scene.link.open(new AbortController().signal);
      const child = scene.child() as Child;
      let ended = () => {};
      child.ending = new Promise((resolve) => {
        ended = resolve;
      });
      const moving = scene.move(isInTime);
      await settle();
      scene.link.send("{}", ticketOf(1));
      expect([child.isRunning, scene.ends, scene.unsent, child.got]).toEqual([true, [], [1], []]);
      ended();
      await moving;
      expect([child.isRunning, scene.ends]).toEqual([false, ["outcome-unknown"]]);
    }
  });

  it("is not left running where it moved while it was started [placement-one]", async () => {
    const scene = sceneOf();
    scene.mayRun = false;
    await expect(scene.link.open(new AbortController().signal)).rejects.toThrow("Another gateway runs this server");
    expect([scene.child()?.isRunning, scene.isEnded()]).toEqual([false, true]);
  });
});

async function history(seed: number): Promise<void> {
  const random = seeded(seed);
  const scene = sceneOf();
  const { link } = scene;
  await link.open(new AbortController().signal);
  const child = scene.child() as Child;
  const open = new Map<number, Ticket>();
  let sentAfter = 0;
  let moving: Promise<void> | undefined;
  for (let id = 1; id <= 20; id++) {
    const what = random.int(10);
    if (what < 6) {
      const before = child.got.length;
      const ticket = ticketOf(id);
      open.set(id, ticket);
      link.send("{}", ticket);
      if (!scene.mayRun && child.got.length > before) sentAfter++;
    } else if (what < 8) {
      const [first] = open.values();
      if (first !== undefined) {
        open.delete(first.id);
        link.forget(first);
      }
    } else if (what === 8) moving ??= scene.move(random.int(2) === 0);
    else if (random.int(4) === 0) child.die();
    else scene.mayRun = scene.mayRun && random.int(6) > 0;
    if (random.int(3) === 0) await settle();
  }
  for (const ticket of open.values()) link.forget(ticket);
  await moving;
  await settle();
  const both = child.got.filter((id) => scene.unsent.includes(id));
  const isDone = scene.ends.length === 0 || (!child.isRunning && scene.isEnded());
  if (sentAfter > 0 || both.length > 0 || scene.ends.length > 1 || !isDone) {
    throw new Error(`seed ${seed}: ${JSON.stringify({ sentAfter, both, ends: scene.ends, isDone })}`);
  }
  await link.close();
}

describe("what is passed to another gateway", () => {
  it("says whose session it is of, which the server never sees [placement-one]", () => {
    const text = '{"jsonrpc":"2.0","id":1,"params":{"a":"}"}} \n';
    const marked = withSession(text, 'a "key" \\ of/anybody');
    expect(JSON.parse(marked)).toMatchObject({ id: 1, params: { a: "}" } });
    expect(takeSession(marked)).toEqual({
      text: '{"jsonrpc":"2.0","id":1,"params":{"a":"}"}}',
      sessionKey: 'a "key" \\ of/anybody',
    });
    expect(takeSession('{"jsonrpc":"2.0","id":1}')).toBeUndefined();
    // The last one counts, whatever an agent wrote.
    expect(takeSession(withSession('{"id":1,"toolway/session":"forged"}', "real"))?.sessionKey).toBe("real");
  });

  it("goes to the next that runs the server where it was not begun, by the word of the gateway alone [placement-one]", async () => {
    const { link, say, unsent, ends, heard } = await passedScene();
    for (let id = 1; id <= 3; id++) link.send(`{"id":${id}}`, ticketOf(id));
    // Words of a server, whatever they look like, are its answers.
    const forged = [
      '{"id":1,"error":{"code":-32099,"data":{"toolway/moved":true}}}',
      '{"moved":2}',
      'guess{"moved":2}',
    ];
    for (const line of forged) say(line);
    await settle();
    expect([unsent, heard]).toEqual([[], forged]);
    say(wordLine("secret", { moved: 2 }));
    await settle();
    expect([unsent, heard.length, ends]).toEqual([[2], forged.length, []]);
  });

  it("is told as unknown where it was read, and goes to the next where it was not [placement-one]", async () => {
    const { link, say, end, unsent, ends } = await passedScene();
    for (let id = 1; id <= 4; id++) link.send(`{"id":${id}}`, ticketOf(id));
    link.send('{"method":"notifications/cancelled"}', undefined);
    link.forget(ticketOf(1));
    say(wordLine("secret", { taken: 2 }));
    link.send('{"id":5}', ticketOf(5));
    end();
    await until("its end", () => ends.length > 0);
    expect([unsent, ends]).toEqual([[3, 4, 5], ["outcome-unknown"]]);
  });

  it("is all told as unknown where the gateway was lost without a word [placement-one]", async () => {
    const { link, end, unsent, ends } = await passedScene();
    link.send('{"id":1}', ticketOf(1));
    end();
    await until("its end", () => ends.length > 0);
    expect([unsent, ends]).toEqual([[], ["outcome-unknown"]]);
  });
});

/** A link to a gateway that says what the test says. */
async function passedScene() {
  const unsent: number[] = [];
  const ends: string[] = [];
  const heard: string[] = [];
  const stream = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  const events: LinkEvents = {
    onMessage: (bytes) => void heard.push(bytes.toString()),
    onPieces() {},
    onLargeReply() {},
    onFailed: (ticket, _fault, sent) => void (sent || unsent.push(ticket.id)),
    onClosed: ({ code }) => void ends.push(code),
    onNoise() {},
  };
  const link = new PassedLink(
    { stream, secret: "secret", serverEra: undefined, isAsWritten: false },
    events,
    ownHolder,
  );
  await link.open();
  const say = (line: string) => void stream.push(`${line}\n`);
  return { link, say, end: () => void stream.push(null), unsent, ends, heard };
}
