import { afterEach, describe, expect, it } from "vitest";
import { Fault } from "../protocol/errors.js";
import { Credential, type TokenSource } from "./credential.js";
import { RenewalPace } from "./renewal-pace.js";
import { expiryOf } from "./token.js";

/** A source that gives what it is told, and counts how often it was asked. */
class ToldSource implements TokenSource {
  readonly name = "the test";
  readonly remedy = "Write another test.";
  readonly keepMs = 1_000;
  reads = 0;
  next: string | undefined | Fault;
  changed: () => void = () => {};

  constructor(first: string | undefined) {
    this.next = first;
  }

  async read(): Promise<string | undefined> {
    this.reads++;
    if (this.next instanceof Fault) throw this.next;
    return this.next;
  }

  watch(changed: () => void): () => void {
    this.changed = changed;
    return () => {
      this.changed = () => {};
    };
  }
}

let changes = 0;
let told: readonly string[] = [];
const clock = { ms: 0 };
function make(source: ToldSource): Credential {
  return new Credential({
    source,
    now: () => clock.ms,
    wall: () => 1_000_000 + clock.ms,
    onChange: () => changes++,
    onToken: (tokens) => {
      told = tokens;
    },
  });
}

afterEach(() => {
  clock.ms = 0;
  changes = 0;
  told = [];
});

