import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { nkeys } from "@nats-io/transport-node";
import { beforeAll, describe, expect, it } from "vitest";
import { makeCertificate } from "../../../test/fixtures/certificates.js";
import { temporaryFolder } from "../../../test/fixtures/folders.js";
import { type Nats, type NatsAuth, NO_NATS, natsPrograms, startNats } from "../../../test/fixtures/nats.js";
import { until } from "../../../test/fixtures/wait.js";
import type { EngineAccess, EngineAuth } from "../../contracts/settings.js";
import { type Engine, openEngine } from "./connection.js";

const there = natsPrograms.length > 0;

function settingsFor(nats: { readonly nodes: readonly { port: number }[] }, more: Partial<EngineAccess> = {}) {
  return {
    nodes: nats.nodes.map(({ port }) => ({ host: "127.0.0.1", port })),
    tls: undefined,
    auth: undefined,
    key: { from: "env", name: "KEY" },
    replicas: 1,
    prefix: "tw",
    monitor: undefined,
    ...more,
  } as const satisfies EngineAccess;
}

async function roundTrip(engine: Engine): Promise<string> {
  const { connection } = engine;
  const echo = connection.subscribe("echo", { max: 1, callback: (_, message) => void message.respond("heard") });
  const answer = await engine.ask(1, () => connection.request("echo", "x", { timeout: 10_000 }));
  echo.unsubscribe();
  return answer.string();
}

/** A text signed as NATS signs its JWTs, for operator mode. */
function signed(issuer: ReturnType<typeof nkeys.createUser>, sub: string, nats: Record<string, unknown>): string {
  const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const body = { jti: "test", iat: Math.floor(Date.now() / 1000), iss: issuer.getPublicKey(), name: "test", sub, nats };
  const text = `${base64({ typ: "JWT", alg: "ed25519-nkey" })}.${base64(body)}`;
  return `${text}.${Buffer.from(issuer.sign(new TextEncoder().encode(text))).toString("base64url")}`;
}

/** What a server in operator mode is given, and the `.creds` that open it. */
function operatorMode(): { readonly auth: NatsAuth; readonly creds: string } {
  const [operator, account, user] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createUser()];
  const unlimited = { subs: -1, data: -1, payload: -1, conn: -1, imports: -1, exports: -1, wildcards: true, leaf: -1 };
  const accountJwt = signed(operator, account.getPublicKey(), { type: "account", version: 2, limits: unlimited });
  const userJwt = signed(account, user.getPublicKey(), { type: "user", version: 2, subs: -1, data: -1, payload: -1 });
  const seed = new TextDecoder().decode(user.getSeed());
  return {
    auth: {
      operator: signed(operator, operator.getPublicKey(), { type: "operator", version: 2 }),
      account: account.getPublicKey(),
      accountJwt,
    },
    creds:
      `-----BEGIN NATS USER JWT-----\n${userJwt}\n------END NATS USER JWT------\n\n` +
      `-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`,
  };
}

