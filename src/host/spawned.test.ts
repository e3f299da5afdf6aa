// Holds on servers under random comings and goings, of servers that start, fail and stop as they like.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { defaultSupervision, type ServerConfig } from "../config/config.js";
import { type ServerSet, SpawnedServers } from "./spawned.js";

const NAMES = ["a", "b"] as const;

function config(name: string, variant: number, lazy: boolean): ServerConfig {
  return {
    name,
    target: { kind: "stdio", command: `v${variant}`, args: [], env: {}, cwd: undefined },
    supervision: { ...defaultSupervision("stdio"), lazy },
  } as unknown as ServerConfig;
}

/** Says in which turn things happen; a server that is stopped takes a turn to go. */
class FakeServers implements ServerSet {
  applied: readonly ServerConfig[] = [];
  readonly running = new Map<string, ServerConfig>();
  readonly problems: string[] = [];
  readonly #refs = new Map<ServerConfig, number>();
  readonly #fails: (name: string) => boolean;

  constructor(fails: (name: string) => boolean) {
    this.#fails = fails;
  }

  async apply(servers: readonly ServerConfig[]): Promise<void> {
    this.applied = servers;
    if (new Set(servers.map(({ name }) => name)).size !== servers.length) this.problems.push("a name twice");
    for (const server of servers) {
      const running = this.running.get(server.name);
      if (running === server) continue;
      if (running !== undefined) this.problems.push("started while the one before runs");
      this.running.set(server.name, server);
    }
    await Promise.resolve();
  }

  async whenUp(name: string): Promise<void> {
    for (let i = 0; i < 3; i++) await Promise.resolve();
    if (!this.running.has(name) || this.#fails(name)) throw new Error(`${name} does not come up`);
  }

  retain(name: string): void {
    const server = this.#listed(name);
    if (server !== undefined) this.#refs.set(server, this.refs(name) + 1);
  }

  release(name: string): boolean {
    const server = this.#listed(name);
    if (server !== undefined) this.#refs.set(server, Math.max(0, this.refs(name) - 1));
    return this.refs(name) === 0;
  }

  refs(name: string): number {
    const server = this.#listed(name);
    return server === undefined ? 0 : (this.#refs.get(server) ?? 0);
  }

  #listed(name: string): ServerConfig | undefined {
    return this.applied.find((server) => server.name === name);
  }

  gone(name: string): () => Promise<void> {
    const running = this.running.get(name);
    return async () => {
      for (let i = 0; i < 5; i++) await Promise.resolve();
      if (this.running.get(name) === running) this.running.delete(name);
    };
  }
}

const step = fc.oneof(
  fc.record({
    kind: fc.constant("add" as const),
    name: fc.constantFrom(...NAMES),
    variant: fc.integer({ min: 0, max: 1 }),
    lazy: fc.boolean(),
  }),
  fc.record({
    kind: fc.constantFrom("release" as const, "remove" as const),
    name: fc.constantFrom(...NAMES),
  }),
  fc.record({ kind: fc.constant("settle" as const), name: fc.constant("a" as const) }),
);

describe("references to servers", () => {
  it("are counted: what nobody refers to is gone, what failed leaves nothing, one process a name [host-13]", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.array(fc.boolean()), async (steps, failures) => {
        let tries = 0;
        const fake = new FakeServers(() => failures[tries++] ?? false);
        const servers = new SpawnedServers(fake);
        const pending: Promise<unknown>[] = [];
        for (const one of steps) {
          if (one.kind === "settle") await Promise.allSettled(pending);
          else if (one.kind === "add") pending.push(servers.add(config(one.name, one.variant, one.lazy)));
          else if (one.kind === "release") pending.push(servers.release(one.name));
          else pending.push(servers.remove(one.name));
        }
        await Promise.allSettled(pending);
        expect(fake.problems).toEqual([]);
        for (const name of NAMES) {
          const hosted = servers.get(name);
          const isUp = fake.running.has(name);
          // Hosted and held, or not there at all.
          expect(fake.refs(name) > 0).toBe(hosted !== undefined);
          expect(isUp).toBe(hosted !== undefined);
        }
        expect(new Set(fake.applied.map(({ name }) => name))).toEqual(new Set(fake.running.keys()));
        for (const name of NAMES) await servers.remove(name);
        expect(fake.running.size).toBe(0);
      }),
      { numRuns: histories(2_000) },
    );
  });

  it("are none after a start that failed: every spawn that shared it rejects", async () => {
    const fake = new FakeServers(() => true);
    const servers = new SpawnedServers(fake);
    const results = await Promise.allSettled([1, 2, 3].map(() => servers.add(config("a", 0, false))));
    expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(servers.configs).toEqual([]);
    expect(fake.running.size).toBe(0);
  });
});
