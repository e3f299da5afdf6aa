// The handshake on a socket, from the client's side: `initialize` out, its result in, `initialized` out.

import { HANDSHAKE_MS } from "../../sockets/limits.js";
import type { Socket } from "../../sockets/socket.js";
import { readFrame, renderNotification, renderRequest } from "../wire/frame.js";
import {
  type Agreement,
  EXTENSIONS_VERSION,
  INITIALIZE,
  INITIALIZED,
  type InitializeParams,
  type InitializeResult,
  isCount,
} from "../wire/protocol.js";
import { ExecutorError } from "../wire/types.js";
import { shortReason } from "./wire-request.js";

export interface HandshakeResult {
  readonly sessionId: string;
  /** Undefined for a plain exec-server, to which nothing of our extensions is sent. */
  readonly agreement: Agreement | undefined;
}

export interface ClientHandshakeEvents {
  /** Both ends are ready; the socket is the listener's from here on, within this very call. */
  onReady(result: HandshakeResult): void;
  /** The socket is gone already, or is ended here. */
  onFailed(error: ExecutorError): void;
}

export interface ClientHandshake {
  /** Nothing is heard of it any more; the socket is ended. */
  cancel(): void;
}

/** Characters of a session's id, which is kept and sent in a header. Ours are shorter. */
const MAX_SESSION_CHARS = 256;

/** The exec-server counts from 1 as well; nothing else is asked before it is answered. */
const INITIALIZE_ID = 1;

export function beginHandshake(
  socket: Socket,
  params: InitializeParams,
  events: ClientHandshakeEvents,
): ClientHandshake {
  let isOver = false;
  const fail = (why: string): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    socket.destroy(why);
    events.onFailed(new ExecutorError("unavailable", why, { sent: false }));
  };
  const timer = setTimeout(
    () => fail(`the executor did not answer initialize within ${HANDSHAKE_MS / 1000} s: is it one?`),
    HANDSHAKE_MS,
  );
  socket.attach({
    onMessage(bytes) {
      if (isOver) return;
      const frame = readFrame(bytes);
      // Whatever else comes before the answer is for a client that is ready.
      if (frame.kind === "broken") fail(`the other end does not speak an executor's protocol: ${frame.why}`);
      else if (frame.kind === "error" && frame.id === INITIALIZE_ID) {
        fail(`the executor refused to begin: ${shortReason(frame.error.message)} (${frame.error.code})`);
      } else if (frame.kind === "result" && frame.id === INITIALIZE_ID) {
        const result = readResult(frame.result);
        if (result === undefined) {
          fail("the executor's answer to initialize is not one");
          return;
        }
        isOver = true;
        clearTimeout(timer);
        socket.send(renderNotification(INITIALIZED, {}));
        events.onReady(result);
      }
    },
    onDrain() {},
    onClose: (why) => fail(`the executor closed the connection before it was ready: ${why}`),
  });
  socket.send(renderRequest(INITIALIZE_ID, INITIALIZE, params));
  return {
    cancel() {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      socket.destroy("another connection took its place");
    },
  };
}

function readResult(result: unknown): HandshakeResult | undefined {
  if (typeof result !== "object" || result === null) return undefined;
  const { sessionId, toolway } = result as Readonly<Record<keyof InitializeResult, unknown>>;
  if (typeof sessionId !== "string" || sessionId.length > MAX_SESSION_CHARS) return undefined;
  if (toolway === undefined || toolway === null) return { sessionId, agreement: undefined };
  if (!isAgreement(toolway)) return undefined;
  const { version, window, retentionMs, resumed, received } = toolway;
  // Nothing else of it is kept.
  return { sessionId, agreement: { version, window, retentionMs, resumed, received } };
}

function isAgreement(value: unknown): value is Agreement {
  if (typeof value !== "object" || value === null) return false;
  const { version, window, retentionMs, resumed, received } = value as Record<string, unknown>;
  return (
    version === EXTENSIONS_VERSION &&
    isCount(window) &&
    isCount(retentionMs) &&
    typeof resumed === "boolean" &&
    isCount(received)
  );
}
