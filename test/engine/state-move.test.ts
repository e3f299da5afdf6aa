// What a gateway keeps, moved from its disk into an engine and back, by the command line: a gateway there goes on with all of it,
// and the old state is refused.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EngineSettings } from "../../src/contracts/settings.js";
import { grantKeeper } from "../../src/credentials/grant.js";
import { createGateway } from "../../src/gateway/create.js";
import { EngineSide } from "../../src/gateway/move/engine-side.js";
import { QUEUES, type QueueKind } from "../../src/gateway/move/kinds.js";
import { moveState } from "../../src/gateway/move/move.js";
import { partitionFor } from "../../src/gateway/move/side.js";
import { openState } from "../../src/gateway/state/state.js";
import type { Reply } from "../e2e/eras.js";
import { cli, startGateway, startHttpFixture } from "../e2e/harness.js";
import { callTool } from "../e2e/operator.js";
import { full } from "../faults/length.js";
import { begin, type EngineGateway, engineKey, post, startOnEngine } from "../fixtures/engine-gateways.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { effectsIn } from "../fixtures/ledger.js";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `a state that is moved, ${NO_NATS}` : "a state that is moved";

interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

interface Kind {
  readonly kind: string;
  readonly count: number;
  readonly hash: string;
  readonly written: number;
  readonly removed: number;
}

