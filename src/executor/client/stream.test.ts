// One stream under every order of messages, pauses, losses and aborts.

import { ok, strictEqual } from "node:assert";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { MIB } from "../../runtime/sizes.js";
import { MAX_QUEUED_BYTES } from "../../sockets/limits.js";
import { MAX_QUEUED_DELTAS } from "../wire/limits.js";
import { ExecutorError } from "../wire/types.js";
import { ClientStream, type StreamOwner } from "./stream.js";
import type { UploadSender } from "./upload.js";

class Keeper implements StreamOwner {
  queuedBytes = 0;
  inFlight = 1;
  takenBytes = 0;
  gaveUpOn = 0;
  leftBy = 0;
  arrived(): boolean {
    return true;
  }
  taken(_stream: ClientStream, bytes: number): void {
    this.takenBytes += bytes;
  }
  gaveUp(): void {
    this.gaveUpOn++;
  }
  left(): void {
    this.leftBy++;
  }
}

interface Told {
  readonly heads: number[];
  text: string;
  readonly endings: (ExecutorError | "end")[];
  afterEnd: number;
}

function watched(whole = false, onData?: (stream: ClientStream) => void) {
  const owner = new Keeper();
  const told: Told = { heads: [], text: "", endings: [], afterEnd: 0 };
  const stream: ClientStream = new ClientStream(
    "http-1",
    {
      onHead(status) {
        if (told.endings.length > 0) told.afterEnd++;
        told.heads.push(status);
      },
      onData(chunk) {
        if (told.endings.length > 0 || told.heads.length === 0) told.afterEnd++;
        told.text += chunk.toString();
        onData?.(stream);
      },
      onEnd: () => told.endings.push("end"),
      onError: (error) => told.endings.push(error),
    },
    owner,
    whole,
  );
  return { owner, told, stream };
}

const piece = (seq: number, text: string, done = false, error?: string) => ({
  requestId: "http-1",
  seq,
  data: Buffer.from(text),
  done,
  error,
});

type Event = "head" | "delta" | "last" | "broken" | "gap" | "pause" | "resume" | "lose" | "abort" | "refuse";

const events = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.constant<Event>("delta") },
    { weight: 3, arbitrary: fc.constantFrom<Event>("head", "pause", "resume") },
    { weight: 1, arbitrary: fc.constantFrom<Event>("last", "broken", "gap", "lose", "abort", "refuse") },
  ),
  { maxLength: 60 },
);

