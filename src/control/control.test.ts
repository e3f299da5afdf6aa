import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { request as httpRequest } from "node:http";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Duplex } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ControlClient, connectControl, findGateway, isGatewayThere } from "./client.js";
import { ControlError, type ControlOptions, type ControlServer, jsonLines, serveControl } from "./server.js";
import { claimSocketPath, findSocketPath } from "./socket-path.js";

let dir: string;
let servers: ControlServer[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "tw-"));
});
afterEach(async () => {
  for (const server of servers) await server.close();
  servers = [];
  rmSync(dir, { recursive: true, force: true });
});

async function serve(
  routes: ControlOptions["routes"],
  upgrades: NonNullable<ControlOptions["upgrades"]> = {},
): Promise<ControlClient> {
  const server = await serveControl({ path: claimSocketPath(dir), routes, upgrades });
  servers.push(server);
  return connectControl(server.path);
}

async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const value of source) all.push(value);
  return all;
}

describe("requests", () => {
  it("go to their route and come back as JSON", async () => {
    const client = await serve({
      "GET /status": ({ query }) => ({ ok: true, verbose: query.get("verbose") }),
      "POST /tokens": async ({ body }) => ({ made: body }),
      "DELETE /tokens/:id": ({ params }) => ({ gone: params["id"] }),
      "POST /reload": () => undefined,
    });
    expect(await client.get("/status?verbose=1")).toEqual({ ok: true, verbose: "1" });
    expect(await client.post("/tokens", { id: "ü" })).toEqual({ made: { id: "ü" } });
    expect(await client.delete(`/tokens/${encodeURIComponent("a/b ü*")}`)).toEqual({ gone: "a/b ü*" });
    expect(await client.post("/reload", undefined)).toBeUndefined();
    expect(statSync(client.path).mode & 0o777).toBe(0o600);
  });

  it("fail with a code, a message and a fitting status", async () => {
    const client = await serve({
      "GET /boom": () => {
        throw new Error("kaputt");
      },
      "GET /full": () => {
        throw Object.assign(new Error("no room"), { code: "disk-full" });
      },
      "GET /system": () => statSync("/nonexistent"),
      "POST /x": () => {
        throw new ControlError("invalid", "not like this");
      },
    });
    const failed = (promise: Promise<unknown>) =>
      promise.then(
        () => undefined,
        (e: ControlError) => [e.code, e.message],
      );
    expect(await failed(client.get("/boom"))).toEqual(["internal", "kaputt"]);
    expect(await failed(client.get("/full"))).toEqual(["disk-full", "no room"]);
    expect((await failed(client.get("/system")))?.[0]).toBe("internal");
    expect(await failed(client.get("/nowhere"))).toEqual(["no-route", "There is nothing at /nowhere."]);
    expect((await failed(client.get("/x")))?.[0]).toBe("wrong-method");
    expect(await failed(client.post("/x", {}))).toEqual(["invalid", "not like this"]);
    const status = (path: string, method = "GET", body?: string) =>
      new Promise<number | undefined>((done, fail) => {
        const request = httpRequest({ socketPath: client.path, agent: false, method, path }, (response) => {
          response.resume();
          done(response.statusCode);
        });
        request.on("error", fail).end(body);
      });
    expect(await status("/full")).toBe(507);
    expect(await status("/boom")).toBe(500);
    expect(await status("/nowhere")).toBe(404);
    expect(await status("/x")).toBe(405);
    expect(await status("/x", "POST", "{no json")).toBe(400);
    expect(await status("/%zz")).toBe(404);
    expect(await status("/constructor")).toBe(404);
  });

  it("that come at once are answered in a turn of the event loop each, so that large answers do not add up [bounded]", async () => {
    const AT_ONCE = 16;
    let turn = 0;
    let isOver = false;
    const count = () => {
      turn++;
      if (!isOver) setImmediate(count);
    };
    const written: number[] = [];
    const answer = {
      toJSON: () => {
        written.push(turn);
        return "a large one";
      },
    };
    let goOn = () => {};
    let asked = 0;
    const allAreThere = new Promise<void>((done) => {
      goOn = done;
    });
    const client = await serve({
      "GET /large": async () => {
        if (++asked === AT_ONCE) goOn();
        await allAreThere;
        return answer;
      },
    });
    setImmediate(count);
    const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => client.get("/large")));
    isOver = true;
    expect(answers).toEqual(Array.from({ length: AT_ONCE }, () => "a large one"));
    expect(new Set(written).size).toBe(AT_ONCE);
  });

  it("with a body of more than 8 MiB are refused before their route is asked", async () => {
    let called = false;
    const client = await serve({
      "POST /x": () => {
        called = true;
      },
    });
    // The gateway may close before all is sent: then it is gone for the client, and refused none the less.
    await expect(client.post("/x", "x".repeat(9 * 1024 * 1024))).rejects.toMatchObject({
      code: expect.stringMatching(/too-large|unavailable/),
    });
    expect(called).toBe(false);
    expect(await client.post("/x", "x".repeat(7 * 1024 * 1024))).toBeUndefined();
    expect(called).toBe(true);
  });

  it("tell the route when the client goes away", async () => {
    let aborted: (() => void) | undefined;
    const seen = new Promise<void>((done) => {
      aborted = done;
    });
    const controller = new AbortController();
    const client = await serve({
      "GET /slow": ({ signal }) =>
        new Promise(() => {
          signal.addEventListener("abort", () => aborted?.());
          controller.abort();
        }),
    });
    await expect(client.get("/slow", { signal: controller.signal })).rejects.toMatchObject({ code: "cancelled" });
    await seen;
  });
});

