// A gateway's own broker, without a gateway: on a store in memory, and at an endpoint that only says what it is.

import { afterEach, describe, expect, it } from "vitest";
import { HeldStore } from "../../../test/fixtures/mailbox/held-store.js";
import { LocalEnd } from "../../mailbox/peer/local-line.js";
import { SILENT } from "../../observe/log.js";
import { HeldBytes } from "../../runtime/memory/held-bytes.js";
import { RefusalLog } from "../refusal-log.js";
import { Mailboxes } from "./mailboxes.js";

let mailboxes: Mailboxes;
afterEach(() => mailboxes.close());

function open(isForEverybody: boolean): void {
  const state = { store: new HeldStore().asStore, tokens: { has: () => false } } as never;
  mailboxes = new Mailboxes(state, SILENT, new HeldBytes(), () => {});
  mailboxes.acceptOn({ isForEverybody, admitMailboxes() {} });
  mailboxes.apply(true);
}

describe("a gateway's mailboxes", () => {
  it("know whether tokens are asked for before anybody has come", async () => {
    open(true);
    expect(await mailboxes.newCode("studio", undefined)).toBe("nobody needs a token here");
    const operator = await mailboxes.operator();
    expect(operator?.summary("studio")).toMatchObject({ waiting: 0 });
    await mailboxes.close();
    open(false);
    expect(await mailboxes.newCode("studio", undefined)).toMatchObject({ code: expect.any(String) });
    const closed = await mailboxes.operator();
    expect(() => closed?.summary("studio")).toThrow('There is no mailbox "studio"');
  });

  it("tell once of a thousand peers that are refused for one reason [bounded]", async () => {
    const warned: string[] = [];
    const state = { store: new HeldStore().asStore, tokens: { has: () => false, authenticate: () => undefined } };
    const log = { ...SILENT, warn: (text: string) => void warned.push(text) };
    const refusals = new RefusalLog(log);
    mailboxes = new Mailboxes(state as never, log, new HeldBytes(), (refusal) => refusals.refused(refusal));
    mailboxes.acceptOn({ isForEverybody: false, admitMailboxes() {} });
    mailboxes.apply(true);
    await mailboxes.operator();
    const hello = Buffer.from('{"kind":"hello","agent":{"session_id":"studio"},"token":"tw_old"}');
    for (let peer = 0; peer < 1_000; peer++) {
      const [near, far] = LocalEnd.pair();
      mailboxes.adopt(near as never, undefined);
      far.send(hello);
    }
    await expect.poll(() => warned.length).toBe(1);
    expect(warned[0]).toContain("the token is not known here");
  });
});
