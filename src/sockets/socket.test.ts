import { EventEmitter, once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { KIB, MIB } from "../runtime/sizes.js";
import { MAX_UNACKED_BYTES, PING_MS, SILENCE_MS } from "./limits.js";
import { Close, type FrameMask, Socket, type SocketEvents } from "./socket.js";

const cleanups: (() => void)[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});

/** Both ends of a real connection; the server's is bare. */
async function pair(options: { autoPong?: boolean; onPeer?: (peer: WebSocket) => void; mask?: FrameMask } = {}) {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", autoPong: options.autoPong ?? true });
  cleanups.push(() => {
    for (const one of server.clients) one.terminate();
    server.close();
  });
  await once(server, "listening");
  const connected = once(server, "connection") as Promise<[WebSocket]>;
  if (options.onPeer !== undefined) server.on("connection", options.onPeer);
  const ws = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  // At once: what comes with the upgrade is not to be missed.
  const opened = new Promise<{ socket: Socket; wire: IncomingMessage["socket"] }>((resolve) => {
    ws.once("upgrade", ({ socket: wire }: IncomingMessage) => {
      ws.once("open", () => resolve({ socket: new Socket(ws, wire, options.mask ?? "random"), wire }));
    });
  });
  const [[peer], { socket, wire }] = await Promise.all([connected, opened]);
  cleanups.push(() => socket.destroy("the test is over"));
  return { socket, peer, wire };
}

class Ear implements SocketEvents {
  readonly messages: string[] = [];
  readonly ends: string[] = [];
  drains = 0;

  onMessage(bytes: Buffer): void {
    this.messages.push(bytes.toString());
  }

  onDrain(): void {
    this.drains++;
  }

  onClose(why: string): void {
    this.ends.push(why);
  }
}

it("a socket that is destroyed makes one error for all writes that were waiting, however many [bounded]", async () => {
  const { socket, peer, wire } = await pair();
  peer.pause();
  const errors: unknown[] = [];
  const write = wire.write.bind(wire);
  wire.write = ((bytes: Buffer, ...rest: unknown[]) => {
    const written = rest.pop() as (error?: Error) => void;
    return write(bytes, (error?: Error | null) => {
      if (error) errors.push(error);
      written?.(error ?? undefined);
    });
  }) as never;
  socket.attach(new Ear());
  for (let n = 0; n < 5_000; n++) socket.send("x".repeat(4_000));
  await new Promise((resolve) => setTimeout(resolve, 50));
  const gone = new Promise<string>((resolve) => socket.whenGone(resolve));
  socket.destroy("it does not read");
  expect(await gone).toBe("it does not read");
  await vi.waitFor(() => expect(errors.length).toBeGreaterThan(1_000));
  // On newer Node the write that is under way has one of its own.
  expect(new Set(errors).size).toBeLessThanOrEqual(2);
});

describe("many small messages that come with one read", () => {
  const flooded = () => {
    const ws = Object.assign(new EventEmitter(), { isPaused: true, bufferedAmount: 0, readyState: 1 });
    const terminate = () => ws.emit("close", 1006, Buffer.alloc(0));
    const pause = { pause: () => (ws.isPaused = true), resume: () => (ws.isPaused = false), terminate };
    const socket = new Socket(Object.assign(ws, pause) as never, { bytesRead: 0, destroy() {} } as never, "none");
    cleanups.push(() => void ws.emit("close", 1000, Buffer.alloc(0)));
    const ear = new Ear();
    socket.attach(ear);
    return { ws, socket, ear };
  };
  const texts = Array.from({ length: 1_000 }, (_, n) => `${n}`);

  it("are taken some in each turn, in order, nothing is read meanwhile, and the end comes behind them [bounded]", async () => {
    const { ws, ear } = flooded();
    for (const text of texts) ws.emit("message", Buffer.from(text));
    ws.emit("close", 1000, Buffer.alloc(0));
    const seen: number[] = [];
    for (let before = 0; ear.ends.length === 0; before = ear.messages.length) {
      seen.push(ear.messages.length - before);
      expect(ws.isPaused).toBe(true);
      await new Promise(setImmediate);
    }
    expect(Math.max(...seen)).toBeLessThanOrEqual(128);
    expect(ear.messages).toEqual(texts);
    expect([ear.ends, ws.isPaused]).toEqual([["the peer closed it"], false]);
  });

  it("are forgotten where the socket is destroyed for one of them", async () => {
    const { ws, socket, ear } = flooded();
    vi.spyOn(ear, "onMessage").mockImplementation((bytes) => {
      if (ear.messages.push(bytes.toString()) === 300) socket.destroy("it says too much");
    });
    for (const text of texts) ws.emit("message", Buffer.from(text));
    while (ear.ends.length === 0) await new Promise(setImmediate);
    for (let n = 0; n < 10; n++) await new Promise(setImmediate);
    expect([ear.messages.length, ear.ends]).toEqual([300, ["it says too much"]]);
  });
});

