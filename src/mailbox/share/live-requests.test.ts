import { beforeEach, expect, it } from "vitest";
import type { MailboxCall } from "../../contracts/mailbox.js";
import type { BrokerLine } from "../peer/line.js";
import { MAX_LISTENS } from "./limits.js";
import { LiveRequests } from "./live-requests.js";

let calls: MailboxCall[];
/** What listeners were told, in this order. */
let told: { id: string | undefined; body: string }[];
let requests: LiveRequests;

const line = {
  live: (_to: string, id: string | undefined, body: string) => {
    told.push({ id, body });
    return true;
  },
} as unknown as BrokerLine;

beforeEach(() => {
  calls = [];
  told = [];
  requests = new LiveRequests({
    service: { serve: (call) => void calls.push(call), notified() {} },
    journal: undefined as never,
    keyOf: (from, id) => `${from} ${id}`,
    principalOf: (from) => ({ id: from, role: "dev" }),
  });
});

function listen(from: string, correlationId: string): void {
  requests.take(line, { from, role: "dev", correlationId, body: '{"op":"listen","message":{}}' });
}

it("a listener that makes room for a new one is told that it listens no more [bounded]", () => {
  for (let n = 0; n <= MAX_LISTENS; n++) listen(`worker-${n % 3}#mcp-x7`, `l-${n}`);
  expect(told.map(({ id }) => id)).toEqual(["l-0"]);
  expect(JSON.parse(told[0]?.body ?? "")).toEqual({ op: "reply", error: expect.stringContaining("4096") });
});

it("one worker's own listeners make room for its new ones before all are its: others go on listening [bounded]", () => {
  listen("quiet#mcp-x7", "q-0");
  for (let n = 0; n < MAX_LISTENS; n++) listen(`loud#mcp-${n % 5}`, `l-${n}`);
  const ended = told.map(({ id }) => id);
  expect(ended).toHaveLength(MAX_LISTENS / 2);
  expect(ended.slice(0, 2)).toEqual(["l-0", "l-1"]);
  expect(JSON.parse(told[0]?.body ?? "").error).toContain("2048 of your agents");
  expect(ended).not.toContain("q-0");
  // What ends by itself leaves a place.
  calls.at(-1)?.reply({ kind: "body", json: '{"error":"over"}' });
  listen("loud#mcp-1", "one more");
  expect(told.filter(({ body }) => body.includes("made room"))).toHaveLength(MAX_LISTENS / 2);
});
