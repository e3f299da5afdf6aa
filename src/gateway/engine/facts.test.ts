import { describe, expect, it } from "vitest";
import { playMonitor, SYNCS } from "../../../test/fixtures/played-monitor.js";
import type { Engine } from "../../store/nats/connection.js";
import { enginePromises } from "../../store/nats/versions.js";
import { engineFacts } from "./facts.js";

/** As much of a connection as the facts are read from. */
function engineOf(monitor: string | undefined, nodes: readonly string[] = []): Engine {
  const settings = { monitor, replicas: 1 };
  return { settings, connection: { info: { connect_urls: nodes } }, version: "2.12.1" } as unknown as Engine;
}

describe("whether acknowledged means on disk", () => {
  it.each([
    ["always", true, "Acknowledged means on disk: the nodes sync each write."],
    ["later", false, "Acknowledged is not yet on disk: the nodes sync every two minutes by default."],
    ["unsaid", undefined, "Whether acknowledged means on disk is unknown: only the monitoring port says it."],
  ] as const)("[engine-told] is read from what the monitoring port says: %s", async (answer, always, sentence) => {
    await using monitor = await playMonitor(SYNCS[answer]);
    const { facts, problem } = await engineFacts(engineOf(monitor.url));
    expect(problem).toBeUndefined();
    expect(monitor.asked).toEqual(["/jsz"]);
    expect(facts).toEqual({ version: "2.12.1", nodes: 1, replicas: 1, syncsAlways: always });
    const said = enginePromises(facts).map((one) => one.sentence);
    expect(said.filter((text) => text.startsWith(sentence))).toHaveLength(1);
  });

  it.each([
    ["an error", "{}", 503, "it answered 503"],
    ["no JSON", "<html>", 200, "JSON"],
    ["the way to another place", "{}", 302, "redirect"],
  ])("[engine-told] is unknown where the answer is %s, and what to mend is said", async (_, answer, status, why) => {
    await using monitor = await playMonitor(answer, status);
    const { facts, problem } = await engineFacts(engineOf(monitor.url));
    expect(facts.syncsAlways).toBeUndefined();
    expect(problem).toContain(`The monitoring address ${monitor.url} cannot be asked (`);
    expect(problem).toContain(why);
    expect(problem).toContain('Mend "monitor" in "engine", or remove it.');
  });

  it("[engine-told] is unknown where no monitoring port is named, and nothing is wrong with that", async () => {
    const { facts, problem } = await engineFacts(engineOf(undefined));
    expect([facts.syncsAlways, problem]).toEqual([undefined, undefined]);
  });

  it("[engine-told] is told with the size of the cluster, by the node or by its monitoring port, whichever knows more", async () => {
    await using monitor = await playMonitor({ ...SYNCS.always, meta_cluster: { cluster_size: 3 } });
    expect((await engineFacts(engineOf(monitor.url))).facts.nodes).toBe(3);
    const five = ["a:1", "b:1", "c:1", "d:1", "e:1"];
    expect((await engineFacts(engineOf(monitor.url, five))).facts.nodes).toBe(5);
  });
});