describe("large messages of many sockets", () => {
  it("are read in turns: who sent one waits until those of others were, and small ones never do [bounded]", async () => {
    const sockets = Array.from({ length: 8 }, () => {
      const ws = Object.assign(new EventEmitter(), { isPaused: true, bufferedAmount: 0, readyState: 1 });
      const pause = { pause: () => (ws.isPaused = true), resume: () => (ws.isPaused = false), terminate() {} };
      const socket = new Socket(Object.assign(ws, pause) as never, { bytesRead: 0, destroy() {} } as never, "none");
      cleanups.push(() => void ws.emit("close", 1000, Buffer.alloc(0)));
      const ear = new Ear();
      socket.attach(ear);
      return { ws, ear };
    });
    const paused = () => sockets.filter(({ ws }) => ws.isPaused).length;
    expect(paused()).toBe(0);
    // Of this turn there is 1 MiB.
    for (const { ws } of sockets) ws.emit("message", Buffer.alloc(512 * KIB));
    expect(sockets.map(({ ear }) => ear.messages.length)).toEqual(sockets.map(() => 1));
    expect(paused()).toBe(6);
    sockets[0]?.ws.emit("message", Buffer.from("small"));
    expect(paused()).toBe(6);
    const left: number[] = [];
    while (paused() > 0) {
      await new Promise(setImmediate);
      left.push(paused());
    }
    expect(left).toEqual([4, 2, 0]);
  });
});