describe("a stream at the client", () => {
  it("[exec-keep] tells the head, every piece in order, and one ending that is true", () => {
    fc.assert(
      fc.property(events, fc.infiniteStream(fc.constantFrom("", "pause", "flicker")), (history, moods) => {
        const { owner, told, stream } = watched(false, (self) => {
          const mood = moods.next().value;
          if (mood !== "") self.pause();
          if (mood === "flicker") self.resume();
        });
        let seq = 0;
        let sent = "";
        /** What can be told at all: the first ending that came from the peer or the connection. */
        let ending: "end" | "failed" | "protocol" | "disconnected" | undefined;
        let aborted = false;
        let refused = false;
        let hasHead = false;
        for (const event of history) {
          const open = !aborted && told.endings.length === 0;
          const isContent = ending === undefined && open;
          switch (event) {
            case "head":
              if (open && !refused) hasHead = true;
              stream.answered(200, [], Buffer.alloc(0));
              break;
            case "delta":
            case "last":
            case "broken": {
              const text = `${seq + 1};`;
              if (isContent) sent += text;
              if (isContent && event === "last") ending = "end";
              if (isContent && event === "broken") ending = "failed";
              stream.delta(piece(++seq, text, event !== "delta", event === "broken" ? "cut" : undefined));
              break;
            }
            case "gap":
              if (isContent) ending = "protocol";
              stream.delta(piece(seq + 2, "gap"));
              break;
            case "pause":
              stream.pause();
              break;
            case "resume":
              stream.resume();
              break;
            case "lose":
              if (open && (isContent || !hasHead)) ending = "disconnected";
              stream.fail(new ExecutorError("disconnected", "gone", { sent: true }));
              break;
            case "refuse":
              if (open && !hasHead) refused = true;
              stream.refused(new ExecutorError("refused", "no", { sent: false }));
              break;
            case "abort":
              stream.abort();
              aborted = true;
              break;
          }
          // node:assert, because so many expect()s would take most of the time.
          ok(told.endings.length <= 1);
          ok(told.heads.length <= 1);
          strictEqual(told.afterEnd, 0);
          ok(sent.startsWith(told.text));
        }
        // A reader that reads on hears everything.
        for (let i = 0; i < 200; i++) stream.resume();
        expect(sent.startsWith(told.text)).toBe(true);
        const [end] = told.endings;
        if (hasHead && end !== undefined) expect(told.text).toBe(sent);
        if (hasHead && !aborted && ending !== undefined) {
          expect(end === "end" ? "end" : end?.code).toBe(ending);
        }
        if (end === "end") expect(ending).toBe("end");
        if (stream.isOver) {
          expect(owner.queuedBytes).toBe(0);
          expect(owner.leftBy).toBe(1);
        } else {
          expect(owner.leftBy).toBe(0);
        }
      }),
      { numRuns: histories(5_000) },
    );
  });

  it("[exec-keep] keeps 256 pieces for a reader that waits, and no more", () => {
    const { owner, told, stream } = watched();
    stream.answered(200, [], Buffer.alloc(0));
    stream.pause();
    for (let seq = 1; seq <= MAX_QUEUED_DELTAS; seq++) stream.delta(piece(seq, "x"));
    expect(owner.gaveUpOn).toBe(0);
    stream.delta(piece(MAX_QUEUED_DELTAS + 1, "y"));
    expect(owner.gaveUpOn).toBe(1);
    stream.delta(piece(MAX_QUEUED_DELTAS + 2, "", true));
    stream.resume();
    expect(told.text).toBe("x".repeat(MAX_QUEUED_DELTAS));
    expect(told.endings).toMatchObject([{ code: "overflow" }]);
  });

  it("[exec-1] is ended where memory runs out and it holds most of it", () => {
    const greedy = watched();
    const modest = watched();
    const owner = greedy.owner;
    owner.inFlight = 2;
    for (const { stream } of [greedy, modest]) stream.answered(200, [], Buffer.alloc(0));
    greedy.stream.pause();
    let seq = 0;
    const chunk = Buffer.alloc(MIB);
    while (owner.queuedBytes + MIB <= MAX_QUEUED_BYTES) {
      greedy.stream.delta({ requestId: "", seq: ++seq, data: chunk, done: false, error: undefined });
    }
    // The other shares the book.
    Object.assign(modest.owner, { queuedBytes: owner.queuedBytes, inFlight: 2 });
    modest.stream.pause();
    modest.stream.delta({ requestId: "", seq: 1, data: chunk, done: true, error: undefined });
    greedy.stream.delta({ requestId: "", seq: ++seq, data: chunk, done: true, error: undefined });
    modest.stream.resume();
    greedy.stream.resume();
    expect(modest.told.endings).toEqual(["end"]);
    expect(greedy.told.endings).toMatchObject([{ code: "overflow" }]);
  });

  it("tells a whole answer as head, body and end", () => {
    const { told, stream, owner } = watched(true);
    stream.delta(piece(1, "nobody asked for it"));
    stream.answered(404, [], Buffer.from("none"));
    expect(told).toMatchObject({ heads: [404], text: "none", endings: ["end"] });
    expect(owner.leftBy).toBe(1);
  });

  it.each<[string, (stream: ClientStream) => void]>([
    ["a loss", (stream) => stream.fail(new ExecutorError("disconnected", "gone", { sent: true }))],
    ["a gap", (stream) => stream.delta(piece(7, "no"))],
    ["the answer's end", (stream) => stream.delta(piece(2, "", true))],
  ])("%s ends its upload at once, though a reader that pauses hears of it later", (_what, end) => {
    const { told, stream } = watched();
    let stopped = 0;
    stream.upload = { stop: () => stopped++ } as unknown as UploadSender;
    stream.answered(200, [], Buffer.alloc(0));
    stream.pause();
    stream.delta(piece(1, "one"));
    expect(stopped).toBe(0);
    end(stream);
    expect([stopped > 0, told.endings.length]).toEqual([true, 0]);
    stream.resume();
    expect([told.text, told.endings.length]).toEqual(["one", 1]);
  });

  it("still ends where it is closed from within its handler", () => {
    const { told, stream } = watched(false, (self) => {
      self.fail(new ExecutorError("closed", "closed", { sent: true }));
    });
    stream.answered(200, [], Buffer.alloc(0));
    stream.delta(piece(1, "one"));
    expect(told).toMatchObject({ text: "one", endings: [{ code: "closed" }] });
  });
});
