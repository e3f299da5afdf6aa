// One sender floods mailboxes of a broker on an engine, where stored mail is in the broker's memory: that stays bounded, others go
// on, and no turn of the event loop is long.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { root, temporaryDirectory } from "../e2e/harness.js";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { sleep } from "../fixtures/wait.js";
import { endParts, startBroker } from "./mailbox-parts.js";
import { linux, MB, megabytes, peakRss, report, resetPeak, rss } from "./measure.js";
import { RSS_GROWTH } from "./memory-scene.js";
import { TURN_MS, watchedTurns } from "./turns.js";

const CONNECTIONS = 24;
const BOXES = 16;
const BODY_BYTES = 500_000;
/** Several times what the broker may hold. */
const FLOOD_BYTES = 400 * MB;
/** A delivery of somebody else meanwhile: without turns between senders it waits for all that the flood has sent. */
const OTHERS_MS = 3_000;

const title = natsPrograms.length === 0 ? `a flood of mail, ${NO_NATS}` : "a flood of mail to a broker on an engine";

afterEach(({ task }) => {
  closeBareClients();
  return endParts(task.result?.state === "fail");
});

describe.skipIf(natsPrograms.length === 0 || !linux)(title, () => {
  it("is refused by name past the sender's half of what is held, and others go on meanwhile [bounded] [mail-anywhere]", async () => {
    const nats = await startNats();
    const folder = await temporaryDirectory();
    await writeFile(join(folder, "engine.key"), makeEngineKey(), { mode: 0o600 });
    const engine = { nats: nats.urls, key: { file: join(folder, "engine.key") }, replicas: 1 };
    const config = join(folder, "engine.json");
    await writeFile(config, JSON.stringify({ engine, mcpServers: {} }));
    const turns = watchedTurns(folder);
    for (const [name, value] of Object.entries(turns.env)) vi.stubEnv(name, value);
    const { part, url } = await startBroker(undefined, ["--engine", config]);
    vi.unstubAllEnvs();
    const other = await BareClient.connect(url, "other", "");
    other.deliver("box0", "first");
    expect((await other.next("delivered", "error")).kind).toBe("delivered");
    await sleep(1_000);

    resetPeak(part.pid);
    const before = rss(part.pid);
    let out = "";
    let slowestMs = 0;
    let delivered = 0;
    const longest = await turns.leastOf(1, async () => {
      const args = [url, "flood", CONNECTIONS, BOXES, BODY_BYTES, FLOOD_BYTES].map(String);
      const flood = spawn(process.execPath, [join(root, "test/faults/mailbox-flood.mjs"), ...args]);
      flood.stdout.on("data", (chunk: Buffer) => {
        out += chunk.toString();
      });
      const over = once(flood, "exit");
      let isOver = false;
      void over.then(() => {
        isOver = true;
      });
      for (; !isOver; delivered++) {
        const sentMs = performance.now();
        other.deliver(`box${delivered % BOXES}`, `n${delivered}`);
        const { kind, reason } = await other.next("delivered", "error");
        expect([kind, reason]).toEqual(["delivered", undefined]);
        slowestMs = Math.max(slowestMs, performance.now() - sentMs);
        await sleep(50);
      }
    });
    const grown = peakRss(part.pid) - before;
    const told = JSON.parse(out.slice(out.indexOf("{"))) as { delivered: number; refused: number; reasons: string[] };
    report(
      "a flood of mail on an engine",
      `+${megabytes(grown)} RSS, longest turn ${turns.text(longest)}, ${delivered} deliveries of another, the slowest ${Math.round(slowestMs)} ms; ${told.delivered} taken, ${told.refused} refused [bounded]`,
    );
    expect(told.reasons).toContainEqual('the broker holds N MiB of mail that "flood" sent, limit N MiB: send it later');
    expect(grown).toBeLessThan(RSS_GROWTH);
    expect(slowestMs).toBeLessThan(OTHERS_MS);
    expect(longest).toBeLessThan(TURN_MS);
  }, 300_000);
});