describe("a socket", () => {
  it("brings whole messages in order, and none before somebody hears them", async () => {
    const { socket, peer } = await pair({
      onPeer: (one) => {
        for (let i = 0; i < 100; i++) one.send(`message ${i}`);
        one.send("x".repeat(1 * MIB));
      },
    });
    await expect.poll(() => peer.bufferedAmount).toBe(0);
    const ear = new Ear();
    socket.attach(ear);
    await expect.poll(() => ear.messages.length).toBe(101);
    expect(ear.messages.slice(0, 100)).toEqual(Array.from({ length: 100 }, (_, i) => `message ${i}`));
    expect(ear.messages[100]).toHaveLength(1 * MIB);
  });

  it("gives what comes next to whom it was attached to last, within one packet too", async () => {
    const { socket, peer } = await pair();
    const second = new Ear();
    const first = new Ear();
    socket.attach({
      ...first,
      onDrain: () => {},
      onClose: () => {},
      onMessage: (bytes) => {
        first.onMessage(bytes);
        socket.attach(second);
      },
    });
    for (const text of ["one", "two", "three"]) peer.send(text);
    await expect.poll(() => second.messages).toEqual(["two", "three"]);
    expect(first.messages).toEqual(["one"]);
  });

  it("sends text, and leaves what it sent as it was: it may be sent again", async () => {
    const { socket, peer } = await pair();
    socket.attach(new Ear());
    const heard: string[] = [];
    peer.on("message", (data: Buffer, isBinary: boolean) => {
      expect(isBinary).toBe(false);
      heard.push(data.toString());
    });
    // Sent by the end that masks: its mask must not stay in the bytes.
    const frame = Buffer.from(`{"a":"${"é".repeat(50_000)}"}`);
    const before = Buffer.from(frame);
    for (let i = 0; i < 3; i++) socket.send(frame);
    socket.send("text");
    await expect.poll(() => heard.length).toBe(4);
    expect(frame.equals(before)).toBe(true);
    expect(heard).toEqual([...Array.from({ length: 3 }, () => before.toString()), "text"]);
  });

  it("makes one write of all the small texts of a turn, where it writes their frames itself", async () => {
    const { socket, peer, wire } = await pair({ mask: "zeros" });
    socket.attach(new Ear());
    socket.gather();
    const heard: string[] = [];
    peer.on("message", (data: Buffer) => heard.push(data.toString()));
    const wroteOne = vi.spyOn(wire, "_write" as never);
    const wroteMany = vi.spyOn(wire, "_writev" as never);
    for (let i = 0; i < 50; i++) socket.send(`together ${i}`);
    await expect.poll(() => heard.length).toBe(50);
    expect(wroteOne).toHaveBeenCalledTimes(1);
    expect(wroteMany).not.toHaveBeenCalled();
    expect(heard).toEqual(Array.from({ length: 50 }, (_, i) => `together ${i}`));
  });

  it("writes once for all that is sent within one turn, where it gathers, and loses nothing at its end", async () => {
    const { socket, peer, wire } = await pair();
    socket.attach(new Ear());
    const heard: string[] = [];
    peer.on("message", (data: Buffer) => heard.push(data.toString()));
    const wrote = vi.spyOn(wire, "_writev" as never);
    for (let i = 0; i < 5; i++) socket.send(`alone ${i}`);
    expect(wrote).toHaveBeenCalledTimes(5);
    socket.gather();
    for (let i = 0; i < 50; i++) socket.send(`together ${i}`);
    expect(wrote).toHaveBeenCalledTimes(5);
    await expect.poll(() => heard.length).toBe(55);
    expect(wrote).toHaveBeenCalledTimes(6);
    // What is much does not wait for the end of the turn.
    for (let i = 0; i < 4; i++) socket.send("x".repeat(40_000));
    expect(wrote).toHaveBeenCalledTimes(7);
    socket.send("the last");
    socket.close(Close.normal, "we go");
    await expect.poll(() => heard.at(-1)).toBe("the last");
    expect(heard.slice(5, 55)).toEqual(Array.from({ length: 50 }, (_, i) => `together ${i}`));
  });

  it.each<FrameMask>(["random", "zeros"])(
    "brings texts of every length and script whole and in order, where it gathers with a mask of %s",
    async (mask) => {
      const { socket, peer } = await pair({ mask });
      socket.attach(new Ear());
      socket.gather();
      const heard: string[] = [];
      peer.on("message", (data: Buffer, isBinary: boolean) => heard.push(`${isBinary}:${data.toString()}`));
      const lengths = [0, 1, 125, 126, 127, 255, 256, 65_535, 65_536, 70_000];
      const texts = lengths.flatMap((length) => [
        "a".repeat(length),
        "\u00e9".repeat(length / 2),
        `${length} \u{1f600}`,
      ]);
      for (const text of texts) socket.send(text);
      socket.send(Buffer.from("bytes"));
      socket.send("the last");
      await expect.poll(() => heard.length).toBe(texts.length + 2);
      expect(heard).toEqual([...texts, "bytes", "the last"].map((text) => `false:${text}`));
      await expect.poll(() => socket.waiting).toBe(0);
    },
  );

  it("of a server gathers without a mask, and says nothing after its goodbye", async () => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    cleanups.push(() => server.close());
    await once(server, "listening");
    const made = new Promise<Socket>((resolve) => {
      server.on("connection", (ws, request) => resolve(new Socket(ws, request.socket, "none")));
    });
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const heard: string[] = [];
    client.on("message", (data: Buffer) => heard.push(data.toString()));
    const closed = once(client, "close");
    const socket = await made;
    socket.attach(new Ear());
    socket.gather();
    socket.send("first");
    expect(socket.waiting).toBe("first".length + 2);
    socket.send("x".repeat(1_000));
    socket.send("\u{1f600}");
    socket.send("last");
    socket.close(Close.normal, "we go");
    socket.send("after the goodbye");
    const [code] = (await closed) as [number];
    expect(code).toBe(Close.normal);
    expect(heard).toEqual(["first", "x".repeat(1_000), "\u{1f600}", "last"]);
  });

  it("says when what was too much has been written", async () => {
    const { socket, peer } = await pair();
    const ear = new Ear();
    socket.attach(ear);
    peer.pause();
    const frame = Buffer.alloc(1 * MIB, "x");
    while (socket.waiting <= MAX_UNACKED_BYTES) socket.send(frame);
    expect(ear.drains).toBe(0);
    peer.resume();
    await expect.poll(() => ear.drains).toBe(1);
    await expect.poll(() => socket.waiting).toBe(0);
    expect(ear.drains).toBe(1);
    socket.send("small");
    await expect.poll(() => socket.waiting).toBe(0);
    expect(ear.drains).toBe(1);
  });
});

