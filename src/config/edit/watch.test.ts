import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, type TestContext, vi } from "vitest";
import { type WatchOptions, watchConfig } from "./watch.js";

/** A folder of its own, with a file in it, and what watches: each test has them until it ends. */
function place({ onTestFinished }: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "toolway-watch-"));
  const file = join(folder, "mcp.json");
  writeFileSync(file, "1");
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const watching = (path: string, onChange: () => void | Promise<void>, options: WatchOptions) => {
    const watcher = watchConfig(path, onChange, options);
    onTestFinished(() => watcher.close());
    return watcher;
  };
  /** A watcher that has had the time for its first look, with a poll that plays no part unless asked for. */
  const start = async (path = file, options: WatchOptions = {}) => {
    const onChange = vi.fn();
    const watcher = watching(path, onChange, { debounceMs: 20, pollMs: 600_000, ...options });
    await sleep(150);
    return { onChange, watcher };
  };
  return { folder, file, watching, start };
}

const seen = (onChange: ReturnType<typeof vi.fn>, times = 1) =>
  vi.waitFor(() => expect(onChange.mock.calls.length).toBeGreaterThanOrEqual(times), { timeout: 60_000 });

// Side by side: each waits for the system, which tells of a change when it likes.
describe.concurrent("watchConfig", () => {
  it("notices a write in place, again and again", async (test) => {
    const { file, start } = place(test);
    const { onChange } = await start();
    writeFileSync(file, "22");
    await seen(onChange, 1);
    appendFileSync(file, "3");
    await seen(onChange, 2);
  });

  it("notices a file renamed over it, and goes on", async (test) => {
    const { folder, file, start } = place(test);
    const { onChange } = await start();
    for (const times of [1, 2]) {
      writeFileSync(join(folder, "tmp"), `new ${times}`);
      renameSync(join(folder, "tmp"), file);
      await seen(onChange, times);
    }
  });

  it("notices a swapped link on the way, as container volumes do it", async (test) => {
    const { folder, start } = place(test);
    for (const version of ["v1", "v2"]) {
      mkdirSync(join(folder, version));
      writeFileSync(join(folder, version, "c.json"), "{}");
    }
    symlinkSync("v1", join(folder, "data"));
    mkdirSync(join(folder, "conf"));
    // The link to the file stays as it is; the folder that it leads through is swapped.
    symlinkSync("../data/c.json", join(folder, "conf", "c.json"));
    const { onChange } = await start(join(folder, "conf", "c.json"), { pollMs: 100 });
    symlinkSync("v2", join(folder, "data.new"));
    renameSync(join(folder, "data.new"), join(folder, "data"));
    await seen(onChange);
  });

  it("notices a change of the file that a link leads to, without the poll", async (test) => {
    const { folder, start } = place(test);
    mkdirSync(join(folder, "real"));
    writeFileSync(join(folder, "real", "c.json"), "{}");
    symlinkSync("real/c.json", join(folder, "link.json"));
    const { onChange } = await start(join(folder, "link.json"));
    writeFileSync(join(folder, "real", "c.json"), "{ }");
    await seen(onChange);
  });

  it("notices removal and return", async (test) => {
    const { file, start } = place(test);
    const { onChange } = await start();
    unlinkSync(file);
    await seen(onChange, 1);
    writeFileSync(file, "back");
    await seen(onChange, 2);
  });

  it("finds by its poll a file whose folder came later", async (test) => {
    const { folder, start } = place(test);
    const { onChange } = await start(join(folder, "later", "mcp.json"), { pollMs: 50 });
    mkdirSync(join(folder, "later"));
    writeFileSync(join(folder, "later", "mcp.json"), "{}");
    await seen(onChange);
  });

  it("says nothing of other files, nor of a burst more than it must", async (test) => {
    const { folder, file, start } = place(test);
    const { onChange } = await start(file, { debounceMs: 100 });
    writeFileSync(join(folder, "other"), "x");
    await sleep(300);
    expect(onChange).not.toHaveBeenCalled();
    for (let i = 0; i < 20; i++) writeFileSync(file, "x".repeat(i + 2));
    await seen(onChange);
    expect(onChange.mock.calls.length).toBeLessThan(20);
  });

  it("is silent after close and after abort", async (test) => {
    const { file, start } = place(test);
    const stopped = new AbortController();
    const { onChange, watcher } = await start();
    const second = await start(file, { signal: stopped.signal, pollMs: 50 });
    watcher.close();
    stopped.abort();
    writeFileSync(file, "22");
    await sleep(200);
    expect(onChange).not.toHaveBeenCalled();
    expect(second.onChange).not.toHaveBeenCalled();
  });

  it("outlives a callback that fails, and runs one at a time", async (test) => {
    const { file, watching } = place(test);
    const errors: unknown[] = [];
    let running = 0;
    let most = 0;
    let calls = 0;
    watching(
      file,
      async () => {
        calls++;
        most = Math.max(most, ++running);
        await sleep(100);
        running--;
        throw new Error("no");
      },
      { debounceMs: 10, pollMs: 50, onError: (error) => errors.push(error) },
    );
    await sleep(150);
    writeFileSync(file, "22");
    await vi.waitFor(() => expect(calls).toBeGreaterThan(0), { timeout: 60_000 });
    writeFileSync(file, "333");
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(1), { timeout: 60_000 });
    expect(most).toBe(1);
  });
});
