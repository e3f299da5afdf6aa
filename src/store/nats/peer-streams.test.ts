import { createServer } from "node:http";
import type { Duplex } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { randomOf } from "../../../test/faults/random.js";
import { PeerNetwork as Network } from "../../../test/fixtures/store/peer-network.js";
import { until } from "../../../test/fixtures/wait.js";
import type { StreamHead } from "./peer-streams.js";

const turn = () => new Promise((resolve) => setImmediate(resolve));

function outcome(stream: Duplex): { text: () => string; error: () => Error | undefined; isAll: () => boolean } {
  const parts: Buffer[] = [];
  let error: Error | undefined;
  let isAll = false;
  stream.on("data", (part: Buffer) => parts.push(part));
  stream.on("end", () => {
    isAll = true;
  });
  stream.on("error", (one) => {
    error = one;
  });
  return { text: () => Buffer.concat(parts).toString(), error: () => error, isAll: () => isAll };
}

beforeEach(() => vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => vi.useRealTimers());

describe("a stream between gateways", () => {
  it("comes whole, both ways, and nothing of it is left [peers-answer]", async () => {
    const net = new Network(["a", "b"]);
    net.of("b").accept("echo", (stream) => stream.pipe(stream));
    const stream = await net.of("a").connect("b", "echo");
    const got = outcome(stream);
    const text = "piece by piece ".repeat(50_000);
    stream.end(text);
    while (!got.isAll()) await turn();
    expect([got.text() === text, got.error()]).toEqual([true, undefined]);
    await turn();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("holds a window of what nobody reads, and goes on when somebody does [bounded]", async () => {
    const net = new Network(["a", "b"]);
    let taken: Duplex | undefined;
    net.of("b").accept("slow", (stream) => {
      taken = stream;
    });
    const stream = await net.of("a").connect("b", "slow");
    let written = 0;
    while (stream.write(Buffer.alloc(8192)) && written++ < 1_000) await turn();
    for (let n = 0; n < 20; n++) await turn();
    expect(taken?.readableLength).toBeLessThanOrEqual(64 * 1024 + 32 * 1024);
    expect(stream.writableLength).toBeGreaterThan(0);
    taken?.resume();
    while (stream.writableLength > 0) await turn();
  });

  it("is a connection of Node's HTTP, which ends it when its reader stands still [bounded]", async () => {
    const net = new Network(["a", "b"]);
    let isCut = false;
    const server = createServer((_req, res) => {
      res.on("close", () => {
        isCut = !res.writableFinished;
      });
      res.end(Buffer.alloc(500_000));
      res.setTimeout(20);
    });
    net.of("b").accept("agents", (stream) => server.emit("connection", stream));
    const stream = await net.of("a").connect("b", "agents");
    stream.on("error", () => {});
    stream.write("GET / HTTP/1.1\r\nhost: b\r\n\r\n");
    await until("the cut", () => isCut && stream.destroyed);
  });

  it("is refused where nobody takes it, and ends with its gateway", async () => {
    const net = new Network(["a", "b"]);
    await expect(net.of("a").connect("b", "unheard")).rejects.toThrow('takes no streams of "unheard"');
    await expect(net.of("a").connect("c", "echo")).rejects.toThrow("away");
    net.of("b").accept("echo", (stream) => stream.pipe(stream));
    const got = outcome(await net.of("a").connect("b", "echo"));
    // Killed: nobody says goodbye.
    net.ends.delete("b");
    vi.advanceTimersByTime(4_000);
    await turn();
    expect(got.error()).toMatchObject({ code: "late" });
  });

  it("that breaks while it is begun is refused to whoever began it, and ends nothing else", async () => {
    const net = new Network(["a", "b"]);
    net.of("b").accept("echo", (stream) => stream.pipe(stream));
    const begun = net.of("a").connect("b", "echo");
    net.of("a").close();
    await expect(begun).rejects.toThrow("This gateway is closing.");
    net.ends.delete("b");
    const late = net.of("a").connect("b", "echo");
    vi.advanceTimersByTime(4_000);
    await expect(late).rejects.toThrow("away");
    await turn();
  });

  it("is not begun anew by messages that somebody kept and sends once more [peers-answer]", async () => {
    const net = new Network(["a", "b"]);
    const heard: string[] = [];
    net.of("b").accept("echo", (stream) => {
      stream.on("data", (part: Buffer) => heard.push(part.toString()));
      stream.on("end", () => stream.end());
    });
    const kept: StreamHead[] = [];
    net.lose = (head) => {
      kept.push(head);
      return false;
    };
    const stream = await net.of("a").connect("b", "echo");
    const got = outcome(stream);
    stream.end("once");
    while (!got.isAll()) await turn();
    net.of("b").onMessage("a", { id: "s0", stream: "open", kind: "echo", number: 0 }, new Uint8Array(0));
    for (const head of kept) net.of("b").onMessage("a", head, Buffer.from("once"));
    for (let n = 0; n < 5; n++) await turn();
    expect(heard).toEqual(["once"]);
    net.of("b").close();
  });

  it("is not broken by the end of the other end's part in it, however slowly the rest is read", async () => {
    const net = new Network(["a", "b"]);
    let taken: Duplex | undefined;
    net.of("b").accept("last", (stream) => {
      taken = stream;
      stream.end();
    });
    const stream = await net.of("a").connect("b", "last");
    const got = outcome(stream);
    stream.end("the last words");
    while (!got.isAll()) await turn();
    for (let n = 0; n < 3; n++) {
      vi.advanceTimersByTime(4_000);
      await turn();
    }
    const read = outcome(taken as Duplex);
    while (!read.isAll()) await turn();
    expect([read.text(), read.error(), got.error()]).toEqual(["the last words", undefined, undefined]);
  });

  it("has no hole, whatever is lost: all of it came, or both ends are told [peers-answer]", async () => {
    for (let seed = 1; seed <= histories(150); seed++) {
      const random = randomOf(seed);
      const net = new Network(["a", "b"]);
      let left = Math.floor(random() * 30);
      let isLost = false;
      net.lose = () => {
        if (isLost || left-- > 0) return false;
        isLost = true;
        return true;
      };
      let there: ReturnType<typeof outcome> | undefined;
      net.of("b").accept("echo", (stream) => {
        there = outcome(stream);
        stream.pipe(stream);
      });
      const stream = await net.of("a").connect("b", "echo");
      const here = outcome(stream);
      const text = "0123456789".repeat(Math.floor(random() * 20_000) + 1);
      stream.end(text);
      for (let n = 0; n < 400 && !here.isAll() && here.error() === undefined; n++) {
        await turn();
        if (n % 20 === 19) vi.advanceTimersByTime(4_000);
      }
      const isWhole = here.isAll() && here.text() === text && here.error() === undefined;
      expect(text.startsWith(here.text()), `seed ${seed}`).toBe(true);
      expect(isWhole || here.error() !== undefined, `seed ${seed}`).toBe(true);
      if (!isWhole) {
        vi.advanceTimersByTime(4_000);
        await turn();
        expect(there?.isAll() || there?.error() !== undefined, `seed ${seed}`).toBe(true);
      }
      for (const name of ["a", "b"]) net.of(name).close();
    }
  });
});