describe("the end of a socket", () => {
  it.each([
    ["a goodbye with words", (peer: WebSocket) => peer.close(Close.policy, "not you"), "not you"],
    ["a goodbye", (peer: WebSocket) => peer.close(Close.normal), "the peer closed it"],
    ["a goodbye with a code", (peer: WebSocket) => peer.close(Close.goingAway), "the peer closed it with code 1001"],
    ["no goodbye", (peer: WebSocket) => peer.terminate(), "the connection broke off"],
  ])("is told once, and why: %s", async (_, end, why) => {
    const { socket, peer } = await pair();
    const ear = new Ear();
    socket.attach(ear);
    end(peer);
    await expect.poll(() => ear.ends).toEqual([why]);
    // Who comes later hears of it too; who was replaced does not.
    const replaced = new Ear();
    const late = new Ear();
    socket.attach(replaced);
    socket.attach(late);
    expect(late.ends).toEqual([]);
    await expect.poll(() => late.ends).toEqual([why]);
    expect(replaced.ends).toEqual([]);
    expect(ear.ends).toEqual([why]);
  });

  it("comes after all that was sent before it", async () => {
    const { socket, peer } = await pair();
    for (let i = 0; i < 50; i++) peer.send(`${i}`);
    peer.close(Close.normal);
    const heard: string[] = [];
    const ear = new Ear();
    ear.onMessage = (bytes) => void heard.push(bytes.toString());
    ear.onClose = () => void heard.push("end");
    socket.attach(ear);
    await expect.poll(() => heard.at(-1)).toBe("end");
    expect(heard).toHaveLength(51);
  });

  it("is ours to say: at once, or with a goodbye of any length", async () => {
    const one = await pair();
    const ear = new Ear();
    one.socket.attach(ear);
    const gone = once(one.peer, "close") as Promise<[number, Buffer]>;
    one.socket.destroy("enough of it");
    expect((await gone)[0]).toBe(1006);
    await expect.poll(() => ear.ends).toEqual(["enough of it"]);

    const other = await pair();
    const goodbye = once(other.peer, "close") as Promise<[number, Buffer]>;
    other.socket.close(Close.replaced, "é".repeat(100));
    other.socket.close(Close.replaced, "again");
    const [code, reason] = await goodbye;
    expect(code).toBe(Close.replaced);
    expect(reason.toString()).toMatch(/^é{50,61}$/);
  });

  it("comes soon, though the peer says no goodbye", async () => {
    const { socket, peer } = await pair();
    const ear = new Ear();
    socket.attach(ear);
    peer.pause();
    socket.close(Close.goingAway, "we go");
    await expect.poll(() => ear.ends, { timeout: 20_000 }).toHaveLength(1);
  });

  it("makes sending, closing and ending it harmless", async () => {
    const { socket, peer } = await pair();
    const ear = new Ear();
    socket.attach(ear);
    peer.terminate();
    await expect.poll(() => ear.ends).toHaveLength(1);
    socket.send("nobody hears it");
    socket.close(Close.normal, "bye");
    socket.destroy("again");
    expect(ear.ends).toHaveLength(1);
  });

  it("comes when the peer breaks the rules of WebSockets", async () => {
    const { socket, peer } = await pair();
    const ear = new Ear();
    socket.attach(ear);
    const raw = (peer as unknown as { _socket: { write(bytes: Buffer): void } })._socket;
    // A frame with reserved bits.
    raw.write(Buffer.from([0xf1, 0x01, 0x41]));
    await expect.poll(() => ear.ends.length).toBe(1);
    expect(ear.ends[0]).toMatch(/RSV/);
  });
});

describe("a peer that is silent", () => {
  const faked = { toFake: ["setInterval", "clearInterval", "hrtime"] as ("setInterval" | "hrtime")[] };

  it("is given up", async () => {
    vi.useFakeTimers(faked);
    const { socket } = await pair({ autoPong: false });
    const ear = new Ear();
    socket.attach(ear);
    vi.advanceTimersByTime(SILENCE_MS + PING_MS + 1);
    vi.useRealTimers();
    await expect.poll(() => ear.ends).toEqual(["nothing was heard for 45 s"]);
  });

  it("is given up within two beats by whoever asks for that", async () => {
    vi.useFakeTimers(faked);
    const { socket } = await pair({ autoPong: false });
    const ear = new Ear();
    socket.attach(ear);
    socket.beat(10_000);
    vi.advanceTimersByTime(20_001);
    vi.useRealTimers();
    await expect.poll(() => ear.ends).toEqual(["nothing was heard for 10 s"]);
  });

  it("is none while a large message comes, piece by piece", async () => {
    vi.useFakeTimers(faked);
    const { socket, peer, wire } = await pair({ autoPong: false });
    const ear = new Ear();
    socket.attach(ear);
    for (let i = 0; i < 8; i++) {
      const came = once(wire, "data");
      peer.send(`${i} `, { fin: i === 7 });
      await came;
      vi.advanceTimersByTime(PING_MS);
    }
    vi.useRealTimers();
    await expect.poll(() => ear.messages).toEqual(["0 1 2 3 4 5 6 7 "]);
    expect(ear.ends).toEqual([]);
  });

  it("is kept where it answers pings", async () => {
    vi.useFakeTimers(faked);
    const { socket, peer } = await pair();
    const ear = new Ear();
    socket.attach(ear);
    for (let i = 0; i < 8; i++) {
      const pinged = once(peer, "ping");
      if (i === 4) socket.beat(PING_MS);
      vi.advanceTimersByTime(PING_MS);
      await pinged;
      // Behind its pong: when this is here, so is that.
      peer.send(`${i}`);
      await new Promise<void>((resolve) => {
        ear.onMessage = () => resolve();
      });
    }
    vi.useRealTimers();
    expect(ear.ends).toEqual([]);
  });
});
