// Proxies that cut connections at random points: one of bytes, which knows nothing of what it carries, and one of
// WebSocket messages, which also makes both ends believe that the other knows none of our extensions.

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { WebSocket, WebSocketServer } from "ws";
import { listenOnLoopback } from "../fixtures/loopback.js";
import type { Random } from "./random.js";

export interface CuttingProxy {
  readonly url: string;
  /** Connections that were cut. */
  readonly cuts: number;
  /** From now on nothing is cut. */
  heal(): void;
  close(): Promise<void>;
}

interface Wear {
  cuts: number;
  isHealed: boolean;
}

function handleOf(server: Server | WebSocketServer, wear: Wear, dropAll: () => void): CuttingProxy {
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get cuts() {
      return wear.cuts;
    },
    heal: () => {
      wear.isHealed = true;
    },
    close: async () => {
      dropAll();
      server.close();
      await once(server, "close");
    },
  };
}

/** Some are cut within the handshake, most under way. */
function budgetOf(random: Random, most: number): number {
  return random.chance(0.15) ? random.int(1_500) : random.int(most);
}

/** Cuts each connection after a random number of bytes, both ways together, in the middle of a message as a rule. */
export async function startCuttingProxy(target: string, random: Random, mostBytes: number): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  const wear: Wear = { cuts: 0, isHealed: false };
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    let left = budgetOf(random, mostBytes);
    const cut = (): void => {
      if (near.destroyed && far.destroyed) return;
      wear.cuts++;
      // As a router that forgets, or one that says so: one end may believe for a while that all is well.
      const [first, second] = random.chance(0.5) ? [near, far] : [far, near];
      if (random.chance(0.5)) first.destroy();
      else first.resetAndDestroy();
      if (random.chance(0.7)) second.destroy();
      else setTimeout(() => second.destroy(), random.int(300));
    };
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from);
      from.setNoDelay();
      from.on("error", () => {});
      from.on("close", () => {
        open.delete(from);
        if (left > 0) to.destroy();
      });
      from.on("data", (chunk: Buffer) => {
        if (left <= 0) return;
        left -= chunk.length;
        if (left > 0 || wear.isHealed) {
          left = Math.max(left, 1);
          if (!to.write(chunk)) from.pause();
          return;
        }
        to.write(chunk.subarray(0, chunk.length + left), cut);
        from.pause();
      });
      to.on("drain", () => from.resume());
    }
  });
  await listenOnLoopback(server);
  return handleOf(server, wear, () => {
    for (const socket of open) socket.destroy();
  });
}

/** Cuts after a random number of messages. Takes `toolway` out of what it carries: both ends take the other for plain. */
export async function startPlainProxy(target: string, random: Random, mostMessages: number): Promise<CuttingProxy> {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false });
  const wear: Wear = { cuts: 0, isHealed: false };
  server.on("connection", (near) => {
    const far = new WebSocket(target, { perMessageDeflate: false });
    const early: string[] = [];
    let left = 3 + random.int(mostMessages);
    const cut = (): void => {
      wear.cuts++;
      for (const one of [near, far]) one.terminate();
    };
    const carry = (to: WebSocket, data: Buffer): void => {
      if (left <= 0) return;
      left--;
      const text = withoutExtensions(data.toString());
      if (left > 0 || wear.isHealed) {
        left = Math.max(left, 1);
        to.send(text);
      } else {
        // What was handed over is on its way; what comes next is lost.
        to.send(text, cut);
      }
    };
    far.on("open", () => {
      for (const text of early.splice(0)) carry(far, Buffer.from(text));
    });
    near.on("message", (data: Buffer) => {
      if (far.readyState === WebSocket.CONNECTING) early.push(data.toString());
      else carry(far, data);
    });
    far.on("message", (data: Buffer) => carry(near, data));
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on("error", () => {});
      one.on("close", () => other.terminate());
    }
  });
  await once(server, "listening");
  return handleOf(server, wear, () => {
    for (const one of server.clients) one.terminate();
  });
}

function withoutExtensions(text: string): string {
  if (!text.includes('"toolway":')) return text;
  const message = JSON.parse(text) as { params?: { toolway?: unknown }; result?: { toolway?: unknown } };
  delete message.params?.toolway;
  delete message.result?.toolway;
  return JSON.stringify(message);
}
