// A session by itself, on a socket that takes nothing: what piles up has an end.

import { expect, test } from "vitest";
import { LogLines } from "../../../test/fixtures/executor/served.js";
import type { Socket } from "../../sockets/socket.js";
import type { HttpRequests } from "../http/requests.js";
import { ExecutorSession, ExecutorSessions } from "./session.js";

test("a client that asks for ever and reads nothing is ended, and its session with it", () => {
  const log = new LogLines();
  const sessions = new ExecutorSessions({ http: {} as HttpRequests, log, retentionMs: 1_000 });
  let sent = 0;
  let destroyed = false;
  const stuck = {
    saidGoodbye: false,
    get waiting() {
      return sent;
    },
    send: (frame: string) => {
      sent += frame.length;
    },
    attach() {},
    close() {},
    destroy: () => {
      destroyed = true;
    },
  } as unknown as Socket;
  const session = sessions.create(undefined);
  expect(session).toBeInstanceOf(ExecutorSession);
  session.claim(stuck);
  session.open(stuck, 0);
  const ask = Buffer.from(JSON.stringify({ id: "x".repeat(256), method: "nope".repeat(20) }));
  // Far more than any bound; without one this would go on to the end.
  for (let i = 0; i < 1_000_000 && !destroyed; i++) session.onMessage(ask);
  expect(destroyed).toBe(true);
  expect(sessions.size).toBe(0);
  expect(sent).toBeLessThan(150 * 1024 * 1024);
  expect(log.lines.filter((line) => line.startsWith("warn"))).toHaveLength(1);
});