describe("streams", () => {
  it("bring values line by line, however large and many", async () => {
    const big = "ü\n".repeat(500_000);
    const client = await serve({
      "GET /state/dump": () =>
        jsonLines(
          (async function* () {
            for (let i = 0; i < 5000; i++) yield { i };
            yield { big };
          })(),
        ),
      "GET /empty": () => jsonLines((async function* () {})()),
    });
    const all = await collect(client.lines<{ i?: number; big?: string }>("/state/dump"));
    expect(all).toHaveLength(5001);
    expect(all[4999]).toEqual({ i: 4999 });
    expect(all[5000]?.big).toBe(big);
    expect(await collect(client.lines("/empty"))).toEqual([]);
  });

  it("say what went wrong, before the first line and after it", async () => {
    const client = await serve({
      "GET /early": () =>
        jsonLines(
          // biome-ignore lint/correctness/useYield: fails before it yields
          (async function* () {
            throw new ControlError("busy", "später");
          })(),
        ),
      "GET /late": () =>
        jsonLines(
          (async function* () {
            yield 1;
            throw new ControlError("corrupt", "kaputt: ü");
          })(),
        ),
    });
    await expect(collect(client.lines("/early"))).rejects.toMatchObject({ code: "busy", message: "später" });
    const got: unknown[] = [];
    await expect(
      (async () => {
        for await (const value of client.lines("/late")) got.push(value);
      })(),
    ).rejects.toMatchObject({ code: "corrupt", message: "kaputt: ü" });
    expect(got).toEqual([1]);
  });

  it("stop when the reader leaves", async () => {
    let ended: (() => void) | undefined;
    const stopped = new Promise<void>((done) => {
      ended = done;
    });
    const client = await serve({
      "GET /endless": () =>
        jsonLines(
          (async function* () {
            try {
              while (true) yield "x".repeat(1000);
            } finally {
              ended?.();
            }
          })(),
        ),
    });
    for await (const _ of client.lines("/endless")) break;
    await stopped;
  });
});

describe("upgrades", () => {
  it("give both sides the bare connection", async () => {
    const client = await serve(
      {},
      {
        "toolway-stdio": (socket: Duplex, query) => {
          socket.write(`hello ${query.get("scope")}\n`);
          socket.on("data", (chunk: Buffer) => socket.write(chunk.toString().toUpperCase()));
          socket.on("end", () => socket.end());
        },
      },
    );
    const socket = await client.upgrade("toolway-stdio", { scope: "a b" });
    socket.end("abc");
    let text = "";
    for await (const chunk of socket) text += chunk;
    expect(text).toBe("hello a b\nABC");
    await expect(client.upgrade("toString")).rejects.toMatchObject({ code: "no-route" });
  });

  it("end when the server closes", async () => {
    const client = await serve({}, { "toolway-stdio": (socket: Duplex) => socket.resume() });
    const socket = await client.upgrade("toolway-stdio");
    const closed = new Promise((done) => socket.once("close", done));
    socket.on("error", () => {});
    socket.resume();
    await servers[0]?.close();
    await closed;
  });
});

