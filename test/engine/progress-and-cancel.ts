// What goes between an agent and the server `slow` beside answers, whichever gateways are between them: progress of a call, and the
// cancel of one.

import { expect } from "vitest";
import type { Agent } from "../e2e/eras.js";
import { until } from "../fixtures/wait.js";

export async function hearAndTakeBack(agent: Agent): Promise<void> {
  const heard: number[] = [];
  const onprogress = ({ progress }: { progress: number }) => void heard.push(progress);
  await agent.call("sleep", { ms: 200, everyMs: 40, label: "steady" }, { onprogress });
  expect(heard.length).toBeGreaterThan(1);
  const label = `taken back by ${agent.era}`;
  const abort = new AbortController();
  const call = agent.call("sleep", { ms: 60_000, label }, { signal: abort.signal });
  const gone = expect(call).rejects.toThrow();
  await until("the call at its server", async () => (await agent.text("started")).includes(label));
  abort.abort();
  await gone;
  await until("its end at the server", async () => (await agent.text("cancelled")).includes(label));
}