const byText = (a: string, b: string) => a.localeCompare(b);

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;
  let connection: NatsConnection;
  const folder = temporaryFolder("toolway-move-");
  /** Each try of a test has its own. */
  let tries = 0;
  const another = () => {
    const dir = join(folder, String(++tries));
    mkdirSync(dir);
    return dir;
  };
  let server: Awaited<ReturnType<typeof startHttpFixture>>;
  const open: EngineGateway[] = [];

  const config = () => {
    const outbox = { lane: "arguments.project", key: "arguments.request_id" };
    const tracker = { type: "http" as const, url: server.url, tools: { create_issue: { outbox } } };
    return { names: "plain" as const, mailboxes: {}, mcpServers: { tracker } };
  };
  /** Of the command line: the config with the engine of that prefix. */
  const configFile = (prefix: string) => {
    const path = join(folder, `${prefix}.json`);
    const engine = { nats: nats.urls, key: { env: "ENGINE_KEY" }, replicas: 1, prefix };
    writeFileSync(path, JSON.stringify({ ...config(), engine }));
    return path;
  };
  const env = { ...process.env, ENGINE_KEY: engineKey };
  const run = async (...words: string[]): Promise<Ran> => {
    const child = spawn(process.execPath, [cli, ...words], { env });
    let [out, err] = ["", ""];
    child.stdout.on("data", (data: Buffer) => (out += data));
    child.stderr.on("data", (data: Buffer) => (err += data));
    const [code] = (await once(child, "close")) as [number | null];
    return { code, out, err };
  };
  const move = (to: "engine" | "local", prefix: string, dir: string, ...more: string[]) =>
    run("state", "move", configFile(prefix), "--to", to, "--state", dir, "--json", ...more);
  const kindsOf = ({ out }: Ran) => {
    const { kinds } = JSON.parse(out) as { kinds: Kind[] };
    return Object.fromEntries(kinds.map((one) => [one.kind, one]));
  };

  const startLocal = async (dir: string): Promise<EngineGateway> => {
    const log: string[] = [];
    const note = (text: string) => void log.push(text);
    const gateway = await createGateway(config(), {
      stateDir: dir,
      env: { PATH: process.env["PATH"] },
      log: { debug: note, info: note, warn: note, error: note },
    });
    const { url } = await gateway.listen({ host: "127.0.0.1", port: 0 });
    const one = { gateway, url, log };
    open.push(one);
    return one;
  };
  const startShared = async (prefix: string, dir: string) => {
    const one = await startOnEngine(nats, config(), { prefix }, dir);
    open.push(one);
    return one;
  };
  const stop = async (one: EngineGateway) => {
    open.splice(open.indexOf(one), 1);
    await one.gateway.close({ drainMs: 0 });
  };
  const mailboxesOf = ({ url }: EngineGateway) => url.replace("http", "ws").replace("/mcp", "/mailboxes");
  const call = ({ url, gateway }: EngineGateway, tool: string, args: Record<string, unknown>): Promise<Reply> =>
    callTool(url, tool, args, gateway.token);
  const write = async (one: EngineGateway, name: string): Promise<string> => {
    const { result } = await call(one, "create_issue", { project: "a", title: name, request_id: `key-${name}` });
    return (result?.["structuredContent"] as { receipt?: string } | undefined)?.receipt ?? "";
  };
  const login = ({ gateway }: EngineGateway) => {
    return grantKeeper(gateway.state.grants, "studio", { url: "https://studio.example/mcp", clientId: undefined });
  };
  /** The streams of a prefix, and how much is in each. */
  const streamsOf = async (prefix: string) => {
    const streams = await (await jetstreamManager(connection)).streams.list().next();
    const all = streams.map(({ config: { name }, state }) => [name, state.messages] as const);
    return all.filter(([name]) => name.startsWith(`${prefix}_`));
  };

  beforeAll(async () => {
    nats = await startNats();
    connection = await connect({ servers: nats.nodes.map(({ port }) => `127.0.0.1:${port}`) });
    server = await startHttpFixture("tracker");
  });
  afterAll(async () => {
    closeBareClients();
    await Promise.all(open.map(({ gateway }) => gateway.close({ drainMs: 0 })));
    await connection.close();
  });

  it("goes on in the engine, with its token, session, login, receipts, writes and messages, and back on the disk [engine-move]", async () => {
    const own = another();
    const [prefix, stateDir, ledger] = [`try-${tries}`, join(own, "state"), join(own, "ledger.jsonl")];
    const files = ["--ledger", ledger];
    server = await startHttpFixture("tracker", files);
    const titles = () => effectsIn(ledger).map(({ title: name }) => name);
    // ── A gateway alone, with something of everything.
    const first = await startLocal(stateDir);
    await first.gateway.servers.get("tracker")?.firstTry;
    const { token } = first.gateway;
    const create = (id: string, role: string, maySendTo?: readonly string[]) =>
      first.gateway.state.tokens.create({ id, role, ...(maySendTo === undefined ? {} : { maySendTo }) }, Date.now());
    const tokens = { studio: await create("studio", "sharer"), worker: await create("worker", "dev", ["studio"]) };
    await first.gateway.setContext("default", { phase: "review" });
    const tokensOfLogin = { access: "a", refresh: "r", scopes: [], endsAt: undefined, lifeMs: undefined };
    const issuer = { url: "https://login.example", metadata: undefined, resource: undefined, scopes: [] };
    const client = { client_id: "c" };
    await login(first).put({ issuer, client, redirectUri: "http://127.0.0.1/", tokens: tokensOfLogin });
    const session = await begin(first, token);
    const ended = await begin(first, token);
    await fetch(first.url, { method: "DELETE", headers: { ...ended, authorization: `Bearer ${token}` } });
    expect(await write(first, "live")).toBe("");
    await server.kill();
    const receipts = [await write(first, "one"), await write(first, "two")];
    const sender = await BareClient.connect(mailboxesOf(first), "worker", tokens.worker);
    sender.send({ kind: "subscribe" });
    const machine = await BareClient.connect(mailboxesOf(first), "studio", tokens.studio);
    sender.deliver("studio", "bad", {});
    machine.send({ kind: "subscribe" });
    for (let n = 1; n <= 5; n++) {
      expect(await machine.message()).toMatchObject({ id: "bad" });
      machine.send({ kind: "release", id: "bad", from: "worker", failed: true, reason: `no ${n}` });
    }
    // Its sender is told.
    const told = await sender.message();
    sender.send({ kind: "ack", id: told.id });
    machine.socket.terminate();
    for (const id of ["m-1", "m-2"]) {
      sender.deliver("studio", id, { op: id });
      await until(id, async () => (await sender.next("delivered", "error"))["id"] === id);
    }
    sender.socket.terminate();

    // ── It runs: refused. Then counted, with nothing written.
    const held = await move("engine", prefix, stateDir);
    expect(held.code).not.toBe(0);
    expect(held.err).toContain("already running");
    await stop(first);
    const counted = await move("engine", prefix, stateDir, "--dry-run");
    expect(kindsOf(counted)).toMatchObject({
      tokens: { count: 2, written: 2 },
      "kept writes": { count: 3 },
      messages: { count: 2 },
      "dead letters": { count: 1 },
      logins: { count: 1 },
      contexts: { count: 1 },
    });
    expect(await streamsOf(prefix)).toEqual([]);

    // ── Moved: the old one is refused, and the engine has all of it.
    const moved = await move("engine", prefix, stateDir);
    expect(moved).toMatchObject({ code: 0 });
    const sums = (ran: Ran) => Object.values(kindsOf(ran)).map(({ kind, count, hash }) => [kind, count, hash]);
    expect(sums(moved)).toEqual(sums(counted));
    await expect(startLocal(stateDir)).rejects.toThrow(/was moved to the engine at nats:.*toolway state unmark/);
    const alone = join(own, "alone.json");
    writeFileSync(alone, JSON.stringify(config()));
    for (const verb of [["serve", alone], ["broker"], ["tools", "--config", alone]]) {
      const refused = await run(...verb, "--state", stateDir);
      expect(refused.code, verb[0]).toBe(1);
      expect(refused.err, verb[0]).toContain("was moved to the engine at nats:");
    }
    const again = await move("engine", prefix, stateDir);
    expect(again.code).toBe(1);
    expect(again.err).toContain("was moved to the engine");

    const second = await startShared(prefix, stateDir);
    expect(second.gateway.token).toBe(token);
    expect(second.gateway.contextOf("default")).toEqual({ phase: "review" });
    expect(login(second).get()?.tokens.refresh).toBe("r");
    const ping = (one: EngineGateway, headers: Record<string, string>) =>
      post(one, token, { id: 1, method: "ping" }, headers);
    expect((await ping(second, session)).status).toBe(200);
    expect((await ping(second, ended)).status).toBe(404);
    for (const id of receipts) {
      await until("its receipt", async () => (await second.gateway.outbox?.show(id))?.id === id);
    }
    const studio = await BareClient.connect(mailboxesOf(second), "studio", tokens.studio);
    studio.send({ kind: "subscribe" });
    expect([(await studio.message()).id, (await studio.message()).id]).toEqual(["m-1", "m-2"]);
    studio.send({ kind: "ack", id: "m-1", from: "worker" });
    await until("one to be taken", async () => {
      const operator = await second.gateway.mailboxes.operator();
      const { items } = (await operator?.list({ offset: 0, limit: 10 })) ?? { items: [] };
      return items.find(({ mailbox }) => mailbox === "studio")?.dead === 1;
    });
    studio.socket.terminate();
    server = await startHttpFixture("tracker", files, server.port);
    for (const id of receipts) {
      const { result } = await call(second, "toolway__receipt", { id, wait: 45 });
      expect(result?.["structuredContent"]).toMatchObject({ receipt: id, state: "done" });
    }
    expect(titles()).toEqual(["live", "one", "two"]);
    await server.kill();
    const late = await write(second, "three");
    expect(late).toMatch(/^p\d+_/);

    // ── A gateway lives on it: refused by name. Then back onto the disk that it came from.
    const other = join(another(), "other");
    const live = await move("local", prefix, other);
    expect(live.code).toBe(1);
    expect(live.err).toContain(`Gateway ${second.gateway.state.engine?.self} runs on the engine`);
    expect(existsSync(other)).toBe(false);
    await stop(second);
    const back = await move("local", prefix, stateDir);
    expect(back).toMatchObject({ code: 0 });
    expect(kindsOf(back)).toMatchObject({ "kept writes": { count: 4 }, "dead letters": { count: 1, written: 0 } });
    await expect(startShared(prefix, stateDir)).rejects.toThrow(
      /was moved to the state directory .*toolway state unmark/,
    );

    const third = await startLocal(stateDir);
    expect(third.gateway.token).toBe(token);
    expect((await ping(third, session)).status).toBe(200);
    expect((await ping(third, ended)).status).toBe(404);
    server = await startHttpFixture("tracker", files, server.port);
    const done = await call(third, "toolway__receipt", { id: late, wait: 45 });
    expect(done.result?.["structuredContent"]).toMatchObject({ receipt: late, state: "done" });
    for (const id of receipts) expect((await third.gateway.outbox?.show(id))?.state).toBe("done");
    // What had an effect is known by its key, wherever it was.
    expect(await write(third, "one")).toBe("");
    expect(titles()).toEqual(["live", "one", "two", "three"]);
    const taker = await BareClient.connect(mailboxesOf(third), "studio", tokens.studio);
    taker.send({ kind: "subscribe" });
    expect((await taker.message()).id).toBe("m-2");
    taker.socket.terminate();
    await stop(third);
  });

  it("goes to the engine, back and there again with its receipts, and nothing is sent twice [engine-move] [no-double-effect]", async () => {
    const own = another();
    const [prefix, stateDir, ledger] = [`try-${tries}`, join(own, "state"), join(own, "ledger.jsonl")];
    const files = ["--ledger", ledger];
    server = await startHttpFixture("tracker", files);
    const first = await startLocal(stateDir);
    await first.gateway.servers.get("tracker")?.firstTry;
    await server.kill();
    const [one, two, three] = [await write(first, "one"), await write(first, "two"), await write(first, "three")];
    const stateOf = async (at: EngineGateway, id: string) => (await at.gateway.outbox?.show(id))?.state;
    await stop(first);
    const moved = async (to: "engine" | "local") => expect(await move(to, prefix, stateDir)).toMatchObject({ code: 0 });
    const movedReceipts = ({ gateway }: EngineGateway) =>
      [...(gateway.state.engine?.shared.map("moved-receipts").entries() ?? [])].map(([id]) => id).sort(byText);

    await moved("engine");
    const second = await startShared(prefix, stateDir);
    expect(movedReceipts(second)).toEqual([one, two, three].sort(byText));
    await until("its partitions", async () => (await stateOf(second, one)) === "queued");
    const four = await write(second, "four");
    await stop(second);

    await moved("local");
    const third = await startLocal(stateDir);
    server = await startHttpFixture("tracker", files, server.port);
    for (const id of [one, two, three, four]) {
      const { result } = await call(third, "toolway__receipt", { id, wait: 45 });
      expect(result?.["structuredContent"]).toMatchObject({ receipt: id, state: "done" });
    }
    // As one is after a week.
    await stop(third);
    const disk = await openState(stateDir, {});
    const kept = disk.store?.map<{ readonly id: string }>("outbox");
    for (const [key, { id }] of [...(kept?.entries() ?? [])]) if (id === two) await kept?.delete(key);
    await disk.close();

    await moved("engine");
    const fourth = await startShared(prefix, stateDir);
    expect(movedReceipts(fourth)).toEqual([one, three].sort(byText));
    for (const id of [one, three, four]) {
      await until("its receipt", async () => (await stateOf(fourth, id)) === "done");
    }
    expect(await stateOf(fourth, two)).toBeUndefined();
    for (const name of ["one", "three", "four"]) expect(await write(fourth, name)).toBe("");
    expect(effectsIn(ledger).map(({ title: name }) => name)).toEqual(["one", "two", "three", "four"]);
    await stop(fourth);
  });

  it("is gone on with after kill -9, brought up to date, and stops at what is another's [engine-move]", async () => {
    const own = another();
    const [prefix, dir, elsewhere] = [`try-${tries}`, join(own, "state"), join(own, "elsewhere")];
    const first = await startLocal(dir);
    const sessions = first.gateway.state.store?.map("sessions");
    const record = { principal: "default", began: 1, ended: true };
    const keys = Array.from({ length: 8_000 }, (_, n) => `s-${n}`);
    await Promise.all(keys.map((key) => sessions?.put(key, record)));
    await stop(first);

    const killed = spawn(
      process.execPath,
      [cli, "state", "move", configFile(prefix), "--to", "engine", "--state", dir],
      {
        env,
        stdio: "ignore",
      },
    );
    const exit = once(killed, "exit");
    const copied = async () => (await streamsOf(prefix)).find(([name]) => name === `${prefix}_state`)?.[1] ?? 0;
    // The mark, and some of it.
    while ((await copied()) < 20 && killed.exitCode === null);
    killed.kill("SIGKILL");
    await exit;
    expect(await copied()).toBeLessThan(8_000);

    // Half of it is served by nobody; the source is as it was, and goes on.
    await expect(startShared(prefix, elsewhere)).rejects.toThrow(/has a part of what is moved into it/);
    const between = await startLocal(dir);
    await between.gateway.state.store?.map("sessions").delete("s-0");
    await between.gateway.state.store?.map("sessions").put("s-1", { ...record, began: 2 });
    await stop(between);
    const resumed = await move("engine", prefix, dir);
    expect(resumed).toMatchObject({ code: 0 });
    const { sessions: moved } = kindsOf(resumed);
    expect(moved).toMatchObject({ count: 7_999 });
    expect(moved?.written).toBeLessThan(7_999);
    const shared = await startShared(prefix, elsewhere);
    const there = shared.gateway.state.sessions;
    expect([there.get("s-0"), there.get("s-1")?.began]).toEqual([undefined, 2]);
    await shared.gateway.state.tokens.create({ id: "twice", role: "default" }, Date.now());
    await stop(shared);

    // Used at both ends since: nothing is written over.
    const asked = await run("state", "unmark", configFile(prefix), "--state", dir);
    expect(asked.code).toBe(2);
    expect(asked.err).toContain("--yes");
    const unmarked = await run("state", "unmark", configFile(prefix), "--state", dir, "--yes");
    expect(unmarked).toMatchObject({ code: 0, out: `Unmarked: the state directory ${dir}.\n` });
    const again = await run("state", "unmark", configFile(prefix), "--of", "local", "--state", dir, "--yes");
    expect(again).toMatchObject({ code: 1, err: expect.stringContaining("The state directory is not marked.") });
    const both = await startLocal(dir);
    await both.gateway.state.tokens.create({ id: "twice", role: "default" }, Date.now());
    await stop(both);
    const before = await streamsOf(prefix);
    const conflict = await move("engine", prefix, dir);
    expect(conflict.code).toBe(1);
    expect(JSON.parse(conflict.out)).toMatchObject({
      moved: false,
      conflicts: expect.arrayContaining([{ kind: "tokens", key: "twice", why: "is there already, and differs" }]),
    });
    expect(await streamsOf(prefix)).toEqual(before);
    await stop(await startLocal(dir));

    // Another's key, and a directory with nothing in it.
    const stranger = join(own, "stranger");
    await stop(await startLocal(stranger));
    const foreign = await move("local", prefix, stranger);
    expect(foreign.code).toBe(1);
    expect(foreign.err).toContain("has a sealing key of its own");
    const empty = await move("engine", prefix, join(own, "nothing"));
    expect(empty.err).toContain("there is nothing to move");
    const fresh = join(own, "fresh");
    expect(await move("local", prefix, fresh)).toMatchObject({ code: 0 });
    const last = await startLocal(fresh);
    expect(last.gateway.token).toBe(shared.gateway.token);
    expect(last.gateway.state.sessions.get("s-1")?.began).toBe(2);
    await stop(last);
  });

  it("is left by a gateway that came to it in the moment in which it was moved [engine-move]", async () => {
    const own = another();
    const prefix = `try-${tries}`;
    const engine = { nats: nats.urls, key: { env: "ENGINE_KEY" }, replicas: 1, prefix };
    const late = await startGateway({ ...config(), engine } as never, { env: { ENGINE_KEY: engineKey } });
    const other = await startShared(prefix, join(own, "state"));
    const where = { self: "the engine", other: "a disk", otherId: "x" };
    await other.gateway.state.engine?.shared
      .map("state-mark")
      .put("mark", { v: 1, state: "moved", at: Date.now(), ...where });
    await late.exited;
    expect(late.log()).toContain("was moved to a disk");
    // One that a program embeds closes too; the program goes on.
    await until("it to be closed", () =>
      fetch(other.url).then(
        () => false,
        () => true,
      ),
    );
    expect(other.log.join("\n")).toContain("was moved to a disk");
    await stop(other);
    const unmarked = await run("state", "unmark", configFile(prefix), "--state", join(own, "none"), "--yes", "--json");
    expect(JSON.parse(unmarked.out)).toMatchObject({ unmarked: "engine" });
    await stop(await startShared(prefix, join(own, "state")));
  });

  it("has each message where its broker looks for it, with a token or without, and is as many back on the disk, past whoever had it [engine-move]", async () => {
    const own = another();
    const [prefix, stateDir] = [`try-${tries}`, join(own, "state")];
    const state = await openState(stateDir, {});
    await state.tokens.create({ id: "worker", role: "dev", maySendTo: ["studio"] }, Date.now());
    const messages = [
      // Of whoever came where mailboxes are open; and an answer to somebody that its sender may not write to unasked.
      { from: "anybody", to: "studio" },
      { from: "worker", to: "barn" },
    ];
    for (const names of messages) {
      const head = JSON.stringify({ ...names, id: "m", kind: "event", at: 1, hash: "h", correlationId: "c" });
      await state.store?.log("mail").append(`[${head.length},${head},{}]`);
    }
    await state.close();
    const settings = (await startShared(`${prefix}-other`, join(own, "other"))).gateway.config.engine as EngineSettings;
    const engine = { ...settings, prefix };
    const options = { env: { ENGINE_KEY: engineKey }, signal: new AbortController().signal, warn: () => {} };
    const moved = async (to: "engine" | "local") => {
      const report = await moveState({ to, stateDir, engine, dryRun: false, progress: () => {}, ...options });
      return [report.moved, report.kinds.find(({ kind }) => kind === "messages")?.count];
    };
    expect(await moved("engine")).toEqual([true, 2]);
    const side = await EngineSide.open(engine, options);
    const mail = QUEUES.find(({ name }) => name === "messages") as QueueKind;
    const queue = await side.queue(mail);
    const places = [...queue].flatMap(([partition, items]) => items.map(({ name }) => [name, partition]));
    expect(Object.fromEntries(places)).toEqual({
      "m for studio": partitionFor("studio"),
      "m for barn": partitionFor("worker"),
    });
    // Its token has ended since: the place of the answer does not follow from tokens any more.
    await side.shared?.map("tokens").delete("worker");
    // Like a gateway that has a partition, is not heard for long, and goes on later.
    const head = JSON.stringify({ from: "", to: "studio", id: "late", kind: "event", at: 2, hash: "h" });
    const texts = () => [`[${head.length},${head},{}]`];
    const add = () => side.append(mail, [{ partition: partitionFor("studio"), name: "", atMs: 2, texts }], () => {});
    await add();
    expect(await moved("local")).toEqual([true, 3]);
    await expect(add()).rejects.toMatchObject({ code: "fenced" });
    await side.close();
  });

  it.runIf(full)(
    "is shut on either end after kill -9 of a move back to a disk, which then goes on, past a gateway that was killed [engine-move]",
    async () => {
      const own = another();
      const [prefix, target] = [`try-${tries}`, join(own, "target")];
      const engine = { nats: nats.urls, key: { env: "ENGINE_KEY" }, replicas: 1, prefix };
      const dead = await startGateway({ ...config(), engine } as never, { env: { ENGINE_KEY: engineKey } });
      const first = await startShared(prefix, join(own, "state"));
      const keys = Array.from({ length: 8_000 }, (_, n) => `s-${n}`);
      const record = { principal: "default", began: 1, ended: true } as const;
      for (let n = 0; n < keys.length; n += 500) {
        await Promise.all(keys.slice(n, n + 500).map((key) => first.gateway.state.sessions.put(key, record)));
      }
      await dead.stop("SIGKILL");
      await stop(first);
      const line = ["state", "move", configFile(prefix), "--to", "local", "--state", target];
      const killed = spawn(process.execPath, [cli, ...line], { env, stdio: "ignore" });
      const exit = once(killed, "exit");
      const manager = await jetstreamManager(connection);
      const marks = `${prefix}.state.maps.m.${Buffer.from("state-mark").toString("base64url")}.>`;
      const isMarked = async () => {
        const { state } = await manager.streams.info(`${prefix}_state`, { subjects_filter: marks });
        return Object.keys(state.subjects ?? {}).length === 2;
      };
      while (!(await isMarked()) && killed.exitCode === null);
      await until("its target", () => existsSync(join(target, "store", "data.mdb")));
      killed.kill("SIGKILL");
      await exit;
      await expect(startShared(prefix, join(own, "state"))).rejects.toThrow(/is being moved to the state directory/);
      expect(await run(...line)).toMatchObject({ code: 0 });
      const last = await startLocal(target);
      expect(keys.every((key) => last.gateway.state.sessions.get(key)?.ended === true)).toBe(true);
      await stop(last);
    },
  );
});