describe("the connection to the engine", () => {
  let nats: Nats;

  beforeAll(async () => {
    if (there) nats = await startNats();
  });

  async function restart(auth: NatsAuth | undefined): Promise<void> {
    nats.setAuth(auth);
    await nats.nodes[0]?.kill();
    nats.nodes[0]?.start();
    await nats.ready();
  }

  const user = nkeys.createUser();
  const operator = operatorMode();
  const ways: { by: string; server: NatsAuth; ours: EngineAuth; secret: string; wrong: string }[] = [
    {
      by: "a token",
      server: { token: "tok/en 1" },
      ours: { by: "token", token: { from: "env", name: "SECRET" } },
      secret: "tok/en 1",
      wrong: "tok/en 2",
    },
    {
      by: "a password",
      server: { user: "al", password: "4x@:/" },
      ours: { by: "password", user: "al", password: { from: "env", name: "SECRET" } },
      secret: "4x@:/",
      wrong: "4x",
    },
    {
      by: "an nkey",
      server: { nkey: user.getPublicKey() },
      ours: { by: "nkey", seed: { from: "env", name: "SECRET" } },
      secret: new TextDecoder().decode(user.getSeed()),
      wrong: new TextDecoder().decode(nkeys.createUser().getSeed()),
    },
    {
      by: "a .creds file",
      server: operator.auth,
      ours: { by: "creds", creds: { from: "env", name: "SECRET" } },
      secret: operator.creds,
      wrong: operatorMode().creds,
    },
  ];

  it.for(ways)("[engine-door] is opened by $by, and a wrong one is told at once", async (way, context) => {
    if (!there) return context.skip(NO_NATS);
    await restart(way.server);
    const settings = settingsFor(nats, { auth: way.ours });
    await using engine = await openEngine(settings, { env: { SECRET: way.secret } });
    expect(await roundTrip(engine)).toBe("heard");
    expect(engine.status).toMatchObject({ state: "connected", version: nats.version });
    const refused = openEngine(settings, { env: { SECRET: way.wrong } });
    await expect(refused).rejects.toMatchObject({
      code: "refused",
      message: expect.stringContaining("does not let us in"),
    });
    await expect(openEngine(settings, { env: {} })).rejects.toThrow("The variable SECRET is not set");
  });

  it("[engine-door] a secret that is changed while we run is read anew, and no refusal ends the connection for good", async (context) => {
    if (!there) return context.skip(NO_NATS);
    const file = join(temporaryFolder("toolway-engine-"), "token");
    writeFileSync(file, "one\n");
    await restart({ token: "one" });
    const auth: EngineAuth = { by: "token", token: { from: "file", path: file } };
    await using engine = await openEngine(settingsFor(nats, { auth }), { env: {} });
    await restart({ token: "two" });
    await until("a refusal", () => engine.status.state === "refused");
    await expect(engine.ask(1, async () => "sent")).rejects.toMatchObject({ code: "refused" });
    // Two refusals in a row would close the client by default, and so would a file that is gone.
    writeFileSync(file, "");
    await until("the reason", () => engine.status.problem?.includes("is empty"));
    writeFileSync(file, "two\n");
    await until("a connection", () => engine.status.state === "connected");
    expect(await roundTrip(engine)).toBe("heard");
  });

  it("[engine-away] refuses at once while the engine is away, says when it is tried again, and comes back by itself", async (context) => {
    if (!there) return context.skip(NO_NATS);
    await restart(undefined);
    await using engine = await openEngine(settingsFor(nats), { env: {} });
    const seen: string[] = [];
    const unwatch = engine.watch(({ state }) => seen.push(state));
    await nats.nodes[0]?.kill();
    await until("the loss", () => engine.status.state === "away");
    let sent = 0;
    const refused = await engine
      .ask(1, async () => sent++)
      .then(
        () => undefined,
        (error: unknown) => error,
      );
    expect(refused).toMatchObject({
      code: "away",
      message: expect.stringMatching(/Nothing was sent; the next try is in \d/),
    });
    expect(sent).toBe(0);
    nats.nodes[0]?.start();
    await until("a connection", () => engine.status.state === "connected");
    expect(await roundTrip(engine)).toBe("heard");
    unwatch();
    expect(seen[0]).toBe("away");
    expect(seen.at(-1)).toBe("connected");
  });

  it("[bounded] holds so many requests and no more, by number and by bytes", async (context) => {
    if (!there) return context.skip(NO_NATS);
    await restart(undefined);
    await using engine = await openEngine(settingsFor(nats), { env: {} });
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const asked = Array.from({ length: 1_024 }, () => engine.ask(1, () => held));
    await expect(engine.ask(1, () => held)).rejects.toMatchObject({ code: "busy" });
    release();
    await Promise.all(asked);
    const large = engine.ask(60 * 1024 * 1024, async () => "large");
    await expect(engine.ask(8 * 1024 * 1024, async () => "more")).rejects.toMatchObject({ code: "busy" });
    expect(await large).toBe("large");
    expect(await engine.ask(8 * 1024 * 1024, async () => "more")).toBe("more");
  });

  it("[engine-away] a frozen node is noticed without a word from it", async (context) => {
    if (!there) return context.skip(NO_NATS);
    await restart(undefined);
    await using engine = await openEngine(settingsFor(nats), { env: {}, pingMs: 100 });
    nats.nodes[0]?.freeze();
    await until("the loss", () => engine.status.state === "away");
    nats.nodes[0]?.thaw();
    await until("a connection", () => engine.status.state === "connected");
  });
});

