import { describe, expect, it } from "vitest";
import { enginePromises, isAtLeast, readVersion, versionProblem } from "./versions.js";

describe("versions of nats-server", () => {
  it("are compared by their numbers, not by their letters", () => {
    const read = (text: string) => readVersion(text) ?? [0, 0, 0];
    expect(isAtLeast(read("2.10.0"), read("2.9.10"))).toBe(true);
    expect(isAtLeast(read("2.9.9"), read("2.9.10"))).toBe(false);
    expect(isAtLeast(read("v2.15.1-beta.2"), read("2.15.1"))).toBe(true);
  });

  it("[engine-told] a node that is older than any that was tried is refused with what to do", () => {
    expect(versionProblem("2.9.10")).toBeUndefined();
    expect(versionProblem("2.8.4")).toContain("Toolway needs 2.9.10 or newer: upgrade it");
    expect(versionProblem("nonsense")).toContain("none of nats-server");
  });

  it("[engine-told] what a start says holds follows from the version, the replicas and what the monitor says", () => {
    const said = (version: string, replicas: number, syncsAlways: boolean | undefined) =>
      enginePromises({ version, nodes: 3, replicas, syncsAlways });
    expect(said("2.15.1", 3, true).filter(({ holds }) => !holds)).toEqual([]);
    const broken = (...facts: Parameters<typeof said>) =>
      said(...facts)
        .filter(({ holds }) => !holds)
        .map(({ sentence }) => sentence)
        .join("\n");
    expect(broken("2.15.1", 3, undefined)).toContain('unknown: only the monitoring port says it. Set "monitor"');
    expect(broken("2.15.1", 3, false)).toContain("set `sync_interval: always`");
    expect(broken("2.15.1", 1, true)).toContain('set "replicas" to 3');
    // A server that knows no `sync_interval` cannot be told to use it.
    expect(broken("2.9.10", 3, undefined)).not.toContain("sync_interval");
    expect(broken("2.9.10", 3, undefined)).toMatch(/not yet on disk.*\n.*can lose a stream.*\n.*may come back/);
    expect(broken("2.10.22", 3, true)).toContain("can lose a stream below 2.10.23");
    // Nothing is acknowledged by nodes that are not there.
    const [copies] = enginePromises({ version: "2.15.1", nodes: 1, replicas: 3, syncsAlways: true });
    expect(copies).toEqual({ holds: false, sentence: expect.stringContaining("nothing can be created") });
  });
});
