import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { until } from "../../../test/fixtures/wait.js";
import { ownMark } from "../../runtime/processes/life.js";
import { MemoryMap } from "../../store/memory-map.js";
import { TokenBook, type TokenRecord } from "../../tokens/tokens.js";
import type { RunRecord } from "./run-book.js";
import { Runs } from "./runs.js";

let stateDir: string;
let tokens: TokenBook;
let map: MemoryMap<RunRecord>;
let nowMs: number;
let forgotten: string[];

beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "toolway-runs-"));
  tokens = newTokens();
  map = new MemoryMap<RunRecord>("runs");
  nowMs = 0;
  forgotten = [];
});

afterEach(() => {
  vi.useRealTimers();
  rmSync(stateDir, { recursive: true, force: true });
});

function newTokens(): TokenBook {
  return new TokenBook({ map: new MemoryMap<TokenRecord>("tokens"), tokenPath: undefined });
}

const open = (sweep?: (folder: string) => Promise<readonly string[]>, log: (text: string) => void = () => {}) =>
  new Runs({
    map,
    tokens,
    stateDir,
    now: () => nowMs,
    wall: () => nowMs,
    sweep,
    onForgotten: (principal) => forgotten.push(principal),
    log,
  });

const claude = { as: undefined, role: "reader", client: "claude" };