describe("an engine of several nodes", () => {
  it("[engine-away] a node that goes down by will is left before it is gone, for the next one, again and again", async (context) => {
    if (!there) return context.skip(NO_NATS);
    const cluster = await startNats({ nodes: 3 });
    await using engine = await openEngine(settingsFor(cluster), { env: {} });
    const nodeOf = (address = "") => cluster.nodes.find(({ port }) => address.endsWith(`:${port}`));
    const left: number[] = [];
    for (let n = 1; n <= 2; n++) {
      const node = nodeOf(engine.status.node);
      if (node === undefined) throw new Error(`It is connected to ${engine.status.node}.`);
      left.push(node.port);
      node.lameDuck();
      await until("another node", () => {
        const { state, node: address } = engine.status;
        return state === "connected" && !left.includes(nodeOf(address)?.port ?? 0);
      });
      // Nobody was cut off: it is there still.
      expect(node.running).toBe(true);
      expect(await roundTrip(engine)).toBe("heard");
    }
    expect(new Set(left).size).toBe(2);
    expect(engine.status.problem).toBeUndefined();
    await cluster.stop();
  });
});

describe("TLS to the engine", () => {
  const tls = (ca: string) => ({ tls: { ca } });

  it("[engine-door] asks a node to be one that the config names, signed by who the config trusts", async (context) => {
    if (!there) return context.skip(NO_NATS);
    const [good, other] = [makeCertificate("for the address alone"), makeCertificate("for localhost alone")];
    const [nats, foreign] = await Promise.all([startNats({ tls: good }), startNats({ tls: other })]);
    await using engine = await openEngine(settingsFor(nats, tls(good.cert)), { env: {} });
    expect(await roundTrip(engine)).toBe("heard");
    // The client alone would have looked for "localhost" in the certificate of a node that is dialled by its address.
    const { message } = await openEngine(settingsFor(foreign, tls(other.cert)), { env: {} }).then(
      () => new Error("it was let pass"),
      (error: Error) => error,
    );
    expect(message).toContain("could not prove by its certificate who it is");
    await expect(openEngine(settingsFor(nats, { tls: {} }), { env: {} })).rejects.toMatchObject({ code: "refused" });
    await Promise.all([nats.stop(), foreign.stop()]);
  });

  it("[engine-door] never falls back to clear text", async (context) => {
    if (!there) return context.skip(NO_NATS);
    const nats = await startNats();
    const opening = openEngine(settingsFor(nats, { tls: {} }), { env: {} });
    await expect(opening).rejects.toMatchObject({ code: "refused", message: expect.stringContaining("speaks no TLS") });
    await nats.stop();
  });

  it("[engine-door] shows a certificate of ours where the engine asks for one", async (context) => {
    if (!there) return context.skip(NO_NATS);
    const [good, ours] = [makeCertificate(), makeCertificate()];
    const nats = await startNats({ tls: { ...good, clientCa: ours.cert } });
    const settings = settingsFor(nats, { tls: { ca: good.cert, cert: ours.cert, key: ours.key } });
    await using engine = await openEngine(settings, { env: {} });
    expect(await roundTrip(engine)).toBe("heard");
    await nats.stop();
  });
});

describe("what is no engine of ours", () => {
  async function listening(hello: string): Promise<{ nodes: { port: number }[]; server: Server }> {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", (data) => {
        if (data.includes("PING")) socket.write("PONG\r\n");
      });
      socket.write(hello);
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    return { nodes: [{ port: (server.address() as { port: number }).port }], server };
  }

  it("[engine-told] a node that is too old is refused with what to do", async () => {
    const info = { server_id: "x", version: "2.8.4", max_payload: 1_048_576, headers: true, proto: 1 };
    const old = await listening(`INFO ${JSON.stringify(info)}\r\n`);
    const opening = openEngine(settingsFor(old), { env: {} });
    await expect(opening).rejects.toMatchObject({ code: "old", message: expect.stringContaining("2.9.10 or newer") });
    old.server.close();
  });

  it("[engine-away] nobody there is told after the time that was given, with the addresses", async () => {
    const gone = await listening("");
    gone.server.close();
    const opening = openEngine(settingsFor(gone), { env: {}, firstConnectMs: 200 });
    await expect(opening).rejects.toMatchObject({
      code: "away",
      message: expect.stringContaining("nats://127.0.0.1:"),
    });
  });
});
