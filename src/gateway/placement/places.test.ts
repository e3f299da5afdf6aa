import { Duplex } from "node:stream";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { GatewayEngine } from "../../contracts/engine/engine.js";
import type { ServerSpec } from "../../contracts/server-spec.js";
import { ServerPlaces } from "./places.js";

const SPEC = {
  name: "s",
  placement: "one",
  target: { kind: "stdio", command: "node", args: [], env: {}, cwd: undefined },
} as unknown as ServerSpec;

const silent = () => new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });

/** Gateway b has the server, and each stream to it says nothing. */
function world() {
  const streams: Duplex[] = [];
  let taken: (stream: Duplex, from: string) => void = () => {};
  const engine = {
    self: "a",
    partitions: {
      of: () => 1,
      ownerOf: () => "b",
      mayAct: () => false,
      keeps: () => false,
      onLost: () => () => {},
      onChange: () => () => {},
    },
    peers: {
      accept(_kind, act) {
        taken = act;
        return () => {};
      },
      async connect() {
        const stream = silent();
        streams.push(stream);
        return stream;
      },
    } as Partial<GatewayEngine["peers"]>,
  } as unknown as GatewayEngine;
  return { streams, places: new ServerPlaces(engine), come: (stream: Duplex) => taken(stream, "b") };
}

describe("a server that another gateway has in hand", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it("is asked for again where that gateway says nothing for 20 s [placement-one]", async () => {
    vi.useFakeTimers();
    const { streams, places } = world();
    const end = new AbortController();
    const found = places.of(SPEC)?.find(end.signal);
    await vi.advanceTimersByTimeAsync(19_000);
    expect(streams.map(({ destroyed }) => destroyed)).toEqual([false]);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(streams.map(({ destroyed }) => destroyed)).toEqual([true, false]);
    end.abort();
    await expect(found).rejects.toThrow("gateway b did not answer");
  });
});

describe("a stream of another gateway", () => {
  it("that cannot be served is ended and told, and ends nothing else [placement-one]", async () => {
    const { places, come } = world();
    const failed = vi.fn();
    const why = new Error("It could not be loaded.");
    places.accept(() => Promise.reject(why), failed);
    const stream = silent();
    come(stream);
    await expect.poll(() => failed.mock.calls).toEqual([[why]]);
    expect(stream.destroyed).toBe(true);
    // One that is lost before it is looked at is no error of anybody's.
    places.accept(() => new Promise(() => {}), failed);
    const lost = silent();
    come(lost);
    lost.destroy(new Error("The other is gone."));
    await new Promise((resolve) => lost.once("close", resolve));
  });
});
