// A client of an executor that knows nothing: frames are sent as they are given, and kept as they come.

import { type RawData, WebSocket } from "ws";
import { until } from "../fixtures/wait.js";

export interface RawFrame {
  readonly id?: string | number | null;
  readonly method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the peer wrote; the tests say what it should be.
  readonly params?: any;
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  readonly result?: any;
  readonly error?: { readonly code: number; readonly message: string };
}

export class RawPeer {
  /** All that came, oldest first. */
  readonly frames: RawFrame[] = [];
  readonly ws: WebSocket;
  #nextId = 1;
  #closed: boolean = false;

  private constructor(ws: WebSocket) {
    this.ws = ws;
    ws.on("message", (data: RawData) => this.frames.push(JSON.parse(data.toString()) as RawFrame));
    ws.on("close", () => {
      this.#closed = true;
    });
    ws.on("error", () => {});
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Connected, nothing said yet. */
  static async open(url: string, token: string): Promise<RawPeer> {
    const ws = new WebSocket(url, { headers: { authorization: `Bearer ${token}` }, perMessageDeflate: false });
    const peer = new RawPeer(ws);
    await new Promise<void>((resolve, reject) => {
      ws.once("open", resolve);
      ws.once("error", reject);
    });
    return peer;
  }

  /** Connected and greeted. */
  static async ready(url: string, token: string): Promise<RawPeer> {
    const peer = await RawPeer.open(url, token);
    await peer.call("initialize", { clientName: "raw" });
    peer.send({ method: "initialized", params: {} });
    return peer;
  }

  send(frame: object | string): void {
    this.ws.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  /** The answer, whatever it is. */
  call(method: string, params?: unknown, id: string | number = this.#nextId++): Promise<RawFrame> {
    this.send({ id, method, params });
    return this.answer(id);
  }

  answer(id: string | number): Promise<RawFrame> {
    return until(`answer ${id}`, () => {
      if (this.#closed) throw new Error(`closed before answer ${id}`);
      return this.frames.find((frame) => frame.id === id && frame.method === undefined);
    });
  }

  deltas(requestId: string): RawFrame[] {
    return this.frames.filter((frame) => frame.params?.requestId === requestId);
  }

  /** All deltas of a stream, once it has ended. */
  async ended(requestId: string): Promise<RawFrame[]> {
    await until(`end of ${requestId}`, () => this.deltas(requestId).at(-1)?.params.done === true);
    return this.deltas(requestId);
  }

  async close(): Promise<void> {
    this.ws.terminate();
    await until("close", () => this.#closed);
  }
}
