// A gateway's own broker, without a gateway: on a store in memory, and at an endpoint that only says what it is.

import { afterEach, describe, expect, it, vi } from "vitest";
import { HeldStore } from "../../../test/fixtures/mailbox/held-store.js";
import { LocalEnd } from "../../mailbox/peer/local-line.js";
import { SILENT } from "../../observe/log.js";
import { HeldBytes } from "../../runtime/memory/held-bytes.js";
import { RefusalLog } from "../refusal-log.js";
import { Mailboxes } from "./mailboxes.js";

const noClaim = () => undefined;

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
      mailboxes.adopt(near as never, undefined, noClaim);
      far.send(hello);
    }
    await expect.poll(() => warned.length).toBe(1);
    expect(warned[0]).toContain("the token is not known here");
  });

  it("count a peer whose token comes with its hello among that token's, and send it away where those are too many [bounded]", async () => {
    const tokens = { tw_good: { id: "studio", role: "sharer" }, tw_many: { id: "many", role: "sharer" } };
    const authenticate = (token: string) => tokens[token as keyof typeof tokens];
    const state = { store: new HeldStore().asStore, tokens: { has: () => true, authenticate } };
    mailboxes = new Mailboxes(state as never, SILENT, new HeldBytes(), () => {});
    mailboxes.acceptOn({ isForEverybody: false, admitMailboxes() {} });
    mailboxes.apply(true);
    await mailboxes.operator();
    const claimed: string[] = [];
    const answerTo = (token: string, id: string) => {
      const [near, far] = LocalEnd.pair();
      const told = new Promise<string>((resolve) => {
        far.attach({ onMessage: (bytes) => resolve(bytes.toString()), onDrain() {}, onClose() {} });
      });
      mailboxes.adopt(near as never, undefined, (owner) => {
        claimed.push(owner.id);
        return owner.id === "many" ? "This token has 12000 connections here already" : undefined;
      });
      far.send(JSON.stringify({ kind: "hello", agent: { session_id: id }, token }));
      return told;
    };
    expect(await answerTo("tw_good", "studio")).toContain("welcome");
    expect(await answerTo("tw_many", "many")).toContain("This token has 12000 connections here already");
    expect(await answerTo("tw_nobody", "studio")).toContain("the token is not known here");
    expect(claimed).toEqual(["studio", "many"]);
  });

  it("that could not be opened are tried again by themselves, say so in status, and send peers away until then [mail-anywhere]", async () => {
    const realTimeout = setTimeout;
    // Without a look at the timers, which are the test's.
    const until = async (isSo: () => boolean) => {
      for (let n = 0; n < 2_000 && !isSo(); n++) await new Promise((resolve) => realTimeout(resolve, 2));
      expect(isSo()).toBe(true);
    };
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const errors: unknown[] = [];
      const log = { ...SILENT, error: (_: string, facts: unknown) => void errors.push(facts) };
      const { asStore: store } = new HeldStore();
      let isThere = false;
      let asked = 0;
      const state = {
        get store() {
          asked++;
          if (!isThere) throw new Error("no leader was elected yet");
          return store;
        },
        tokens: { has: () => false },
      };
      mailboxes = new Mailboxes(state as never, log, new HeldBytes(), () => {});
      mailboxes.acceptOn({ isForEverybody: true, admitMailboxes() {} });
      mailboxes.apply(true);
      const problem = "no leader was elected yet";
      let tried = 0;
      const hasFailed = async () => {
        tried++;
        await until(() => asked === tried && mailboxes.status()?.problem === problem && vi.getTimerCount() === 1);
      };
      await hasFailed();
      const closed: unknown[] = [];
      mailboxes.adopt({ close: (code: number, why: string) => closed.push([code, why]) } as never, undefined, noClaim);
      await until(() => closed.length === 1);
      expect(closed).toEqual([[1001, expect.stringContaining(problem)]]);
      for (const waitMs of [1_000, 2_000]) {
        expect(mailboxes.status()?.nextTryInMs).toBeGreaterThan(waitMs / 2);
        await vi.advanceTimersByTimeAsync(waitMs - 1);
        expect(asked).toBe(tried);
        await vi.advanceTimersByTimeAsync(1);
        await hasFailed();
      }
      isThere = true;
      await vi.advanceTimersByTimeAsync(4_000);
      await until(() => mailboxes.status()?.problem === undefined);
      expect(await mailboxes.operator()).toBeDefined();
      // It is told once, and not at each try.
      expect(errors).toEqual([{ why: problem }]);
    } finally {
      vi.useRealTimers();
    }
  });
});
