// Which era a server speaks: found out at the first start, remembered, and found out anew when the server is another.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { type Agent, connect, ERAS, type Era } from "./eras.js";
import {
  freePort,
  type Gateway,
  root,
  startGateway,
  startHttpFixture,
  stdioFixture,
  temporaryDirectory,
  until,
} from "./harness.js";
import { statusOfAll } from "./operator.js";

const ASKER = join(root, "test/fixtures/servers/asker.mjs");

interface Seen {
  readonly era: Era;
  readonly pid: number;
}

const whoami = async (agent: Agent) => JSON.parse(await agent.text("whoami")) as Seen;

/** What a legacy agent's requests carry; a modern one has none. */
const sessionOf = ({ client }: Agent) => client.transport?.sessionId;

/** A server that can be replaced by one of another era behind the gateway's back: same command, or same address. */
interface Replaceable {
  readonly entry: Record<string, unknown>;
  become(era: Era, more?: readonly string[]): Promise<void>;
}

const KINDS: Record<string, () => Promise<Replaceable>> = {
  async stdio() {
    const file = join(await temporaryDirectory(), "server.mjs");
    return {
      entry: { command: process.execPath, args: [file] },
      become: (era, more = []) => {
        const args = ["--era", era, ...more].map((one) => JSON.stringify(one)).join(", ");
        return writeFile(file, `process.argv.push(${args});\nawait import(${JSON.stringify(ASKER)});\n`);
      },
    };
  },
  async http() {
    const port = await freePort();
    let running: { kill(): Promise<void> } | undefined;
    return {
      entry: { type: "http", url: `http://127.0.0.1:${port}/mcp` },
      async become(era, more = []) {
        await running?.kill();
        running = await startHttpFixture("asker", ["--era", era, ...more], port);
      },
    };
  },
};

describe.each(Object.keys(KINDS))("a server over %s", (kind) => {
  let server: Replaceable;

  beforeEach(async () => {
    server = (await KINDS[kind]?.()) as Replaceable;
  });

  async function started(era: Era, more?: readonly string[]): Promise<Gateway> {
    await server.become(era, more);
    const gateway = await startGateway({ mcpServers: { asker: server.entry } });
    await (await connect("legacy", gateway)).waitFor("whoami");
    return gateway;
  }

  const agentsOf = (gateway: Gateway) => Promise.all(ERAS.map((era) => connect(era, gateway)));

  /** Uses it from both eras, with a question, so that more than the handshake is tried. */
  async function expectEra(gateway: Gateway, era: Era, agents?: readonly Agent[]): Promise<void> {
    for (const agent of agents ?? (await agentsOf(gateway))) {
      const seen = await until(`the ${era} server`, async () => {
        const now = await whoami(agent);
        return now.era === era ? now : undefined;
      });
      expect(seen.era).toBe(era);
      expect(await agent.text("elicit", { what: "now?" })).toContain(`${agent.era}: now?`);
    }
  }

  /** Puts another server in its place; one over stdio has to end for that. */
  async function replace(gateway: Gateway, era: Era, more?: readonly string[]): Promise<void> {
    const agent = await connect("legacy", gateway);
    const { pid } = await whoami(agent);
    await server.become(era, more);
    if (kind === "stdio") process.kill(pid, "SIGKILL");
  }

  it.each([
    ["legacy", "modern"],
    ["modern", "legacy"],
  ] as const)(
    "that was %s and is %s now is noticed by the running gateway, and the sessions of its agents go on [restart-unseen]",
    async (before, after) => {
      const gateway = await started(before);
      const agents = await agentsOf(gateway);
      const sessions = agents.map(sessionOf);
      await expectEra(gateway, before, agents);
      await replace(gateway, after);
      await expectEra(gateway, after, agents);
      expect(agents.map(sessionOf)).toEqual(sessions);
      await expectEra(gateway, after);
    },
  );

  it("that became another release, with another revision of the protocol, is used by the sessions that its agents have [restart-unseen]", async () => {
    const gateway = await started("legacy", ["--revision", "2025-03-26"]);
    const agents = await agentsOf(gateway);
    const sessions = agents.map(sessionOf);
    await expectEra(gateway, "legacy", agents);
    expect((await statusOfAll(gateway)).servers[0]).toMatchObject({
      version: "2025-03-26",
      serverInfo: { version: "1.0.0" },
    });
    await replace(gateway, "legacy", ["--revision", "2025-06-18", "--release", "2.0.0"]);
    await until("the new release", async () => {
      await Promise.all(agents.map(whoami));
      const [seen] = (await statusOfAll(gateway)).servers;
      return seen?.version === "2025-06-18" && seen.serverInfo?.version === "2.0.0";
    });
    await expectEra(gateway, "legacy", agents);
    expect(agents.map(sessionOf)).toEqual(sessions);
  });

  it.each([
    ["legacy", "modern"],
    ["modern", "legacy"],
  ] as const)("that was %s and became %s while the gateway was away is noticed", async (before, after) => {
    const gateway = await started(before);
    await expectEra(gateway, before);
    await gateway.stop();
    await server.become(after);
    await expectEra(await gateway.again(), after);
  });

  it.each(ERAS)("that stays %s keeps its era over the gateway's restart", async (era) => {
    const gateway = await started(era);
    await gateway.stop();
    await expectEra(await gateway.again(), era);
  });
});

describe("a server of its own kind", () => {
  it("that speaks both eras is spoken to in the modern one; over HTTP by legacy agents in theirs [own-era]", async () => {
    const { entry } = await startHttpFixture("asker", ["--era", "both"]);
    const mcpServers = { http: entry, stdio: stdioFixture("asker", ["--era", "both"]) };
    const gateway = await startGateway({ names: "prefixed", mcpServers });
    for (const era of ERAS) {
      const agent = await connect(era, gateway);
      await agent.waitFor("http__whoami", "stdio__whoami");
      for (const name of ["http", "stdio"]) {
        const spoken = name === "http" ? era : "modern";
        expect(JSON.parse(await agent.text(`${name}__whoami`))).toMatchObject({ era: spoken });
        expect(await agent.text(`${name}__elicit`, { what: "?" })).toContain(`${era}: ?`);
      }
    }
  });

  it("that exits on any request before initialize is started again at once, at no cost", async () => {
    const gateway = await startGateway({ mcpServers: { early: stdioFixture("early-exit") } });
    for (const era of ERAS) {
      const agent = await connect(era, gateway);
      await agent.waitFor("pid");
      expect(Number(await agent.text("pid"))).toBeGreaterThan(0);
    }
    expect(gateway.log()).not.toMatch(/backoff|gave up/i);
    await gateway.stop();
    // Remembered: the next start does not try again what ends it.
    const again = await gateway.again();
    await (await connect("modern", again)).waitFor("pid");
  });
});
