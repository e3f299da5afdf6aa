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

const ASKER = join(root, "test/fixtures/servers/asker.mjs");

interface Seen {
  readonly era: Era;
  readonly pid: number;
}

const whoami = async (agent: Agent) => JSON.parse(await agent.text("whoami")) as Seen;

/** A server that can be replaced by one of another era behind the gateway's back: same command, or same address. */
interface Replaceable {
  readonly entry: Record<string, unknown>;
  become(era: Era): Promise<void>;
}

const KINDS: Record<string, () => Promise<Replaceable>> = {
  async stdio() {
    const file = join(await temporaryDirectory(), "server.mjs");
    return {
      entry: { command: process.execPath, args: [file] },
      become: (era) =>
        writeFile(file, `process.argv.push("--era", "${era}");\nawait import(${JSON.stringify(ASKER)});\n`),
    };
  },
  async http() {
    const port = await freePort();
    let running: { kill(): Promise<void> } | undefined;
    return {
      entry: { type: "http", url: `http://127.0.0.1:${port}/mcp` },
      async become(era) {
        await running?.kill();
        running = await startHttpFixture("asker", ["--era", era], port);
      },
    };
  },
};

describe.each(Object.keys(KINDS))("a server over %s", (kind) => {
  let server: Replaceable;

  beforeEach(async () => {
    server = (await KINDS[kind]?.()) as Replaceable;
  });

  async function started(era: Era): Promise<Gateway> {
    await server.become(era);
    const gateway = await startGateway({ mcpServers: { asker: server.entry } });
    await (await connect("legacy", gateway)).waitFor("whoami");
    return gateway;
  }

  /** Uses it from both eras, with a question, so that more than the handshake is tried. */
  async function expectEra(gateway: Gateway, era: Era): Promise<void> {
    for (const agentEra of ERAS) {
      const agent = await connect(agentEra, gateway);
      const seen = await until(`the ${era} server`, async () => {
        const now = await whoami(agent);
        return now.era === era ? now : undefined;
      });
      expect(seen.era).toBe(era);
      expect(await agent.text("elicit", { what: "now?" })).toContain(`${agentEra}: now?`);
    }
  }

  /** Puts another server in its place; one over stdio has to end for that. */
  async function replace(gateway: Gateway, era: Era): Promise<void> {
    const agent = await connect("legacy", gateway);
    const { pid } = await whoami(agent);
    await server.become(era);
    if (kind === "stdio") process.kill(pid, "SIGKILL");
  }

  it.each([
    ["legacy", "modern"],
    ["modern", "legacy"],
  ] as const)("that was %s and is %s now is noticed by the running gateway", async (before, after) => {
    const gateway = await started(before);
    await expectEra(gateway, before);
    await replace(gateway, after);
    await expectEra(gateway, after);
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
