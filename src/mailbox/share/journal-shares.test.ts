// What one worker may have of a sharer's journal, with a broker, a sharer and two workers on real sockets and disks.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { BareClient, type BareReply } from "../../../test/fixtures/mailbox/bare-client.js";
import { TestBroker } from "../../../test/fixtures/mailbox/test-broker.js";
import type { MailboxCall } from "../../contracts/mailbox.js";
import type { Store } from "../../contracts/store.js";
import { SILENT } from "../../observe/log.js";
import { makeMessage, type RequestMessage } from "../../protocol/message.js";
import { systemClock } from "../../runtime/clock.js";
import { openStore } from "../../store/local/store.js";
import { Journal } from "./journal.js";
import { Sharer } from "./sharer.js";

const message = makeMessage({ jsonrpc: "2.0", id: 1, method: "tools/call" }) as RequestMessage;

let dir: string;
let store: Store;
let broker: TestBroker;
let sharer: Sharer;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "toolway-shares-"));
  store = await openStore({ dir });
  broker = await TestBroker.open();
  const serve = (call: MailboxCall): void => {
    call.begin({ server: "s", tool: "t", message, mayRepeat: false }).then(
      () => call.reply({ kind: "body", json: '{"result":{"success":true}}' }),
      (error: Error) => call.reply({ kind: "body", json: JSON.stringify({ error: error.message }) }),
    );
  };
  sharer = new Sharer({
    broker: broker.url,
    as: "studio",
    token: "studio-token",
    service: { serve, notified() {} },
    journal: await Journal.open({ store, clock: systemClock, limits: { entries: 8, bytes: 1_000_000 } }),
    clock: systemClock,
    log: SILENT,
  });
  sharer.start();
});
afterEach(async () => {
  await sharer.stop();
  await broker.end();
  await store.close();
  rmSync(dir, { recursive: true, force: true });
});

async function answersOf(owner: string, token: string, calls: number): Promise<BareReply[]> {
  const client = await BareClient.connect(broker.url, owner, token);
  client.send({ kind: "subscribe" });
  const replies: BareReply[] = [];
  for (let n = 0; n < calls; n++) {
    client.deliver("studio", `m-${n}`, { n });
    replies.push(await client.replyTo(`m-${n}`));
  }
  return replies;
}

it("refuses a worker that has its half, which says so, and takes the calls of another [bounded]", async () => {
  const greedy = await answersOf("worker-1", "worker-token", 6);
  expect(greedy.filter(({ result }) => result?.success === true)).toHaveLength(4);
  for (const { error } of greedy.slice(4))
    expect(error).toMatch(/no more room for "worker-1": it keeps 4 calls .* Not run/);
  const modest = await answersOf("worker-2", "other-token", 4);
  expect(modest.filter(({ result }) => result?.success === true)).toHaveLength(4);
});
