// The store under faults, and what is kept in it: kill -9, full disk, damaged files. In processes of their own, since what is feared here
// (SIGBUS, an abort in native code) would take the test runner along.

import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openStore } from "./store.js";

const root = resolve(fileURLToPath(import.meta.url), "../../../..");
// Inside the package, so that the compiled files find its dependencies.
const built = join(root, "node_modules", ".cache", `store-faults-${process.pid}`);
const MIB = 1024 * 1024;
let scratch: string;
let count = 0;
let dir: string;

beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "toolway-faults-"));
  mkdirSync(built, { recursive: true });
  writeFileSync(join(built, "package.json"), '{"type":"module"}');
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const options =
    "--ignoreConfig --module nodenext --target es2023 --lib es2023,esnext.disposable --types node --skipLibCheck";
  const sources = ["src/store/local/store.ts", "src/outbox/index.ts"];
  const files = ["--rootDir", "src", "--outDir", built, ...sources];
  execFileSync(process.execPath, [tsc, ...options.split(" "), ...files], { cwd: root });
});
afterAll(() => {
  rmSync(built, { recursive: true, force: true });
  rmSync(scratch, { recursive: true, force: true });
});
function newDir(): void {
  dir = join(scratch, `case-${++count}`);
  mkdirSync(dir);
}

beforeEach(newDir);

function script(body: string): string[] {
  const head = `import { openStore } from ${JSON.stringify(join(built, "store", "local", "store.js"))};
    process.on("unhandledRejection", (e) => { console.log("UNHANDLED", e); process.exit(70); });
    const dir = process.argv[1];`;
  return ["--input-type=module", "-e", head + body, "--"];
}

/** `under`: a command that runs the one that follows it. */
function run(body: string, at = join(dir, "store"), under: readonly string[] = []) {
  const [command = process.execPath, ...args] = [...under, process.execPath, ...script(body), at];
  const done = spawnSync(command, args, { encoding: "utf8", timeout: 100_000 });
  return { code: done.status, signal: done.signal, out: done.stdout, err: done.stderr };
}

async function killed(child: ChildProcess, after: Promise<unknown>): Promise<void> {
  const exit = new Promise((done) => child.once("exit", done));
  await after;
  child.kill("SIGKILL");
  await exit;
}

