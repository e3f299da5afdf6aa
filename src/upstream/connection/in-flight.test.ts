// How long a call may take, and the order in which calls are looked at and end.

import { beforeEach, describe, expect, it } from "vitest";
import {
  Agent,
  begin,
  CALL_MS,
  clearStage,
  connect,
  settled,
  stage,
  TestCall,
} from "../../../test/fixtures/links/played.js";
import { SUPERVISED } from "../../../test/fixtures/spec.js";

beforeEach(clearStage);

describe("the time of a call", () => {
  it("does not run while its agent is being asked, and runs anew after the answer", async () => {
    const connection = connect();
    const ada = new Agent("ada");
    const call = begin(connection, ada);
    const other = begin(connection, new Agent("bob"));
    stage.link.asks(1, call.ticket);
    for (let i = 0; i < 20; i++) {
      stage.nowMs += CALL_MS / 4;
      connection.expire(stage.nowMs);
    }
    expect(call.replies).toEqual([]);
    // Another session's call has its own time.
    expect(await other.answer()).toMatchObject({ error: { code: -31004 } });
    ada.asked[0]?.answer({});
    await settled();
    stage.nowMs += CALL_MS / 2;
    connection.expire(stage.nowMs);
    expect(call.replies).toEqual([]);
    stage.nowMs += CALL_MS;
    connection.expire(stage.nowMs);
    expect(await call.answer()).toMatchObject({ error: { code: -31004 } });
  });

  it("is moved on by progress that the agent asked for, and by no other", () => {
    const connection = connect();
    const asked = begin(connection, new Agent("ada"), 1);
    const silent = begin(connection, new Agent("bob"));
    stage.nowMs += CALL_MS - 1;
    for (const { ticket } of [asked, silent]) {
      const params = { progressToken: ticket.id, progress: 1 };
      stage.link.says({ jsonrpc: "2.0", method: "notifications/progress", params });
    }
    stage.nowMs += 1;
    connection.expire(stage.nowMs);
    expect([asked.replies.length, silent.replies.length]).toEqual([0, 1]);
  });

  it("is extended by each progress, but not past its ceiling", async () => {
    const connection = connect();
    const ada = new Agent("ada");
    const call = begin(connection, ada, "token");
    const { callCeilingMs } = SUPERVISED.supervision;
    const params = { progressToken: call.ticket.id, progress: 1 };
    while (stage.nowMs + CALL_MS < callCeilingMs) {
      stage.nowMs += CALL_MS - 1;
      stage.link.says({ jsonrpc: "2.0", method: "notifications/progress", params });
      expect(connection.expire(stage.nowMs)).toBe(false);
    }
    stage.nowMs = callCeilingMs;
    stage.link.says({ jsonrpc: "2.0", method: "notifications/progress", params });
    expect(connection.expire(stage.nowMs)).toBe(true);
    expect(JSON.stringify(await call.answer())).toContain("in spite of all progress");
  });
});

it("calls that are lost with their connection end in the order in which they were sent", async () => {
  const connection = connect();
  const ended: number[] = [];
  // More than the first table holds, so that the order is not the table's by chance.
  const sent = Array.from({ length: 40 }, (_, i) => i);
  for (const i of sent) {
    connection.send(Object.assign(new TestCall(new Agent("ada")), { reply: () => void ended.push(i) }));
  }
  await connection.close();
  expect(ended).toEqual(sent);
});
