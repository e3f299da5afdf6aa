// `logs` from the words of the line to what is printed, over files that a gateway would have written.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, run } from "../../../test/fixtures/fake-gateway.js";

beforeEach(makeFolder);

afterEach(leaveFolder);

/** Ctrl-C, as soon as it waits for more. */
function follow(...words: string[]) {
  const stop = new AbortController();
  const pause = async () => stop.abort();
  return run(["logs", "-f", ...words, "--config", "mine.json", "--state", "state"], { signal: stop.signal, pause });
}

it("followed before anybody has written says that there is nothing yet, and what it waits for [told-why]", async () => {
  writeFileSync(join(folder, "mine.json"), '{"mcpServers":{"files":{"command":"x"}}}');
  fakeGateway();
  const waiting = "Waiting for the first line; Ctrl-C ends this.\n";
  expect(await follow()).toMatchObject({
    out: "",
    err: `No server of this config has written anything to stderr yet. ${waiting}`,
  });
  expect((await follow("files")).err).toBe(`files has written nothing to stderr yet. ${waiting}`);
  fakeGateway({}, {}, false);
  expect((await follow("files")).err).toContain("No gateway runs for it: there are lines when one does.");
  // A name that is wrong would be waited for without an end.
  expect(await follow("flies")).toMatchObject({ code: 2, out: "" });
});

it("followed begins with the last lines that there are, and says nothing else then [told-why]", async () => {
  writeFileSync(join(folder, "mine.json"), '{"mcpServers":{"files":{"command":"x"}}}');
  mkdirSync(join(folder, "state/logs"), { recursive: true });
  const lines = [1, 2, 3].map((n) => `2026-01-01T00:00:0${n}.000Z line ${n}\n`);
  writeFileSync(join(folder, "state/logs/files.log"), lines.join(""));
  fakeGateway();
  expect(await follow("files", "-n", "2")).toMatchObject({ out: lines.slice(1).join(""), err: "" });
  expect(await follow("files", "-n", "0")).toMatchObject({ out: "", err: "" });
});