describe("a store whose process is killed", () => {
  it("loses nothing that was acknowledged, in ten kills [ack-is-durable]", async () => {
    const acknowledged = new Set<string>();
    for (let round = 0; round < 10; round++) {
      const body = `
        const store = await openStore({ dir });
        const map = store.map("m"), log = store.log("l");
        const writer = async (w) => { for (let i = 0; ; i++) {
          const key = process.argv[2] + "/" + w + "/" + i;
          const n = await store.batch((b) => { b.put(map, key, { key, pad: "x".repeat(i % 700) }); return b.append(log, JSON.stringify(key)).sequence; });
          console.log(n + " " + key);
        } };
        for (let w = 0; w < 4; w++) writer(w);`;
      const child = spawn(process.execPath, [...script(body), join(dir, "store"), String(round)], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      let lines = 0;
      const enough = new Promise<void>((done) => {
        createInterface({ input: child.stdout }).on("line", (line) => {
          acknowledged.add(line);
          if (++lines === 20 + round * 7) done();
        });
      });
      await killed(child, enough);
    }
    const store = await openStore({ dir: join(dir, "store") });
    try {
      expect(acknowledged.size).toBeGreaterThan(200);
      const log = new Map(store.log("l").entries());
      const map = store.map<{ key: string }>("m");
      for (const line of acknowledged) {
        const [number, key = ""] = line.split(" ");
        expect(log.get(Number(number))).toBe(JSON.stringify(key));
        expect(map.get(key)?.key).toBe(key);
      }
      // Both writes of a batch, or neither.
      expect([...map.entries()]).toHaveLength(log.size);
    } finally {
      await store.close();
    }
  });
});

interface Disk {
  /** As `run` above, with the disk in its place. */
  run(body: string): ReturnType<typeof run>;
  /** What gives 8 MiB of room to the process that says it. */
  readonly grow: string;
  /** From now on there is no room left. */
  fill(): void;
  /** From now on there is some again. */
  free(): void;
}

describe("a store on a full disk", () => {
  // Namespaces of our own: no root is needed, and nothing stays mounted.
  const unshare = ["--user", "--map-root-user", "--mount"];
  const mountable = spawnSync("unshare", [...unshare, "mount", "-t", "tmpfs", "tmpfs", tmpdir()]).status === 0;
  const limitable = spawnSync("prlimit", ["--fsize=1000:", "true"]).status === 0;

  /** A small disk in place of `dir`, for as long as a process of its own keeps it. */
  async function onDisk(size: number, test: (disk: Disk) => void): Promise<void> {
    const keep = `mount -t tmpfs -o size=${size} tmpfs ${dir} && echo mounted && exec sleep 600`;
    const keeper = spawn("unshare", [...unshare, "sh", "-c", keep], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      await once(keeper.stdout, "data");
      const enter = ["nsenter", "--target", String(keeper.pid), "--user", "--mount", "--preserve-credentials"];
      const at = join(dir, "store");
      const outside = `/proc/${keeper.pid}/root${dir}`;
      test({
        run: (body) => run(body, at, enter),
        grow: `execFileSync("mount", ["-o", "remount,size=8m", dir + "/.."]);`,
        fill: () => {
          for (const size of [4096, 1]) {
            try {
              for (let i = 0; ; i++) writeFileSync(join(outside, `fill-${size}-${i}`), Buffer.alloc(size));
            } catch {
              // Full, as wanted.
            }
          }
        },
        free: () => {
          for (let i = 0; i < 120; i++) rmSync(join(outside, `fill-4096-${i}`), { force: true });
        },
      });
    } finally {
      keeper.kill("SIGKILL");
      await once(keeper, "exit");
    }
  }

  /** Where there are no such namespaces: no file of a process may become longer, which any user may say of their own. */
  function withShortFiles(size: number, test: (disk: Disk) => void): void {
    let longest = String(size);
    const at = join(dir, "store");
    test({
      run: (body) => run(body, at, ["prlimit", `--fsize=${longest}:`]),
      grow: `execFileSync("prlimit", ["--pid", String(process.pid), "--fsize=8388608:"]);`,
      fill: () => {
        const files = existsSync(at) ? readdirSync(at, { recursive: true, encoding: "utf8" }) : [];
        longest = String(Math.max(0, ...files.map((file) => statSync(join(at, file)).size)));
      },
      free: () => {
        longest = "unlimited";
      },
    });
  }

  const KINDS = { "a disk without room": onDisk, "files that may not grow": withShortFiles };
  const isLacking = (kind: string) => (kind === "a disk without room" ? !mountable : !limitable);

  it.for(Object.entries(KINDS))(
    "is a clear error; all acknowledged stays; writing goes on when there is room: %s [ack-is-durable]",
    async ([kind, on], { skip }) => {
      if (isLacking(kind)) skip("needs namespaces of the user's own, or prlimit");
      // Sizes that land in leaf pages, in overflow pages, and in many of them. The smallest fills a disk in thousands of
      // commits, each of which a disk that is no memory has to write.
      for (const size of [...(on === onDisk ? [40] : []), 900, 3000, 60_000]) {
        newDir();
        await on(2 * MIB, (disk) => {
          const body = `
            import { execFileSync } from "node:child_process";
            const store = await openStore({ dir });
            const map = store.map("m");
            const size = ${size}, done = new Map(), codes = {};
            let message;
            const put = (k, v) => map.put(k, v).then(() => done.set(k, v), (e) => {
              codes[e.code] = (codes[e.code] ?? 0) + 1; message = e.message; });
            for (let i = 0; !codes["disk-full"] && i < 5000; i++)
              await Promise.all(Array.from({ length: 20 }, (_, w) => put(i + "/" + w, String(i).padEnd(size, "v"))));
            for (let i = 0; i < 50; i++) await put("more/" + i, "v".repeat(i * size));
            const check = () => { for (const [k, v] of done) if (map.get(k) !== v) throw new Error("lost " + k); };
            check();
            // Deleting works on the full disk, and makes room.
            let deleted = 0;
            for (const k of [...done.keys()].slice(0, done.size / 2)) { await map.delete(k); done.delete(k); deleted++; }
            check();
            await put("small", "back");
            ${disk.grow}
            const before = done.size;
            for (let i = 0; i < 30; i++) await put("new/" + i, "v".repeat(60_000));
            check();
            console.log(JSON.stringify({ codes: Object.keys(codes), deleted, back: done.has("small"), added: done.size - before, message }));
            await store.close();`;
          const { code, signal, out, err } = disk.run(body);
          expect({ code, signal, err }).toEqual({ code: 0, signal: null, err: "" });
          const report = JSON.parse(out);
          expect(report).toMatchObject({ codes: ["disk-full"], back: true, added: 30 });
          expect(report.deleted).toBeGreaterThan(5);
          expect(report.message).toMatch(/No room left on the disk of .*free some space and writing goes on/);
          // And after a restart.
          disk.free();
          const again = disk.run(
            `const s = await openStore({ dir }); console.log([...s.map("m").entries({ prefix: "new/" })].length); await s.close();`,
          );
          expect(again).toMatchObject({ code: 0, out: "30\n" });
        });
      }
    },
  );

  it.for(Object.entries(KINDS))(
    "takes no more writes into an outbox: each agent is told that its call was not queued, and what was queued before is delivered once: %s [ack-is-durable] [no-double-effect]",
    { timeout: 240_000 },
    async ([kind, on], { skip }) => {
      if (isLacking(kind)) skip("needs namespaces of the user's own, or prlimit");
      const outbox = `
      const { Outbox } = await import(${JSON.stringify(join(built, "outbox", "index.js"))});
      const { parseMessage } = await import(${JSON.stringify(join(built, "protocol", "message.js"))});
      const { resultBytes } = await import(${JSON.stringify(join(built, "protocol", "reply.js"))});
      const store = await openStore({ dir });
      const terms = { key: { in: "argument", path: ["key"] }, lane: { by: "principal" }, maxAgeMs: 86_400_000, onUnknown: "skip", tells: true };
      const sent = [];
      const outbox = new Outbox({
        store, clock: { now: () => performance.now(), wall: () => Date.now() }, random: Math.random, log() {}, giveBack() {},
        limits: { maxWrites: 1e6, maxBytes: 1e9 }, terms: () => terms, judge: () => undefined, hasToken: () => true,
        receiptReply: () => ({ kind: "result", result: {} }),
        send: (call) => { sent.push(call.message.params.arguments.key); setImmediate(() => call.reply(resultBytes('{"content":[]}'))); },
      });`;
      await on(2 * MIB, (disk) => {
        const first = disk.run(`${outbox}
        import { execFileSync } from "node:child_process";
        outbox.lanes.hold("tracker", undefined);
        outbox.start();
        const caller = { principal: { id: "ann", role: "r" }, sessionKey: "s", era: "legacy", version: "1", capabilities: {}, clientInfo: {} };
        const taken = [], told = new Set(), refused = [];
        const call = (key) => new Promise((done) => {
          taken.push(key);
          const params = { name: "create", arguments: { key, text: "x".repeat(9_000) } };
          const message = parseMessage(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }));
          const reply = (reply) => { if (reply.kind === "result") told.add(key); else refused.push(reply.error.message); done(); };
          outbox.take({ caller, message, reply }, "tracker", "create");
        });
        for (let n = 0; refused.length === 0 && n < 2_000; n += 8)
          await Promise.all(Array.from({ length: 8 }, (_, i) => call("k" + (n + i))));
        // One at a time may find the room that one of many did not: more of them do not.
        for (let n = 0; refused.length < 3 && n < 64; n++) await call("more" + n);
        ${disk.grow}
        await call("room");
        const queued = taken.filter((key) => told.has(key));
        console.log(JSON.stringify({ queued, refused, sent, last: queued.at(-1) }));
        process.exit(0);`);
        expect({ code: first.code, signal: first.signal, err: first.err }).toEqual({ code: 0, signal: null, err: "" });
        const { queued, refused, sent, last } = JSON.parse(first.out);
        expect(refused.length).toBeGreaterThanOrEqual(3);
        for (const text of refused) expect(text).toMatch(/^Not sent, and not queued: .*No room left on the disk/);
        expect([last, sent]).toEqual(["room", []]);
        // The process is gone without a word, and another finds them.
        disk.free();
        const second = disk.run(`${outbox}
        outbox.start();
        while ([...outbox.lanes.all].some((write) => !write.isOver)) await new Promise((turn) => setImmediate(turn));
        await outbox.close();
        await store.close();
        console.log(JSON.stringify(sent));`);
        expect({ code: second.code, err: second.err }).toEqual({ code: 0, err: "" });
        expect(JSON.parse(second.out)).toEqual(queued);
      });
    },
  );

  it.for(Object.entries(KINDS))(
    "is a clear error where a new store is opened, and an old one is read: %s",
    async ([kind, on], { skip }) => {
      if (isLacking(kind)) skip("needs namespaces of the user's own, or prlimit");
      await on(MIB, (disk) => {
        disk.fill();
        const fresh = disk.run(
          `await openStore({ dir }).then(() => console.log("opened"), (e) => console.log(e.code)); process.exit(0);`,
        );
        expect({ code: fresh.code, signal: fresh.signal, out: fresh.out }).toEqual({
          code: 0,
          signal: null,
          out: "disk-full\n",
        });
        disk.free();
        const write = `const s = await openStore({ dir }); await s.map("m").put("a", 1); await s.close();`;
        expect(disk.run(write)).toMatchObject({ code: 0, err: "" });
        disk.fill();
        const read = `const s = await openStore({ dir }); console.log(s.map("m").get("a"));
          await s.map("m").put("b", "v".repeat(1e6)).catch((e) => console.log(e.code)); await s.close();`;
        expect(disk.run(read)).toMatchObject({ code: 0, signal: null, out: "1\ndisk-full\n" });
      });
    },
  );
});

describe("a store with damaged files", () => {
  async function made(): Promise<string> {
    const at = join(dir, "store");
    const store = await openStore({ dir: at });
    await store.batch((b) => {
      for (let i = 0; i < 500; i++) b.put(store.map("m"), `k${i}`, "v".repeat(500));
    });
    await store.close();
    return join(at, "data.mdb");
  }
  const open = `await openStore({ dir }).then(async (s) => { console.log([...s.map("m").entries()].length); await s.close(); })
    .catch((e) => console.log(e.code, e.message));`;

  it("says that a file is not a store", async () => {
    const data = await made();
    writeFileSync(data, Buffer.alloc(100_000, "no store"));
    expect(run(open)).toMatchObject({ code: 0, out: expect.stringMatching(/^corrupt .*damaged or not a store/) });
    writeFileSync(data, "short");
    expect(run(open)).toMatchObject({ code: 0, out: expect.stringMatching(/^corrupt /) });
  });

  it("says that a file is cut off", async () => {
    const data = await made();
    for (const size of [200_000, 8192, 5000]) {
      truncateSync(data, size);
      expect(run(open)).toMatchObject({ code: 0, out: expect.stringMatching(/^corrupt /) });
    }
  });

  it("says that pages are wiped out, and opens none the less after a restore", async () => {
    const data = await made();
    const good = readFileSync(data);
    writeFileSync(data, Buffer.concat([good.subarray(0, 8192), Buffer.alloc(good.length - 8192)]));
    expect(run(open)).toMatchObject({ code: 0, out: expect.stringMatching(/^corrupt /) });
    writeFileSync(data, good);
    expect(run(open)).toMatchObject({ code: 0, out: "500\n" });
  });
});
