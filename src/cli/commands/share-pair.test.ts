// `share` from the words of the line to what it changes and what it asks, with a fake gateway.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, run, STATUS } from "../../../test/fixtures/fake-gateway.js";
import { heldIo } from "../../../test/fixtures/held-io.js";
import { until } from "../../../test/fixtures/wait.js";
import { type GatewayPort, replaceGatewayPort } from "../gateway/port.js";
import { ask } from "../line/ask.js";

beforeEach(makeFolder);

afterEach(leaveFolder);

const SUMMARY = "/mailboxes/summary?mailbox=studio";
const ROTATE = "/tokens/studio/rotate";

/** A broker that knows the sharer, and a gateway with these shares. */
function broker(connections: number, shares: readonly object[] = []) {
  return fakeGateway({
    "/status": { ...STATUS, shares },
    "/tokens": { tokens: [{ id: "studio", role: "sharer" }] },
    [SUMMARY]: { mailbox: "studio", connections },
    [ROTATE]: { token: "tw_new" },
    "/mailboxes/pair": { code: "ABCD-EFGH-JKMN", expiresInMs: 600_000 },
  });
}

const changes = ({ requests }: ReturnType<typeof broker>) => requests.filter((one) => "body" in one);

describe("share --pair", () => {
  it("changes nothing where somebody shares there already, and says how to get one more word", async () => {
    const shared = { broker: "ws://127.0.0.1:7420", mailbox: "studio", state: "waiting" };
    for (const fake of [() => broker(1), () => broker(0, [shared])]) {
      const made = fake();
      writeFileSync(join(folder, "mine.json"), '{"mcpServers":{}}');
      const { code, out, err } = await run(["share", "mine.json", "--pair", "--as", "studio", "--state", "st"]);
      expect({ code, out }).toEqual({ code: 1, out: "" });
      expect(err).toContain('shared as "studio" at ws://127.0.0.1:7420 already');
      expect(err).toMatch(/toolway mailbox pair studio --state \S+broker/);
      // Config and state of this gateway are not the broker's.
      expect(err).not.toContain("mine.json");
      expect(err).not.toContain("ABCD");
      expect(changes(made)).toEqual([]);
    }
    const made = broker(0, [{ ...shared, mailbox: "attic" }]);
    expect((await run(["share", "--pair", "--as", "studio"])).err).toContain("/ABCD-EFGH-JKMN");
    expect(changes(made).map(({ path }) => path)).toEqual([ROTATE, "/mailboxes/pair"]);
  });

  it("says what it opens to other machines, where its own broker listens for them", async () => {
    const listening = async (host: string) => {
      const { port } = broker(0);
      let finds = 0;
      const find: GatewayPort["find"] = async (source) => (finds++ === 0 ? undefined : port.find(source));
      const start = async () => ({ url: `http://${host}:7440/mcp`, close: async () => {} }) as never;
      replaceGatewayPort({ ...port, find, start });
      return (await run(["share", "--pair", "--as", "studio", "--listen", `${host}:7440`])).err;
    };
    expect(await listening("0.0.0.0")).toMatch(/listens on 0\.0\.0\.0: whoever reaches this machine .* without TLS/);
    expect(await listening("127.0.0.1")).not.toContain("listens on");
  });

  it("dials no broker elsewhere where this gateway shares there already", async () => {
    broker(0, [{ broker: "ws://127.0.0.1:1", mailbox: "studio", state: "connected" }]);
    const line = ["share", "--pair", "--as", "studio", "--broker", "ws://127.0.0.1:1/"];
    const { code, err } = await run(line, { env: { TOOLWAY_TOKEN: "tw_x" } });
    expect(code).toBe(1);
    expect(err).toContain("already");
    expect(err).toContain("toolway mailbox pair studio");
  });

  it("misses the config before it makes a word for it", async () => {
    const made = broker(0);
    const { code, err } = await run(["share", "./missing.json", "--pair", "--as", "studio"]);
    expect(code).toBe(2);
    expect(err).toContain("There is no config at");
    expect(err).not.toContain("ABCD");
    expect(made.requests).toEqual([]);
  });
});

describe("a question of share", () => {
  it("is answered by what is typed after it was shown, and by nothing before", async () => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    let seen = "";
    const stderr = new PassThrough();
    stderr.on("data", (chunk: Buffer) => {
      seen += chunk.toString();
    });
    const question = {
      kind: "ask",
      worker: "laptop",
      role: "dev",
      server: "files",
      tool: "erase",
      arguments: "{}",
    } as const;
    const times = (text: string) => seen.split(text).length - 1;
    const answers: string[] = [];
    const share: GatewayPort["share"] = async (_, { onLine }) => {
      const answer = (id: number, said: string) => void answers.push(`${id} ${said}`);
      stdin.write("a\r");
      onLine({ ...question, id: 1 }, answer);
      await until("the first question", () => times("wants erase") === 1);
      stdin.write("n\r");
      await until("its answer", () => answers.length === 1);
      onLine({ ...question, id: 2 }, answer);
      await until("the second question", () => times("wants erase") === 2);
      // Nobody answers in time, and then somebody does, and begins another line.
      onLine({ kind: "asked", id: 2 }, answer);
      await until("its end", () => times("Too late") === 1);
      stdin.write("a\ra");
      onLine({ ...question, id: 3 }, answer);
      await until("the third question", () => times("wants erase") === 3);
      stdin.write("y\r");
      await until("its answer", () => answers.length === 2);
      return "stopped";
    };
    fakeGateway({}, { share });
    const line = ["share", "--broker", "ws://127.0.0.1:1", "--as", "studio"];
    expect((await run(line, { stdin, stderr, isErrTTY: true })).code).toBe(0);
    expect(answers).toEqual(["1 no", "3 yes"]);
  });

  it("has no answer where nobody types any more", async () => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    stdin.end("y\r");
    expect(await ask(heldIo({ stdin, isErrTTY: true }).io, "? ", { isHidden: false, isFresh: true })).toBeUndefined();
  });
});
