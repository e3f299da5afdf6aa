// When a call is given up whose agent has gone, by a clock that the test moves.

import type { ServerResponse } from "node:http";
import { expect, it } from "vitest";
import { TestClock } from "../../../test/fixtures/test-clock.js";
import { WaitingPosts } from "../http/waiting-posts.js";
import { ENDPOINT_LIMITS } from "../session/limits.js";
import type { HttpSession } from "./http-session.js";
import { PostAnswer } from "./post-call.js";

const QUIET_MS = ENDPOINT_LIMITS.quietMs;

it("a call whose reply can reach nobody is cancelled after 30 s, counted anew where its agent has listened meanwhile [bounded]", () => {
  const session = { limits: ENDPOINT_LIMITS, listening: false };
  const res = { destroyed: true } as ServerResponse;
  const cancelled: unknown[] = [];
  const asked = { cancel: (reason: string | undefined) => void cancelled.push(reason) };
  const accepts = { json: true, events: true };
  const waiting = new WaitingPosts(new TestClock());
  const answer = new PostAnswer(asked, waiting, session as HttpSession, res, accepts, "1");
  const at = (nowMs: number) => answer.keepAlive(nowMs, QUIET_MS);
  at(1_000);
  at(30_999);
  session.listening = true;
  at(31_000);
  session.listening = false;
  at(40_000);
  at(69_999);
  expect(cancelled).toEqual([]);
  at(70_000);
  expect(cancelled).toEqual([expect.stringContaining("The agent has gone")]);
});
