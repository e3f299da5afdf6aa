// Many agents that choose the same ids, on one shared server: each gets its own answers and nobody else's.

import { beforeAll, expect, it } from "vitest";
import { connectV1, waitForTools } from "./clients.js";
import { type Gateway, startGateway, stdioFixture } from "./harness.js";
import { lastOf, openHttpWire } from "./wire.js";

const CLIENTS = 200;
const ROUNDS = 3;

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({
    mcpServers: { slow: stdioFixture("slow"), fidelity: stdioFixture("fidelity") },
  });
  await waitForTools(await connectV1(gateway.url), "sleep", "answer");
});

it("200 clients with the same ids get no reply of another [crossed-never]", async () => {
  const wires = await Promise.all(Array.from({ length: CLIENTS }, () => openHttpWire(gateway.url)));
  const answers = await Promise.all(
    wires.flatMap((wire, client) =>
      Array.from({ length: ROUNDS }, async (_, round) => {
        // Numbers and their strings are different ids; the waits put the answers out of order.
        const id = client % 2 === 0 ? `${round}` : `"${round}"`;
        const label = `client ${client} round ${round}`;
        const ms = (client * 7 + round * 13) % 50;
        const params = `{"name":"sleep","arguments":{"ms":${ms},"label":"${label}"},"_meta":{"progressToken":1}}`;
        const answer = await wire.send(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`);
        return { wanted: { id: JSON.parse(id) as unknown, label }, got: JSON.parse(lastOf(answer)) as Reply };
      }),
    ),
  );
  expect(answers).toHaveLength(CLIENTS * ROUNDS);
  for (const { wanted, got } of answers) {
    expect(got.id).toBe(wanted.id);
    expect(JSON.parse(got.result.content[0].text)).toMatchObject({ label: wanted.label });
  }
});

it("progress of one client is seen by that client alone [crossed-never]", async () => {
  const wires = await Promise.all(Array.from({ length: 20 }, () => openHttpWire(gateway.url)));
  await Promise.all(
    wires.map(async (wire, client) => {
      const params = `{"name":"sleep","arguments":{"ms":80,"everyMs":20,"label":"c${client}."},"_meta":{"progressToken":1}}`;
      const answer = await wire.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`);
      const progress = answer.messages.slice(0, -1).map((text) => JSON.parse(text) as Progress);
      expect(progress).toHaveLength(3);
      for (const { params: seen } of progress) {
        expect(seen.progressToken).toBe(1);
        expect(seen.message.startsWith(`c${client}. `)).toBe(true);
      }
    }),
  );
});

it("one session cannot cancel the call of another by its id [crossed-never]", async () => {
  const [one, other] = await Promise.all([openHttpWire(gateway.url), openHttpWire(gateway.url)]);
  const params = '{"name":"sleep","arguments":{"ms":500,"label":"mine"}}';
  const answer = one.send(`{"jsonrpc":"2.0","id":77,"method":"tools/call","params":${params}}`);
  await other.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}');
  const { result } = JSON.parse(lastOf(await answer)) as Reply;
  expect(result.content[0].text).toContain("mine");
});

interface Reply {
  readonly id: unknown;
  readonly result: { readonly content: readonly [{ readonly text: string }] };
}

interface Progress {
  readonly params: { readonly progressToken: unknown; readonly message: string };
}
