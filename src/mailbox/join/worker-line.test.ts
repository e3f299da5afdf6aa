import { beforeEach, describe, expect, it } from "vitest";
import type { BrokerLine, LineEvents } from "../peer/line.js";
import type { ReceivedLive, ReceivedMessage } from "../wire/broker-frames.js";
import { type MailboxUser, WorkerLine } from "./worker-line.js";

/** A mailbox as it is used from here, which only remembers. */
class Seen implements MailboxUser {
  readonly mailbox: string;
  readonly replies: ReceivedMessage[] = [];
  readonly lives: ReceivedLive[] = [];

  constructor(mailbox: string) {
    this.mailbox = mailbox;
  }

  onLine(): void {}
  onLost(): void {}
  readonly downs: [string, boolean][] = [];
  onDown(why: string, final: boolean): void {
    this.downs.push([why, final]);
  }
  onReply(message: ReceivedMessage): void {
    this.replies.push(message);
  }
  onLive(frame: ReceivedLive): void {
    this.lives.push(frame);
  }
  onPresence(): void {}
  onTurn(): void {}
  readonly silent: string[] = [];
  onSilent({ id }: { id: string }): void {
    this.silent.push(id);
  }
}

let events: LineEvents;
let acked: { id: string; from: string }[];
let granted: number;
let worker: WorkerLine;
let studio: Seen;
let attic: Seen;

beforeEach(async () => {
  acked = [];
  granted = 0;
  const line: Partial<BrokerLine> = {
    ack: (name) => void acked.push(name),
    credit(messages) {
      granted += messages;
    },
    live: () => true,
    watch() {},
  };
  worker = new WorkerLine({
    open: async (given) => {
      events = given;
      return line as BrokerLine;
    },
    failureOf: () => ({ why: "none", final: false }),
    now: () => 0,
    random: () => 0,
  });
  studio = new Seen("studio");
  attic = new Seen("attic");
  worker.attach("s", studio);
  worker.attach("a", attic);
  worker.want();
  await expect.poll(() => worker.line).toBe(line);
  granted = 0;
});

const reply = (from: string, correlationId: string | undefined): ReceivedMessage => ({
  id: `r-${from}-${correlationId}`,
  from,
  role: "sharer",
  kind: "mcp_reply",
  body: '{"message":{"jsonrpc":"2.0","id":1,"result":{}}}',
  correlationId,
  requestCorrelationId: undefined,
  leftMs: undefined,
  repeated: false,
});

const live = (from: string, correlationId: string | undefined): ReceivedLive => ({
  from,
  role: "sharer",
  correlationId,
  body: '{"op":"notification","message":{"jsonrpc":"2.0","method":"notifications/progress"}}',
});

describe("what comes over a worker's line", () => {
  it("reaches the mailbox that was asked, and leaves it to acknowledge [crossed-never]", () => {
    events.onMessage(reply("studio", "s-1"));
    events.onLive(live("attic", "a-1"));
    expect([studio.replies.length, studio.lives.length]).toEqual([1, 0]);
    expect([attic.replies.length, attic.lives.length]).toEqual([0, 1]);
    expect(acked).toEqual([]);
  });

  it.each([
    ["another mailbox that is used here too", "attic", "s-1"],
    ["another inbox of the same owner", "studio#2", "s-1"],
    ["a stranger", "cellar", "s-1"],
    ["the mailbox itself, for a call that nobody knows", "studio", "x-1"],
    ["the mailbox itself, for no call", "studio", undefined],
  ])("is dropped where it is from %s, and makes room for the next [crossed-never]", (_whose, from, id) => {
    events.onMessage(reply(from, id));
    events.onLive(live(from, id));
    expect([studio, attic].flatMap(({ replies, lives }) => [...replies, ...lives])).toEqual([]);
    // The broker would hand it out for ever, and its place would be taken for good.
    expect(acked).toEqual([{ id: `r-${from}-${id}`, from }]);
    expect(granted).toBe(1);
  });

  it("does not take the place of a reply that is being drawn [crossed-never]", () => {
    const large = reply("studio", "s-1");
    const draw = worker.draw(large, 1_000_000);
    events.onMessage(reply("attic", "s-1"));
    expect(acked).toEqual([{ id: "r-attic-s-1", from: "attic" }]);
    worker.endDraw(draw);
    expect(acked.at(-1)).toEqual({ id: large.id, from: "studio" });
  });
});

describe("a line that the broker refuses", () => {
  it("says so to whoever wants it later, too [told-why]", async () => {
    let dials = 0;
    const refused = new WorkerLine({
      open: () => Promise.reject(new Error(`refused, ${++dials}`)),
      failureOf: (error) => ({ why: (error as Error).message, final: true }),
      now: () => 0,
      random: () => 0,
    });
    const [first, later] = [new Seen("studio"), new Seen("attic")];
    refused.attach("s", first);
    refused.want();
    await expect.poll(() => first.downs).toEqual([["refused, 1", true]]);
    refused.attach("a", later);
    refused.want();
    await expect.poll(() => later.downs).toEqual([["refused, 1", true]]);
    expect(dials).toBe(1);
  });
});