describe("the runs of a gateway", () => {
  it("have a secret of 32 bytes that lets their principal in until they end [run-own]", async () => {
    const runs = open();
    const { run, secret, principal } = await runs.begin(claude);
    expect(Buffer.from(secret.replace(/^tw_/, ""), "base64url")).toHaveLength(32);
    expect(principal).toMatchObject({ id: `run-${run}`, role: "reader" });
    expect(tokens.authenticate(secret, 0)).toBe(principal);
    expect(tokens.isCurrent(principal, 0)).toBe(true);
    // On disk is its hash alone.
    expect(JSON.stringify([...map.entries()])).not.toContain(secret.slice(3));
    let revoked = 0;
    tokens.onRevoked(() => revoked++);
    runs.release(run);
    expect(tokens.authenticate(secret, 0)).toBeUndefined();
    expect(tokens.isCurrent(principal, 0)).toBe(false);
    expect(revoked).toBe(1);
    await until("forgotten", () => [...map.entries()].length === 0);
    expect(forgotten).toEqual([principal.id]);
  });

  it("take none of the tokens' places, and no token's id [run-own]", async () => {
    const runs = open();
    await tokens.create({ id: "ci", role: "default" }, 0);
    await expect(runs.begin({ ...claude, as: "ci" })).rejects.toThrow(/id of a token/);
    expect(runs.size).toBe(0);
    await runs.begin({ ...claude, as: "me" });
    expect(tokens.list().map(({ id }) => id)).toEqual(["default", "ci"]);
    await expect(tokens.create({ id: "me", role: "default" }, 0)).rejects.toThrow(/run that is under way/);
    await expect(runs.begin({ ...claude, as: "a/b" })).rejects.toThrow(/no "\/"/);
  });

  it("are known to the next gateway, which lets them come back and ends those that do not [run-own]", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const before = open();
    const first = await before.begin({ ...claude, as: "first" });
    const second = await before.begin({ ...claude, as: "second" });
    before.close();
    // Its connections end with it, which is no end of the runs.
    before.release(first.run);
    tokens = newTokens();
    const after = open();
    expect(tokens.authenticate(first.secret, 0)?.id).toBe("first");
    await expect(after.resume(first.run, second.secret)).rejects.toThrow(/does not know this run/);
    expect(await after.resume(first.run, first.secret)).toMatchObject({ principal: { id: "first", role: "reader" } });
    nowMs = 60_000;
    vi.advanceTimersByTime(1_000);
    expect(tokens.authenticate(first.secret, 0)?.id).toBe("first");
    expect(tokens.authenticate(second.secret, 0)).toBeUndefined();
    // What is known of a principal that was named stays.
    expect(forgotten).toEqual([]);
    after.close();
  });

  it("end at once where their process was killed with the gateway, and within a second where it dies later [run-own]", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const before = open();
    const gone = await before.begin({ ...claude, as: "gone", process: { ...ownMark(), began: "1" } });
    const alive = await before.begin({ ...claude, as: "alive", process: ownMark() });
    const elsewhere = await before.begin({ ...claude, as: "else", process: { pid: 1, began: "1", space: "another" } });
    before.close();
    tokens = newTokens();
    const after = open();
    expect(tokens.authenticate(gone.secret, 0)).toBeUndefined();
    expect([...map.entries()].map(([run]) => run)).not.toContain(gone.run);
    expect(tokens.authenticate(alive.secret, 0)?.id).toBe("alive");
    // Of one that sees other processes than we do nothing is known.
    expect(tokens.authenticate(elsewhere.secret, 0)?.id).toBe("else");
    const record = map.get(alive.run) as RunRecord & { process: { began: string } };
    record.process.began = "1";
    vi.advanceTimersByTime(1_000);
    expect(tokens.authenticate(alive.secret, 0)).toBeUndefined();
    expect(tokens.authenticate(elsewhere.secret, 0)?.id).toBe("else");
    after.close();
  });

  it("are absent when there was none for the whole time, those included that may come back [run-clean]", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
    const before = open();
    await before.begin({ ...claude, as: "lost" });
    before.close();
    tokens = newTokens();
    const runs = open();
    let isAbsent = false;
    void runs.absent(10_000).then(() => {
      isAbsent = true;
    });
    nowMs = 59_999;
    await vi.advanceTimersByTimeAsync(30_000);
    expect(isAbsent).toBe(false);
    nowMs = 60_000;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(runs.size).toBe(0);
    await vi.advanceTimersByTimeAsync(9_000);
    // Whoever has asked for one may wait for as long as a gateway without any is there.
    const begun = runs.expect();
    await vi.advanceTimersByTimeAsync(30_000);
    expect(isAbsent).toBe(false);
    begun();
    await vi.advanceTimersByTimeAsync(9_000);
    const { run } = await runs.begin(claude);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(isAbsent).toBe(false);
    runs.release(run);
    await vi.advanceTimersByTimeAsync(9_999);
    expect(isAbsent).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(isAbsent).toBe(true);
  });

  it("have what they wrote swept when they end, and at the next start what nobody knows any more [run-clean]", async () => {
    const folderOf = (run: string) => join(stateDir, "runs", run);
    const write = (run: string) => {
      mkdirSync(folderOf(run), { recursive: true });
      writeFileSync(join(folderOf(run), "mcp.json"), "{}");
    };
    const runs = open();
    const { run } = await runs.begin(claude);
    write(run);
    runs.release(run);
    await until("swept", () => !existsSync(folderOf(run)));
    write("0123456789ab");
    mkdirSync(join(stateDir, "runs", "not ours"));
    const swept: string[] = [];
    const logged: string[] = [];
    open(
      async (folder) => {
        swept.push(folder);
        return [`settings of ${folder} stay as they are`];
      },
      (text) => logged.push(text),
    );
    await until("swept at the start", () => swept.length > 0);
    expect(swept).toEqual([folderOf("0123456789ab")]);
    await until("said", () => logged.length > 0);
    expect(logged).toEqual([`settings of ${folderOf("0123456789ab")} stay as they are`]);
  });

  it("leave a folder with something of the user's to who can give it back, where the gateway cannot [run-clean]", async () => {
    const write = (run: string, name: string) => {
      mkdirSync(join(stateDir, "runs", run), { recursive: true });
      writeFileSync(join(stateDir, "runs", run, name), "{}");
    };
    write("0123456789ab", "give-back.json");
    write("ba9876543210", "mcp.json");
    const logged: string[] = [];
    open(undefined, (text) => logged.push(text));
    await until("both looked at", () => logged.length > 0 && !existsSync(join(stateDir, "runs", "ba9876543210")));
    expect(logged).toEqual([expect.stringContaining("0123456789ab stays")]);
    expect(existsSync(join(stateDir, "runs", "0123456789ab", "give-back.json"))).toBe(true);
  });
});