describe("a credential", () => {
  it("is read when it is first needed, and again when its time is over", async () => {
    const source = new ToldSource("one");
    const credential = make(source);
    expect([source.reads, credential.status().state]).toEqual([0, "unread"]);
    expect(await credential.token()).toBe("one");
    // Known and good: nobody waits.
    expect(credential.token()).toBe("one");
    clock.ms = 999;
    expect(credential.token()).toBe("one");
    clock.ms = 1_000;
    expect(await credential.token()).toBe("one");
    expect([source.reads, changes, told]).toEqual([2, 0, ["one"]]);
  });

  it("that is refused is fetched once for a hundred calls, which then have another [token-unseen]", async () => {
    const source = new ToldSource("old");
    const credential = make(source);
    await credential.token();
    source.next = "new";
    const answers = await Promise.all(Array.from({ length: 100 }, () => credential.refused("old")));
    expect(new Set(answers)).toEqual(new Set([true]));
    expect([source.reads, credential.token(), changes]).toEqual([2, "new", 1]);
    // One that was under way with the old one need not ask.
    expect(await credential.refused("old")).toBe(true);
    expect(source.reads).toBe(2);
    // What the server says of either is kept from people.
    expect(told).toEqual(["new", "old"]);
  });

  it("that stays refused is asked for again after waits that grow, until one is accepted", async () => {
    const source = new ToldSource("bad");
    const credential = make(source);
    await credential.token();
    const asked: number[] = [];
    for (clock.ms = 0; clock.ms < 60_000; clock.ms += 100) {
      const before = source.reads;
      expect(await credential.refused("bad")).toBe(false);
      if (source.reads > before) asked.push(clock.ms);
    }
    expect(asked).toEqual([0, 1_000, 3_000, 7_000, 15_000, 31_000]);
    expect(credential.status().state).toBe("refused");
    credential.accepted();
    expect(credential.status().state).toBe("known");
    source.next = "good";
    expect(await credential.refused("bad")).toBe(true);
  });

  it("that is changed elsewhere is another at once, and says so", async () => {
    const source = new ToldSource(undefined);
    const credential = make(source);
    expect(await credential.token()).toBeUndefined();
    expect(credential.status().state).toBe("absent");
    source.next = "there";
    source.changed();
    await Promise.resolve();
    await Promise.resolve();
    expect([changes, credential.token(), credential.status().state]).toEqual([1, "there", "known"]);
    void credential.close();
    source.changed();
    expect(source.reads).toBe(2);
  });

  it("tells whoever follows it when it is another's, and not of a renewal by which nothing else is seen", async () => {
    const source = Object.assign(new ToldSource("one"), { identity: () => whose });
    let whose = "ada";
    const credential = make(source);
    let told = 0;
    const unfollow = credential.onOther(() => told++);
    await credential.token();
    source.next = "two";
    expect(await credential.refused("one")).toBe(true);
    expect(told).toBe(0);
    [source.next, whose] = ["three", "bob"];
    expect(await credential.refused("two")).toBe(true);
    expect(told).toBe(1);
    unfollow();
    [source.next, whose] = ["four", "cid"];
    expect(await credential.refused("three")).toBe(true);
    expect(told).toBe(1);
  });

  it("that cannot be had says why, and is asked for again after waits that grow, not for each request [bounded]", async () => {
    const source = new ToldSource("one");
    const credential = make(source);
    source.next = new Fault("unauthorized", "The key ring is locked.");
    const asked: number[] = [];
    for (clock.ms = 0; clock.ms < 60_000; clock.ms += 100) {
      const before = source.reads;
      await expect(credential.token()).rejects.toThrow("The key ring is locked.");
      if (source.reads > before) asked.push(clock.ms);
    }
    expect(asked).toEqual([0, 1_000, 3_000, 7_000, 15_000, 31_000]);
    expect(credential.status()).toMatchObject({ state: "failed", problem: "The key ring is locked." });
    clock.ms = 120_000;
    source.next = "one";
    expect(await credential.token()).toBe("one");
    expect(credential.status()).toEqual({ source: "the test", state: "known", problem: undefined, until: undefined });
  });

  it("that fails is there as soon as its source says that it changed", async () => {
    const source = new ToldSource("one");
    const credential = make(source);
    source.next = new Fault("unauthorized", "The key ring is locked.");
    await expect(credential.token()).rejects.toThrow("locked");
    source.next = "one";
    source.changed();
    expect(await credential.token()).toBe("one");
  });

  it("that is over or nearly so, and has no successor yet, is asked for once a second and no more [bounded]", async () => {
    for (const exp of [1_010, 900]) {
      clock.ms = 0;
      const source = new ToldSource(`x.${Buffer.from(JSON.stringify({ exp })).toString("base64url")}.y`);
      const credential = make(source);
      for (; clock.ms < 5_000; clock.ms += 50) expect(await credential.token()).toBe(source.next);
      expect(source.reads).toBe(5);
    }
  });

  it("that was not there for a request is told of when the server wants one", async () => {
    const credential = make(new ToldSource(undefined));
    await credential.token();
    expect(credential.refusal("one")).toBeUndefined();
    const refusal = credential.refusal(undefined);
    expect(refusal?.message).toBe(
      "The server wants credentials (HTTP 401), and the test has none. Write another test.",
    );
  });

  it("that says when it ends is fetched anew before that", async () => {
    const jwt = (exp: number) => `x.${Buffer.from(JSON.stringify({ exp })).toString("base64url")}.y`;
    // Ends 30.5 s after the start, by the wall clock: half a second before that minus what a request takes.
    const source = new ToldSource(jwt(1_030.5));
    const credential = make(source);
    await credential.token();
    expect(credential.status().until).toBe(new Date(1_030_500).toISOString());
    clock.ms = 499;
    expect(credential.token()).toBe(source.next);
    clock.ms = 500;
    source.next = jwt(5_000);
    expect(await credential.token()).toBe(source.next);
  });
});

it("a wait for another credential is never longer than five minutes", () => {
  const pace = new RenewalPace();
  let nowMs = 0;
  for (let i = 0; i < 50; i++) {
    pace.refused(nowMs);
    const before = nowMs;
    while (!pace.mayRenew(nowMs)) nowMs += 1_000;
    expect(nowMs - before).toBeLessThanOrEqual(5 * 60_000);
  }
});

it("that says that it ends after the last date there is, in another unit perhaps, is used, and its status can be told [bounded]", async () => {
  for (const exp of [8_640_000_000_001, 1.7e15, 1e308]) {
    const token = `a.${Buffer.from(JSON.stringify({ exp })).toString("base64url")}.c`;
    const credential = make(new ToldSource(token));
    expect(await credential.token()).toBe(token);
    expect(credential.status(), `exp ${exp}`).toMatchObject({ state: "known", until: undefined });
  }
});

it.each(["", "abc", "a.b", "a.b.c.d", "a.!!!.c", `a.${Buffer.from("7").toString("base64url")}.c`, "a.e30.c"])(
  "%s does not say when it ends",
  (token) => {
    expect(expiryOf(token)).toBeUndefined();
  },
);
