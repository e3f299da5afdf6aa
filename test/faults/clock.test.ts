// The system's clock is set, by an hour and by a day, both ways. Wall time decides in three places only: when a token
// expires, how old a sealed session id may be, and since when a session that is not in memory was not used. In-process, because a test cannot set the machine's clock.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { createSealer } from "../../src/runtime/seal.js";
import { openStore } from "../../src/store/local/store.js";
import { TokenBook, type TokenRecord } from "../../src/tokens/tokens.js";
import { temporaryDirectory } from "../e2e/harness.js";
import {
  begin,
  call,
  capabilities,
  modern,
  rpc,
  send,
  startRig,
  stopRigs,
  stream,
  until,
} from "../fixtures/endpoint/http.js";
import { TestClock } from "../fixtures/test-clock.js";
import { report } from "./measure.js";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** How long a sealed id can be restored, as in src/endpoint/session/limits.ts. */
const SEALED_MS = 30 * DAY;
const JUMPS = [HOUR, -HOUR, DAY, -DAY];

afterEach(stopRigs);

describe("clock jumps", () => {
  it("end no session and no stream, neither at once nor over a restart [restart-unseen]", async () => {
    const clock = new TestClock();
    const sealer = createSealer(randomBytes(32));
    // An idle limit below the jumps: in memory it must go by the time that passed, not by what the clock says.
    const brief = { clock, sealer, sessions: { idleMs: HOUR / 2 }, limits: { quietMs: 30 } };
    // After a restart nothing but the clock tells how long nobody was there.
    const options = { ...brief, sessions: { idleMs: 2 * DAY } };
    let rig = await startRig(options);
    const used = await begin(rig.url);
    const unused = await begin(rig.url);
    const other = await startRig(brief);
    const lasting = await begin(other.url);
    const alive = async () => (await send(other.url, { body: rpc(1, "test/echo"), headers: lasting })).status;
    expect(await alive()).toBe(200);
    const ping = async (headers: typeof used) => (await send(rig.url, { body: rpc(1, "test/echo"), headers })).status;
    for (const jump of JUMPS) {
      expect(await ping(used)).toBe(200);
      const listening = await stream(rig.url, { method: "GET", headers: used });
      clock.jumpWall(jump);
      // Two ticks: keep-alive and the sweep have seen the new time.
      clock.advance(61_000);
      await until(() => listening.comments.length > 0);
      expect([jump, await ping(used), listening.ended]).toEqual([jump, 200, false]);
      expect([jump, await alive()]).toEqual([jump, 200]);
      await rig.endpoint.close({ drainMs: 0 });
      rig = await startRig(options);
      expect([jump, await ping(used), await ping(unused)]).toEqual([jump, 200, 200]);
    }
    report(
      "clock jumps",
      `${JUMPS.map((jump) => `${jump / HOUR} h`).join(", ")}: sessions and streams go on [restart-unseen]`,
    );
  });

  it("end no question of a modern agent, and none of its streams", async () => {
    const clock = new TestClock();
    const rig = await startRig({ clock, sealer: createSealer(randomBytes(32)), limits: { quietMs: 30 } });
    const filter = { notifications: { toolsListChanged: true } };
    const listening = await stream(rig.url, modern(1, "subscriptions/listen", filter));
    const question = { method: "elicitation/create", params: { message: "Who?", requestedSchema: {} } };
    const meta = capabilities({ elicitation: {} });
    const asking = (params = {}) => send(rig.url, call(1, "rounds", { rounds: [[question]] }, { params, meta }));
    for (const jump of JUMPS) {
      const { requestState, inputRequests } = (await asking()).json.result;
      const answer = { action: "accept", content: {} };
      const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, answer]));
      clock.jumpWall(jump);
      clock.advance(61_000);
      const { json } = await asking({ requestState, inputResponses });
      expect([jump, json.result?.resultType, listening.ended]).toEqual([jump, "complete", false]);
    }
    // It is the time that passed which ends it, whatever the clock says.
    const { requestState, inputRequests } = (await asking()).json.result;
    clock.jumpWall(-DAY);
    clock.advance(DAY);
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, { action: "accept" }]));
    expect((await asking({ requestState, inputResponses })).json.error).toMatchObject({ code: -32602 });
    listening.cut();
  });

  it("do not make a sealed id immortal, nor one from the future invalid", async () => {
    const clock = new TestClock();
    const sealer = createSealer(randomBytes(32));
    const first = await startRig({ clock, sealer });
    const headers = await begin(first.url);
    const status = async () => {
      // Each from nothing but its id.
      const rig = await startRig({ clock, sealer, sessions: { idleMs: SEALED_MS } });
      return (await send(rig.url, { body: rpc(1, "test/echo"), headers })).status;
    };
    clock.jumpWall(-DAY);
    expect(await status()).toBe(200);
    clock.jumpWall(DAY + SEALED_MS);
    expect(await status()).toBe(200);
    clock.jumpWall(1);
    expect(await status()).toBe(404);
    // The clock was wrong, and is set right: nothing was lost by it.
    clock.jumpWall(-DAY);
    expect(await status()).toBe(200);
  });

  it("end a token's life when the clock says so, and give it back when the clock was wrong", async () => {
    const dir = await temporaryDirectory();
    const store = await openStore({ dir: join(dir, "store") });
    const clock = new TestClock();
    const tokens = new TokenBook({ map: store.shared<TokenRecord>("tokens"), tokenPath: join(dir, "token") });
    const token = await tokens.create({ id: "ci", role: "r", expires: clock.wall() + 2 * HOUR }, clock.wall());
    const rig = await startRig({ clock, authenticate: (text, nowMs) => tokens.authenticate(text, nowMs) });
    const headers = { authorization: `Bearer ${token}` };
    const status = async () => (await send(rig.url, { body: rpc(0, "initialize", {}), headers })).status;
    const seen: [number, number][] = [];
    for (const jump of [0, HOUR, DAY, -DAY, -HOUR, -DAY, DAY]) {
      clock.jumpWall(jump);
      seen.push([jump, await status()]);
    }
    expect(seen).toEqual([
      [0, 200],
      [HOUR, 200],
      [DAY, 401],
      [-DAY, 200],
      [-HOUR, 200],
      [-DAY, 200],
      [DAY, 200],
    ]);
    await store.close();
  });
});
