// `toolway executor` from the words of its line: what is refused before anything starts, and what a dry run says.

import { describe, expect, it } from "vitest";
import { heldIo } from "../../../test/fixtures/held-io.js";
import { runCli } from "../program.js";

const TOKEN = "a-token-of-enough-length";

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function run(line: string, env: Record<string, string> = {}): Promise<Ran> {
  const { io, out, err } = heldIo({ env });
  const code = await runCli(["executor", ...line.split(" ").filter((word) => word !== "")], io);
  return { code, out: out(), err: err() };
}

describe("a line that cannot be meant is refused, and says what to write", () => {
  it.each([
    [
      "[exec-6] nothing may be reached by default",
      "--listen ws://127.0.0.1:0",
      /Without --allow.*--allow wiki\.internal/s,
    ],
    ["who dials whom", "--allow a.b", /--listen or --connect is missing.*ws:\/\/127/s],
    [
      "both ways",
      "--allow a.b --listen ws://127.0.0.1:0 --connect wss://g/executors/x",
      /exclude each other.*two executors/s,
    ],
    [
      "a rule that is a URL",
      "--allow http://wiki.internal/x --listen 0",
      /--allow "http:\/\/wiki\.internal\/x".*Write wiki\.internal/s,
    ],
    ["a rule with a bad port", "--allow ok.example --allow wiki:99999 --listen 0", /--allow "wiki:99999".*65535/s],
    ["a rule for what is never reached", "--allow 169.254.169.254 --listen 0", /no rule opens/],
    ["no address to listen on", "--allow a.b --listen ws://127.0.0.1", /expected ws:\/\/HOST:PORT.*7430/s],
    ["TLS of its own", "--allow a.b --listen wss://127.0.0.1:1", /no TLS.*--connect/s],
    ["no gateway's address", "--allow a.b --connect gateway.example.com", /expected wss:\/\//],
    ["another scheme", "--allow a.b --connect ftp://gateway.example.com/executors/x", /expected wss:\/\//],
    ["no name of an executor", "--allow a.b --connect wss://gateway.example.com/", /\/executors\/NAME/],
    ["one gateway twice", "--allow a.b --connect wss://g/executors/x --connect https://g/executors/x", /given twice/],
    [
      "an open door beyond this machine",
      "--allow a.b --listen ws://0.0.0.0:0 --no-auth",
      /--no-auth is refused with 0\.0\.0\.0/,
    ],
    [
      "no token for a gateway elsewhere",
      "--allow a.b --connect wss://g/executors/x --no-auth",
      /--no-auth is refused with g/,
    ],
  ])("%s", async (_name, line, expected) => {
    const ran = await run(line, { TOOLWAY_TOKEN: TOKEN });
    expect(ran.err).toMatch(expected);
    expect(ran).toMatchObject({ code: 2, out: "" });
  });

  it("[exec-7] a token is required, long enough, and fit for a header", async () => {
    const listen = "--allow a.b --listen ws://127.0.0.1:0";
    expect(await run(listen)).toMatchObject({ code: 2, err: expect.stringMatching(/not set.*openssl rand/s) });
    expect(await run("--allow a.b --connect wss://g/executors/x")).toMatchObject({
      code: 2,
      err: expect.stringMatching(/not set.*token create --id office --role executor/s),
    });
    expect((await run(listen, { TOOLWAY_TOKEN: "short" })).err).toContain("at least 16 characters");
    expect((await run(listen, { TOOLWAY_TOKEN: "sixteen characters\r\nx: y" })).err).toContain("no header can carry");
  });

  it("shows no secret that somebody put into an address", async () => {
    for (const line of [
      "--allow a.b --connect wss://user:hunter2@g/executors/x",
      "--allow a.b --connect wss://g/executors/x?token=hunter2",
      "--allow a.b --listen ws://user:hunter2@127.0.0.1:0",
      "--allow user:hunter2@host --listen ws://127.0.0.1:0",
    ]) {
      const ran = await run(line, { TOOLWAY_TOKEN: TOKEN });
      expect(ran.code).toBe(2);
      expect(ran.err).not.toContain("hunter2");
    }
  });
});

describe("--dry-run", () => {
  it("[exec-6] says which rule allows an address, and exits 0", async () => {
    const ran = await run("--allow 10.0.0.0/8:443 --dry-run https://10.1.2.3/mcp?key=hunter2");
    expect(ran).toMatchObject({ code: 0, err: "" });
    expect(ran.out).toContain("https://10.1.2.3/mcp: would be requested");
    expect(ran.out).toContain("10.0.0.0/8:443");
    expect(ran.out).not.toContain("hunter2");
  });

  it("[exec-6] says why one is refused and what would allow it, and exits 1", async () => {
    const ran = await run("--allow 10.0.0.0/8:443 --dry-run http://wiki.internal:8080/mcp");
    expect(ran.code).toBe(1);
    expect(ran.out).toContain("would be refused");
    expect(ran.out).toContain("--allow wiki.internal:8080");
  });

  it("[exec-6] of several, one that is refused decides; as JSON too, beside --listen and without a token", async () => {
    const ran = await run(
      "--listen ws://127.0.0.1:0 --allow * --dry-run http://10.1.1.1/ --dry-run http://[::ffff:169.254.169.254]/ --dry-run nonsense --json",
    );
    expect(ran.code).toBe(1);
    expect(JSON.parse(ran.out)).toMatchObject([
      { allowed: true, host: "10.1.1.1", port: 80, rule: "*" },
      { allowed: false, why: expect.stringContaining("metadata"), advice: expect.any(String) },
      { allowed: false, why: "This is no URL." },
    ]);
  });
});
