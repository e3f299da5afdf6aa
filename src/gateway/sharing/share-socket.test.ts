import { Duplex } from "node:stream";
import { describe, expect, it } from "vitest";
import { until } from "../../../test/fixtures/wait.js";
import { resolveConfig } from "../../config/load.js";
import type { Principal } from "../../contracts/caller.js";
import type { ShareLine } from "../../contracts/status.js";
import type { Access } from "../../pipeline/access.js";
import { makeMessage, type RequestMessage } from "../../protocol/message.js";
import type { Share, ShareHooks } from "./open-share.js";
import { planOf, serveShare } from "./share-socket.js";

const PLAN = { servers: [], tools: [], roles: [], unlistedRoles: "allow", asked: [] } as const;
const message = makeMessage({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name: "press", arguments: { key: "Enter" } },
}) as RequestMessage;
const worker = { id: "mailbox/worker-1", role: "dev" };
const start = { server: "screen", tool: "press", message, mayRepeat: false };

/** `toolway share` at its end of the socket. */
function opened(first: object) {
  const lines: ShareLine[] = [];
  const ended: Share[] = [];
  let hooks: ShareHooks | undefined;
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      for (const line of chunk.toString().trim().split("\n")) lines.push(JSON.parse(line) as ShareLine);
      done();
    },
  });
  serveShare(socket, {
    begin: async (_settings, given) => {
      hooks = given;
      return {} as Share;
    },
    end: async (share) => void ended.push(share),
    plan: async () => PLAN,
    drainMs: 0,
  });
  const say = (line: object) => void socket.push(`${JSON.stringify(line)}\n`);
  say({ broker: "ws://b", as: "studio", ...first });
  return { socket, lines, ended, say, hooks: () => until(() => hooks) };
}

/** Of a call that is not taken back. */
const wanted = () => new AbortController().signal;

describe("a person whose tools are shared", () => {
  it("is shown who wants what, and says yes, no, or always for this worker", async () => {
    const { lines, say, hooks } = opened({ canAsk: true });
    const { ask } = await hooks();
    const answered = async (answer: string) => {
      const asked = ask?.(worker, start, 60_000, wanted());
      const question = await until(() => lines.filter((line) => line.kind === "ask").at(-1));
      say({ id: question.id, answer });
      return Promise.resolve(asked).then(
        () => "runs",
        (error: Error) => error.message,
      );
    };
    expect(await answered("no")).toContain("was asked, and said no");
    expect(lines.find((line) => line.kind === "ask")).toMatchObject({
      worker: "worker-1",
      role: "dev",
      server: "screen",
      tool: "press",
      arguments: '{"key":"Enter"}',
    });
    expect(await answered("yes")).toBe("runs");
    expect(await answered("always")).toBe("runs");
    const before = lines.length;
    await ask?.(worker, start, 60_000, wanted());
    expect(lines).toHaveLength(before);
    // Another worker is asked for again, and whoever does not answer in time has said no.
    await expect(ask?.({ id: "mailbox/worker-2", role: "dev" }, start, 1, wanted())).rejects.toThrow(
      "did not answer within 0 s",
    );
  });

  it("who has gone is not said to have been silent, and one with many questions has them said [told-why]", async () => {
    const { socket, lines, hooks } = opened({ canAsk: true });
    const { ask } = await hooks();
    const told = Array.from({ length: 65 }, (_, n) =>
      Promise.resolve(ask?.({ id: `mailbox/worker-${n}`, role: "dev" }, start, 60_000, wanted())).catch(
        (error: Error) => error.message,
      ),
    );
    expect(await told[64]).toContain("has 64 questions to answer already");
    await until(() => lines.filter((line) => line.kind === "ask").length === 64);
    socket.push(null);
    expect(new Set(await Promise.all(told.slice(0, 64)))).toEqual(
      new Set([expect.stringContaining("has just stopped to")]),
    );
    await expect(ask?.(worker, start, 60_000, wanted())).rejects.toThrow("has just stopped to");
  });

  it("is told that a question is over when its call is taken back", async () => {
    const { lines, hooks } = opened({ canAsk: true });
    const { ask } = await hooks();
    const call = new AbortController();
    const asked = ask?.(worker, start, 60_000, call.signal);
    const question = await until(() => lines.find((line) => line.kind === "ask"));
    call.abort();
    await expect(asked).rejects.toThrow("Nobody waits for this call any more");
    await until(() => lines.some((line) => line.kind === "asked" && line.id === question.id));
  });

  it("who is not there is not asked, and the tools are shared until the socket ends", async () => {
    const { socket, lines, ended, hooks } = opened({ canAsk: false });
    expect((await hooks()).ask).toBeUndefined();
    await until(() => lines.some((line) => line.kind === "sharing"));
    socket.push(null);
    await until(() => ended.length === 1);
  });
});

it("counts the tools of a role by the role alone: the menu of a principal of that name is not the role's [told-truly]", () => {
  const config = resolveConfig({ mcpServers: { s: { command: "x" } }, roles: { dev: { allow: ["s"] } } });
  const access = {
    // A principal called dev sees nothing now.
    decide: ({ id }: Principal) => ({ kind: id === "dev" ? "deny" : "allow" }),
    decideUnderWay: () => ({ kind: "allow" }),
  } as unknown as Access;
  const tools = ["a", "b"].map((ownName) => ({ name: `s__${ownName}`, server: "s", ownName }));
  expect(planOf(config, ["s"], tools, access).roles).toEqual([{ role: "dev", tools: 2 }]);
});
