// logging/setLevel is kept for each session; the server gets the lowest that anyone asked for.

import { LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it } from "vitest";
import { type ClientV1, callJson, callText, connectV1, waitForTools } from "./clients.js";
import { fixtureOver, type Gateway, startGateway, until } from "./harness.js";

async function listener(gateway: Gateway): Promise<{ client: ClientV1; levels: string[] }> {
  const client = await connectV1(gateway.url);
  const levels: string[] = [];
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void levels.push(params.level));
  await waitForTools(client, "log_all");
  return { client, levels };
}

describe.each(["stdio", "http"] as const)("a server over %s", (kind) => {
  const started = async () => {
    const entry = await fixtureOver(kind, "logger");
    return await startGateway({ mcpServers: { logger: entry } });
  };

  it("each session hears what it asked for, in its own calls, whatever others ask for [eras-meet]", async () => {
    const gateway = await started();
    const [quiet, loud] = [await listener(gateway), await listener(gateway)];
    await quiet.client.setLoggingLevel("error");
    await loud.client.setLoggingLevel("info");
    expect((await callJson<string[]>(loud.client, "asked")).at(-1)).toBe("info");
    await callText(loud.client, "log_all");
    await until("seven levels", () => loud.levels.length >= 7);
    await callText(quiet.client, "log_all");
    await until("four levels", () => quiet.levels.length >= 4);
    // Both at once: over stdio nobody can tell then for whom a message is.
    await Promise.all([callText(loud.client, "log_all"), callText(quiet.client, "log_all")]);
    await until("four more", () => quiet.levels.length >= 8);
    expect(loud.levels.slice(0, 7)).toEqual(["info", "notice", "warning", "error", "critical", "alert", "emergency"]);
    expect(quiet.levels.filter((level) => ["debug", "info", "notice", "warning"].includes(level))).toEqual([]);
  });

  it("what is said outside of any call reaches every session, by its level", async () => {
    const gateway = await started();
    const [quiet, loud] = [await listener(gateway), await listener(gateway)];
    await quiet.client.setLoggingLevel("alert");
    await loud.client.setLoggingLevel("debug");
    await callText(loud.client, "log_later", { delayMs: 200 });
    await until("all levels", () => loud.levels.length === 8);
    await until("two levels", () => quiet.levels.length === 2);
    expect(quiet.levels).toEqual(["alert", "emergency"]);
  });

  it("an unknown level is refused", async () => {
    const gateway = await started();
    const { client } = await listener(gateway);
    const loudest = client.setLoggingLevel("loudest" as "error");
    await expect(loudest).rejects.toMatchObject({ code: -32602 });
  });
});
