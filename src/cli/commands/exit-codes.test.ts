// What the exit codes of all verbs mean, from the words of the line, with a fake gateway.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  fakeGateway,
  folder,
  leaveFolder,
  makeFolder,
  probe,
  run,
  STATUS,
} from "../../../test/fixtures/fake-gateway.js";
import { ControlError } from "../../control/server.js";
import { CallError } from "../../gateway/program-call.js";
import { History } from "../../observe/calls/history.js";
import { historyAnswer } from "../../observe/calls/shown-history.js";
import { Fault } from "../../protocol/errors.js";
import { StateDirError } from "../../runtime/state-dir.js";
import { StoreError } from "../../store/store-error.js";
import { TokenError } from "../../tokens/labels.js";
import { type GatewayPort, replaceGatewayPort } from "../gateway/port.js";
import { Stopped } from "../line/io.js";
import { commands } from "./index.js";

beforeEach(makeFolder);

afterEach(leaveFolder);

describe("exit codes", () => {
  it("are 0 for help and version, which load no gateway", async () => {
    replaceGatewayPort(new Proxy({} as GatewayPort, { get: () => expect.unreachable() }));
    expect(await run(["--help"])).toMatchObject({ code: 0, err: "" });
    expect((await run(["--help"])).out).toContain("toolway serve");
    expect((await run(["--help"])).out, "every verb is in a section").not.toMatch(/^Commands:/m);
    expect(await run(["--version"])).toEqual({ code: 0, out: "0.1.0\n", err: "" });
    expect((await run(["call", "--help"])).out).toContain("toolway call demo__add");
  });

  it("are 2 for a wrong command line, with the way out", async () => {
    expect(await run(["srve"])).toMatchObject({ code: 2, out: "" });
    expect((await run(["srve"])).err).toContain("Did you mean serve?");
    expect((await run(["help", "srve"])).err).toBe("toolway: There is no command srve.\n  Did you mean serve?\n");
    // Of the config is spoken where one was named in the wrong place, and not wherever something is missing.
    const missing = "toolway: <tool> is missing\n(add --help for the options and examples)\n";
    expect(await run(["call"])).toEqual({ code: 2, out: "", err: missing });
    expect(await run(["serve", "--names", "odd"])).toMatchObject({ code: 2 });
    expect(await run(["token", "create", "--id", "x"])).toMatchObject({ code: 2 });
    expect(await run(["serve", "--listen", "nonsense"])).toMatchObject({ code: 2 });
    expect(await run(["serve", "--tls-cert", "x"])).toMatchObject({ code: 2 });
    expect(await run(["serve", "gone.json"])).toMatchObject({ code: 2 });
    expect((await run(["serve", "--listen", "127.0.0.1:99999"])).err).toContain("from 0 to 65535");
  });

  it("are 0 for `help`, and for a config named in the way of other verbs", async () => {
    expect((await run(["help"])).out).toContain("toolway serve");
    expect((await run(["help", "token", "create"])).out).toContain("--expires");
    expect((await run(["help", "token"])).out).toContain("rotate");
    writeFileSync(join(folder, "mine.json"), '{"mcpServers":{}}');
    expect(await run(["config", "check", "--config", "mine.json"])).toMatchObject({ code: 0 });
    expect((await run(["config", "check", "--help"])).out).not.toContain("--config");
    const { code, err } = await run(["status", "mine.json"]);
    expect(code).toBe(2);
    expect(err).toContain("--config FILE");
  });

  it("are 1 for a path that cannot be used, in words", async () => {
    const inTheWay = Object.assign(new Error("EEXIST: file already exists, mkdir '/x'"), {
      code: "EEXIST",
      path: "/x",
    });
    const noKey = Object.assign(new Error("no start line"), { code: "ERR_OSSL_PEM_NO_START_LINE" });
    fakeGateway({}, { start: async () => Promise.reject(noKey) });
    expect((await run(["serve"])).err).toContain("The TLS certificate or its key cannot be used");
    fakeGateway({}, { start: async () => Promise.reject(inTheWay) });
    expect(await run(["serve"])).toEqual({
      code: 1,
      out: "",
      err: "toolway: /x cannot be used: a file is in the way.\n",
    });
  });

  it("stand beside words for what the system says of a file, not beside its code", async () => {
    expect((await run(["call", "demo__add", "@gone.json"])).err).toBe(
      `toolway: The arguments cannot be read from ${join(folder, "gone.json")}: it does not exist.\n`,
    );
    mkdirSync(join(folder, "toolway.json"));
    expect((await run(["list"])).err).toBe(
      `toolway: ${join(folder, "toolway.json")} cannot be read: it is a folder.\n`,
    );
  });

  it("are 2 for a mistake in the config, named by file, line, column and key", async () => {
    writeFileSync(join(folder, "toolway.json"), '{"mcpServers":{"a":{"comand":"x"}}}');
    const { code, err } = await run(["config", "check"]);
    expect(code).toBe(2);
    expect(err).toMatch(/toolway\.json:1:21: mcpServers\.a\.comand: .*"command"/);
    // Where and why is what the gateway says, too: here is how it goes on.
    expect(err).toContain(
      "save the file: a gateway that runs takes it on by itself. To do without: `toolway remove a`",
    );
    expect(JSON.parse((await run(["config", "check", "--json"])).out)).toMatchObject({ ok: false });
  });

  it("are 2 for mistakes in the config, all of which are told at once [told-why]", async () => {
    writeFileSync(join(folder, "toolway.json"), '{"mcpServers":{"a":{"comand":"x"},"b":3},"rols":{},"listen":"x"}');
    const { code, err } = await run(["config", "check"]);
    expect(code).toBe(2);
    for (const key of ["mcpServers.a.comand", "mcpServers.b", "rols", "listen"]) expect(err).toContain(`: ${key}: `);
  });

  it.each([
    ["roles", { roles: { a: { allow: ["//"] } } }],
    ["listen", { listen: "nowhere" }],
    ["tls", { tls: { cert: 1 } }],
    ["limits", { limits: { heldBytes: "much" } }],
    ["executors", { executors: { office: { url: "http://office.internal" } } }],
  ])("are 2 for a doctor of a config with a mistake in %s, and no server is started for it", async (key, wrong) => {
    writeFileSync(join(folder, "mine.json"), JSON.stringify({ mcpServers: { files: { command: "x" } }, ...wrong }));
    let probed = 0;
    const probeOf = async () => probe({ ok: ++probed > 0 });
    fakeGateway({}, { probe: probeOf });
    const { code, err } = await run(["doctor", "mine.json"]);
    expect(code).toBe(2);
    expect(err).toMatch(new RegExp(`mine\\.json:1:\\d+: ${key}\\.?`));
    expect(probed).toBe(0);
  });

  it("are 1 for a fault, without a stack unless it is asked for", async () => {
    fakeGateway({ "/status": new TypeError("broken inside") });
    const plain = await run(["status"]);
    expect(plain).toMatchObject({ code: 1, out: "" });
    expect(plain.err).toContain("broken inside");
    expect(plain.err).not.toContain("at ");
    expect((await run(["status"], { env: { TOOLWAY_DEBUG: "1" } })).err).toContain("exit-codes.test.ts");
  });

  it.each([
    new Fault("unavailable", "It is away."),
    new CallError({ code: -31004, message: "It is away." }, "timeout"),
    new ControlError("unavailable", "It is away."),
    new StateDirError("held", "It is away."),
    new StoreError("full", "It is away."),
    new TokenError("limit", "It is away."),
  ])("are 1 for a $name, which is expected, and its message is all that is said", async (error) => {
    fakeGateway({ "/status": error });
    expect(await run(["status"])).toEqual({ code: 1, out: "", err: "toolway: It is away.\n" });
  });

  it("are 2 for a bad rule of an executor", async () => {
    expect(await run(["executor", "--allow", "a b", "--dry-run", "http://a"])).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringMatching(/^toolway: --allow "a b": One rule, one host/),
    });
  });

  it.each([
    [["call", "demo__ad"]],
    [["inspect", "demo__ad"]],
    [["logs", "nope"]],
    [["tools", "--server", "nope"]],
    [["remove", "nope", "--config", "mine.json"]],
    [["token", "revoke", "nope"]],
    [["pins", "--server", "nope"]],
    [["pins", "diff", "nope"]],
    [["pins", "accept", "nope"]],
    [["pins", "forget", "nope"]],
    [["stdio", "--role", "nope"]],
  ])("are 2 for a name that there is not: %s [told-why]", async (line) => {
    writeFileSync(join(folder, "mine.json"), '{"mcpServers":{"files":{"command":"x"}}}');
    const missing = new ControlError("not-found", "There is none.");
    fakeGateway(
      {
        "/pins": { pins: [] },
        "/tokens": { tokens: [] },
        "/status": { ...STATUS, servers: STATUS.servers.map((server) => ({ ...server, state: "ready" })) },
        "/pins/diff?server=nope": missing,
        "/pins/accept": missing,
        "/pins/forget": missing,
      },
      { stdio: async () => Promise.reject(new Fault("invalid", "There is no role.")) },
    );
    expect(await run(line)).toMatchObject({ code: 2, out: "" });
  });

  it("are 1 where a name may be right: its server is down, or has been quiet so far [told-why]", async () => {
    writeFileSync(join(folder, "mine.json"), '{"mcpServers":{"files":{"command":"x"}}}');
    fakeGateway({
      "/status": { ...STATUS, servers: STATUS.servers.map((one) => ({ ...one, counts: { tools: 0 } })) },
      "/tools/owners?tool=other": { servers: ["demo"] },
    });
    expect(await run(["inspect", "other"])).toMatchObject({ code: 1 });
    expect(await run(["logs", "files", "--config", "mine.json"])).toMatchObject({ code: 1 });
  });

  it("are 2 for a token in the environment that is too short [told-why]", async () => {
    fakeGateway({}, { start: async () => Promise.reject(new TokenError("weak", "The token is short.")) });
    expect(await run(["serve"])).toEqual({ code: 2, out: "", err: "toolway: The token is short.\n" });
  });

  it("are 1 for a gateway of another version, which has no such route [told-why]", async () => {
    fakeGateway({ "/status": new ControlError("no-route", "There is nothing at /status.") });
    expect(await run(["status"])).toMatchObject({ code: 1 });
  });

  const broker = ["--broker", "ws://127.0.0.1:7440"];
  /** The words of a verb, and what stands behind them in a line, or in several. */
  const LASTING: readonly (readonly [string, readonly (readonly string[])[]])[] = [
    ["serve", [[]]],
    ["stdio", [[]]],
    ["logs -f", [[]]],
    ["calls -f", [[]]],
    ["top", [[]]],
    ["audit search -f", [[]]],
    // It listens or dials: src/cli/executor/run.test.ts.
    ["executor", []],
    ["broker", [[]]],
    ["share", [[...broker, "--as", "studio"]]],
    [
      "join",
      [
        [...broker, "--from", "studio"],
        [...broker, "--from", "studio", "--listen", "127.0.0.1:0"],
      ],
    ],
    ["mailbox watch", [["studio"]]],
    ["outbox watch", [[]]],
  ];

  it.each(LASTING)("are 0 for what runs until Ctrl-C: %s [told-why]", async (line, ways) => {
    writeFileSync(join(folder, `audit-${"1".padStart(15, "0")}.jsonl`), "");
    for (const words of ways) {
      fakeGateway({
        "/audit/head": { path: folder, seq: 0, lost: 0 },
        "/calls?limit=50": { calls: [], underWay: [], last: 0 },
        "/calls?limit=5000&after=0": { calls: [], underWay: [], last: 0 },
        "/calls?limit=0": { calls: [], underWay: [], last: 0 },
        "/history": historyAnswer(new URLSearchParams(), new History((_, tool) => tool), 1),
        "/mailboxes/summary?mailbox=studio": {
          mailbox: "studio",
          waiting: 0,
          leased: 0,
          dead: 0,
          bytes: 0,
          connections: 0,
        },
        "/outbox/totals": { waiting: 0, unknown: 0, held: [], heldCount: 0 },
      });
      const stop = new AbortController();
      const ran = run([...line.split(" "), ...words], {
        signal: stop.signal,
        isTTY: line === "top",
        env: { TOOLWAY_TOKEN: "x".repeat(20) },
      });
      await new Promise((resolve) => setTimeout(resolve, 20));
      stop.abort(new Stopped("SIGINT"));
      expect(await ran, words.join(" ")).toMatchObject({ code: 0 });
    }
  });

  it("are 0 for no more than the reference says: these are all that last", () => {
    const lasting = commands.flatMap(({ metadata: { name, lasts } }) =>
      lasts === undefined ? [] : [lasts === true ? name : `${name} ${lasts}`],
    );
    expect(lasting).toEqual(LASTING.map(([line]) => line));
    // What follows until Ctrl-C says so.
    const following = commands.filter(({ options }) => /until Ctrl-C/.test(options["follow"]?.description ?? ""));
    expect(following.every(({ metadata }) => metadata.lasts === "-f")).toBe(true);
    const told = commands.filter(({ metadata }) =>
      /until (Ctrl-C|it is stopped)/.test(metadata.description ?? metadata.summary),
    );
    expect(told.filter(({ metadata }) => metadata.lasts === undefined)).toEqual([]);
  });

  it("are 130 for a doctor that was interrupted, whatever its servers made of it [told-why]", async () => {
    writeFileSync(join(folder, "mine.json"), '{"mcpServers":{"files":{"command":"x"}}}');
    const stop = new AbortController();
    fakeGateway(
      {},
      {
        probe: async () => {
          stop.abort(new Stopped("SIGINT"));
          return probe({ ok: false });
        },
      },
    );
    expect(await run(["doctor", "mine.json"], { signal: stop.signal })).toMatchObject({ code: 130 });
  });

  it.each([undefined, new ControlError("cancelled", "The request was taken back.")])(
    "are 130 after Ctrl-C, which a request ends by: %s",
    async (error) => {
      const stop = new AbortController();
      fakeGateway({
        "/tools": () => {
          stop.abort(new Stopped("SIGINT"));
          throw error ?? stop.signal.reason;
        },
      });
      expect(await run(["call", "demo__add"], { signal: stop.signal })).toMatchObject({ code: 130, err: "" });
    },
  );

  it("are 130 after a Ctrl-C that a question on the terminal took for itself", async () => {
    fakeGateway({ "/tools": new Stopped("SIGINT") });
    expect(await run(["call", "demo__add"])).toMatchObject({ code: 130, err: "" });
  });
});
