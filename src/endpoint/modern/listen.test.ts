// subscriptions/listen over real sockets: the acknowledgement, only what was asked for, and its end.

import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  begin,
  modern,
  type Rig,
  type Stream,
  send,
  startRig,
  stopRigs,
  stream,
  until,
} from "../../../test/fixtures/endpoint/http.js";
import { note } from "../../../test/fixtures/endpoint/service.js";

afterEach(stopRigs);

const ID = "io.modelcontextprotocol/subscriptionId";
const TOOLS = note("notifications/tools/list_changed");
const RESOURCES = note("notifications/resources/list_changed");
const updated = (uri: string) => note("notifications/resources/updated", { uri });

const listen = (rig: Rig, notifications: unknown, id: number | string = 1, headers = {}): Promise<Stream> =>
  stream(rig.url, modern(id, "subscriptions/listen", { notifications }, { headers }));

async function acknowledged(open: Stream): Promise<object> {
  await until(() => open.messages.length > 0);
  expect(open.messages[0].method).toBe("notifications/subscriptions/acknowledged");
  return open.messages[0].params;
}

const subscribers = (rig: Rig, uri: string) => rig.service.subscribed.get(uri)?.size ?? 0;

describe("subscriptions/listen", () => {
  it("acknowledges what it can honour, and tells of that alone, under its id", async () => {
    const rig = await startRig();
    const wanted = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: false };
    const open = await listen(rig, wanted, "mine");
    expect(open.headers).toMatchObject({ "content-type": "text/event-stream", "x-accel-buffering": "no" });
    expect(await acknowledged(open)).toEqual({ notifications: { toolsListChanged: true }, _meta: { [ID]: "mine" } });
    const presence = rig.service.opened[0];
    for (const text of [RESOURCES, note("notifications/prompts/list_changed"), updated("test://a")]) {
      presence?.notify(text);
    }
    presence?.notify(note("notifications/message", { level: "error", data: "x" }));
    presence?.notify(TOOLS);
    await until(() => open.messages.length === 2);
    expect(open.messages[1]).toMatchObject({
      method: "notifications/tools/list_changed",
      params: { _meta: { [ID]: "mine" } },
    });
    open.cut();
    await until(() => rig.endpoint.stats().streams === 0);
  });

  it("subscribes to resources once for all who listen, and ends that with the last of them", async () => {
    const rig = await startRig();
    const uris = ["test://a", "test://down", "none://b"];
    const one = await listen(rig, { resourceSubscriptions: uris }, 1);
    const two = await listen(rig, { resourceSubscriptions: ["test://a"], resourcesListChanged: true }, 2);
    const bob = await listen(rig, { resourceSubscriptions: ["test://a"] }, 1, { authorization: "Bearer token-b" });
    // One that is down is subscribed to when it is there; one that nobody has is left out.
    expect(await acknowledged(one)).toMatchObject({
      notifications: { resourceSubscriptions: ["test://a", "test://down"] },
    });
    await acknowledged(two);
    await acknowledged(bob);
    expect(subscribers(rig, "test://a")).toBe(2);
    const [alice] = rig.service.opened;
    alice?.notify(updated("test://a/part"));
    alice?.notify(updated("test://down"));
    alice?.notify(RESOURCES);
    await until(() => one.messages.length === 3 && two.messages.length === 3);
    expect(one.messages.map(({ params }) => params._meta[ID])).toEqual([1, 1, 1]);
    expect(two.messages.map(({ params }) => params._meta[ID])).toEqual([2, 2, 2]);
    expect(bob.messages).toHaveLength(1);
    one.cut();
    await until(() => rig.endpoint.stats().streams === 2);
    expect(subscribers(rig, "test://a")).toBe(2);
    two.cut();
    await until(() => subscribers(rig, "test://a") === 1);
  });

  it("tells of nothing before the acknowledgement, and waits for no server for long", async () => {
    const rig = await startRig({ limits: { listenAckMs: 1_000 } });
    const open = await Promise.race([
      listen(rig, { resourceSubscriptions: ["test://slow"], toolsListChanged: true }),
      until(() => rig.service.slow.length === 1).then(() => {
        rig.service.opened[0]?.notify(TOOLS);
        rig.service.opened[0]?.notify(TOOLS);
        return new Promise<never>(() => {});
      }),
    ]);
    expect(await acknowledged(open)).toMatchObject({ notifications: { resourceSubscriptions: ["test://slow"] } });
    await until(() => open.messages.length === 2);
    expect(open.messages[1].method).toBe("notifications/tools/list_changed");
  });

  it("shows that it is alive", async () => {
    const rig = await startRig({ limits: { quietMs: 30 } });
    const open = await listen(rig, { toolsListChanged: true });
    await until(() => open.comments.length >= 2);
    expect(open.messages).toHaveLength(1);
  });

  it("shows that it is alive every 25 s at most, by the limits that stand, as a stream of the legacy era does", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const rig = await startRig({ clock: { now: () => Date.now(), wall: () => Date.now() } });
    const headers = await begin(rig.url);
    // Just after the timer has begun: when it finds them quiet for long enough, it does so as late as it can.
    vi.advanceTimersByTime(1);
    const streams = [
      await listen(rig, { toolsListChanged: true }),
      await stream(rig.url, { method: "GET", headers: { ...headers } }),
    ];
    await until(() => streams.every(({ status }) => status === 200));
    await acknowledged(streams[0] as Stream);
    const before = streams.map(({ comments }) => comments.length);
    vi.advanceTimersByTime(25_000);
    await until(() => streams.every(({ comments }, i) => comments.length > (before[i] ?? 0)));
  });

  it.each([
    ["close", (rig: Rig) => void rig.endpoint.close({ drainMs: 10_000 })],
    ["revoke", (rig: Rig) => rig.endpoint.closePrincipals(({ id }) => id === "alice")],
  ])("ends with a result, on %s", async (_name, end) => {
    const rig = await startRig();
    const open = await listen(rig, { toolsListChanged: true, resourceSubscriptions: ["test://a"] }, 7);
    await acknowledged(open);
    end(rig);
    await until(() => open.ended);
    expect(open.messages.at(-1)).toMatchObject({ id: 7, result: { resultType: "complete", _meta: { [ID]: 7 } } });
    expect(subscribers(rig, "test://a")).toBe(0);
    await until(() => rig.service.closed.length === 1);
  });

  it("refuses filters that are none, and more of them than it may hold [bounded]", async () => {
    const rig = await startRig({ limits: { listensPerPrincipal: 2, listenUris: 2 } });
    const refused = async (notifications: unknown, headers = {}) =>
      send(rig.url, modern(1, "subscriptions/listen", { notifications }, { headers }));
    for (const filter of [undefined, [], { toolsListChanged: 1 }, { resourceSubscriptions: [5] }]) {
      expect((await refused(filter)).json.error.code).toBe(-32602);
    }
    expect((await refused({ resourceSubscriptions: ["test://1", "test://2", "test://3"] })).json.error.code).toBe(
      -32602,
    );
    expect((await refused({}, { accept: "application/json" })).status).toBe(406);
    const open = [await listen(rig, {}, 1), await listen(rig, { toolsListChanged: true }, 2)];
    for (const one of open) await acknowledged(one);
    expect((await refused({})).json.error.code).toBe(-31006);
    const bob = await listen(rig, {}, 1, { authorization: "Bearer token-b" });
    expect(await acknowledged(bob)).toMatchObject({ notifications: {} });
  });
});