describe("finding the gateway", () => {
  it("is by its socket, and there is none when nobody listens", async () => {
    expect(await findGateway(dir)).toBeUndefined();
    expect(await findGateway(join(dir, "no", "such"))).toBeUndefined();
    await serve({ "GET /status": () => "here" });
    const client = await findGateway(dir);
    expect(await client?.get("/status")).toBe("here");
    await servers.pop()?.close();
    expect(await findGateway(dir)).toBeUndefined();
    await expect(client?.get("/status")).rejects.toMatchObject({ code: "unavailable" });
  });

  it("ends, and says what to do, where one is there that hangs: any connection is taken for it [told-why]", async () => {
    const hung: Server = createServer((socket) => void socket.on("error", () => {}).resume());
    await new Promise<void>((done) => hung.listen(claimSocketPath(dir), done));
    expect(await isGatewayThere(dir)).toBe(true);
    await expect(findGateway(dir, 50)).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/has said nothing for 0.05 s: .*`toolway ps` names it/),
    });
    await new Promise((done) => hung.close(done));
  });

  it("replaces the socket of a dead gateway, and nothing else", async () => {
    const path = claimSocketPath(dir);
    // A socket file that nobody listens on: linked away before its server closes and takes the name along.
    const other: Server = createServer();
    await new Promise<void>((done) => other.listen(`${path}.x`, done));
    linkSync(`${path}.x`, path);
    await new Promise((done) => other.close(done));
    expect(existsSync(path)).toBe(true);
    expect(await findGateway(dir)).toBeUndefined();
    await serve({ "GET /status": () => 1 });
    expect(await (await findGateway(dir))?.get("/status")).toBe(1);
    await servers.pop()?.close();
    writeFileSync(path, "precious");
    await expect(serve({})).rejects.toThrow(/in the way of the control socket/);
  });

  it("works for state directories with long paths", async () => {
    const long = join(dir, "x".repeat(120));
    const runtime = join(dir, "run");
    mkdirSync(long, { mode: 0o700 });
    expect(findSocketPath(long)).toBeUndefined();
    expect(await findGateway(long)).toBeUndefined();
    const path = claimSocketPath(long, { XDG_RUNTIME_DIR: runtime });
    expect(path.startsWith(`${runtime}/toolway-`)).toBe(true);
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
    servers.push(await serveControl({ path, routes: { "GET /status": () => "far" } }));
    // Found by what is written in the state directory, whatever the environment of the one who looks.
    expect(await (await findGateway(long))?.get("/status")).toBe("far");
    expect(claimSocketPath(long, { XDG_RUNTIME_DIR: runtime })).toBe(path);
  });

  it("trusts no directory that others can enter or have made", () => {
    const long = join(dir, "x".repeat(120));
    mkdirSync(long);
    const own = (base: string) => join(base, `toolway-${process.getuid?.()}`);
    const open = join(dir, "a");
    mkdirSync(own(open), { recursive: true });
    chmodSync(own(open), 0o755);
    const linked = join(dir, "b");
    mkdirSync(linked);
    symlinkSync(dir, own(linked));
    expect(() => claimSocketPath(long, {}, open)).toThrow(/can be entered by others/);
    expect(() => claimSocketPath(long, {}, linked)).toThrow(/not a directory/);
    const good = join(dir, "c");
    expect(claimSocketPath(long, { XDG_RUNTIME_DIR: open }, good).startsWith(good)).toBe(true);
    // The one who looks checks too.
    chmodSync(own(good), 0o777);
    expect(() => findSocketPath(long)).toThrow(/can be entered by others/);
    expect(() => claimSocketPath(long, {}, join(dir, "y".repeat(90)))).toThrow(/short enough/);
  });

  it("survives a client that sends nonsense", async () => {
    const client = await serve({ "GET /status": () => 1 });
    for (const nonsense of ["\0\0\0", "GET / HTTP/9.9\r\n\r\n", "POST /x HTTP/1.1\r\nContent-Length: -1\r\n\r\n"]) {
      const socket = connect(client.path);
      socket.on("error", () => {});
      socket.write(nonsense);
      await new Promise((done) => socket.once("close", done).resume());
    }
    expect(await client.get("/status")).toBe(1);
  });
});
