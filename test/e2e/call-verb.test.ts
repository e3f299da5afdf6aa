// `toolway call`: where no gateway runs it starts what it calls, and nothing else; and what goes on between the server
// and the person who called.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Started, start } from "../fixtures/processes.js";
import { hasTerminals, startOnTerminal } from "../fixtures/terminal.js";
import { cli, type Gateway, root, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { runCli, toolway } from "./operator.js";

/** Two servers that say on stderr that they were started, and how often each has been. */
async function countedServers() {
  const folder = await temporaryDirectory();
  const demo = [process.execPath, join(root, "dist/demo/server.js")];
  const entry = { command: "/bin/sh", args: ["-c", 'echo "started" >&2; exec "$0" "$1"', ...demo] };
  const config = join(folder, "toolway.json");
  await writeFile(config, JSON.stringify({ mcpServers: { one: entry, two: entry } }));
  const options = ["--config", config, "--state", join(folder, "state")];
  const starts = async (server: string) => (await runCli("logs", server, ...options)).out.split("started").length - 1;
  return { options, starts };
}

it("starts the server of a tool that is known from before, and no other", async () => {
  const { options, starts } = await countedServers();
  // Nothing is known at first, so that both are asked what they have.
  expect(await runCli("tools", ...options)).toMatchObject({ code: 0 });
  const before = { one: await starts("one"), two: await starts("two") };
  expect(await runCli("call", "one__add", "--arg", "a=2", "--arg", "b=3", ...options)).toMatchObject({ out: "5\n" });
  expect({ one: await starts("one"), two: await starts("two") }).toEqual({ ...before, one: before.one + 1 });
  // What is not known is looked for in all of them.
  expect(await runCli("call", "one__sub", ...options)).toMatchObject({ code: 2 });
});

it("starts no server but the one whose prefix a name has, also where nothing is known yet", async () => {
  const { options, starts } = await countedServers();
  expect(await runCli("call", "one__add", "--arg", "a=2", "--arg", "b=3", ...options)).toMatchObject({ out: "5\n" });
  expect({ one: await starts("one"), two: await starts("two") }).toEqual({ one: 1, two: 0 });
  // The list of "one" is known by now, so that a name without a prefix can be a tool of "two" alone.
  expect(await runCli("call", "subtract", ...options)).toMatchObject({ code: 2 });
  expect({ one: await starts("one"), two: await starts("two") }).toEqual({ one: 1, two: 1 });
});

describe("a tool's own name, where no gateway runs", () => {
  const demo = [process.execPath, join(root, "dist/demo/server.js")];
  const quick = { command: demo[0], args: demo.slice(1) };
  // The others answer later than the first, so that whoever called the first that answers would call that one.
  const late = { command: "/bin/sh", args: ["-c", 'sleep 1; exec "$0" "$1"', ...demo] };
  const ADD = ["add", "--arg", "a=2", "--arg", "b=3"] as const;

  async function withServers(mcpServers: object) {
    const folder = await temporaryDirectory();
    const config = join(folder, "toolway.json");
    await writeFile(config, JSON.stringify({ mcpServers }));
    return ["--config", config, "--state", join(folder, "state")];
  }

  it("is refused where several servers have it, whichever answers first and whichever is known [told-why]", async () => {
    const options = await withServers({ one: late, two: quick, three: late });
    const refused = {
      code: 2,
      out: "",
      err: expect.stringContaining('Three servers have a tool "add": one__add, two__add, three__add.\n'),
    };
    expect(await runCli("call", ...ADD, ...options)).toMatchObject(refused);
    expect(await runCli("inspect", "add", ...options)).toMatchObject(refused);
    // Another state, in which one of them alone is known from before.
    const other = await withServers({ one: late, two: quick, three: late });
    expect(await runCli("call", `two__${ADD[0]}`, ...ADD.slice(1), ...other)).toMatchObject({ code: 0, out: "5\n" });
    expect(await runCli("call", ...ADD, ...other)).toMatchObject(refused);
  });

  it("is that of the only server that has it, and one that could not be asked is named [told-why]", async () => {
    const broken = { command: "/bin/sh", args: ["-c", "exit 3"] };
    const options = await withServers({ one: late, broken });
    const { code, out, err } = await runCli("call", ...ADD, ...options);
    expect({ code, out }).toEqual({ code: 0, out: "5\n" });
    expect(err).toContain('"add" is taken for one__add. Could not be asked whether they have one, too: broken.');
  });
});

describe("with a gateway that runs [call-is-live]", () => {
  let gateway: Gateway;
  const running = new Set<Started>();
  const words = (...more: string[]) => [
    process.execPath,
    cli,
    "call",
    ...more,
    "--config",
    gateway.configPath,
    "--state",
    gateway.stateDir,
  ];
  const onTerminal = (...more: string[]) => {
    const one = startOnTerminal("call", words(...more));
    running.add(one);
    return one;
  };

  beforeAll(async () => {
    const mcpServers = {
      legacy: stdioFixture("asker"),
      modern: stdioFixture("asker", ["--era", "modern"]),
      slow: stdioFixture("slow"),
      logger: stdioFixture("logger"),
    };
    gateway = await startGateway({ names: "prefixed", mcpServers });
  });

  afterAll(() => Promise.all([...running].map((one) => one.stop("SIGKILL"))));

  it.each(["legacy", "modern"])("a question of a %s server is declined where there is no terminal", async (era) => {
    const { code, out, err } = await toolway(gateway, "call", `${era}__elicit`, "--arg", "what=Your name?");
    expect({ code, out }).toEqual({ code: 0, out: '{"action":"decline"}\n' });
    expect(err).toContain(`${era} asked “Your name?”; declined, because this is not a terminal.`);
  });

  it.skipIf(!hasTerminals).each(["legacy", "modern"])(
    "a question of a %s server is asked on a terminal",
    async (era) => {
      const one = onTerminal(`${era}__elicit`, "--arg", "what=Your name?");
      await until("the question", () => one.log().includes("answer: "));
      expect(one.log()).toContain(`${era} asks: Your name?`);
      one.child.stdin.write("Ada\r");
      expect(await one.closed).toBe(0);
      expect(one.log()).toContain('{"action":"accept","content":{"answer":"Ada"}}');
    },
  );

  it("shows what the server logs with --verbose, and nothing without it", async () => {
    expect((await toolway(gateway, "call", "logger__log_all", "--verbose")).err).toContain(
      "logger [debug] fixture: in a call\n",
    );
    expect(await toolway(gateway, "call", "logger__log_all")).toMatchObject({ out: "logged\n", err: "" });
  });

  it.skipIf(!hasTerminals)(
    "draws progress on a terminal, and Ctrl-C there cancels the call at its server",
    async () => {
      const one = onTerminal("slow__sleep", '{"ms":60000,"everyMs":20,"label":"typed"}');
      await until("the progress", () => one.log().includes("\r\u001b[K  0% typed "));
      one.child.stdin.write("\u0003");
      expect(await one.closed).toBe(130);
      await until("the cancellation", async () =>
        (await toolway(gateway, "call", "slow__cancelled")).out.includes("typed"),
      );
    },
  );

  it("SIGINT cancels the call at its server, and is exit 130", async () => {
    const [node = "", ...args] = words("slow__sleep", '{"ms":60000,"label":"signalled"}');
    const one = start("call", node, args);
    running.add(one);
    await until("the call", async () => (await toolway(gateway, "call", "slow__started")).out.includes("signalled"));
    one.child.kill("SIGINT");
    expect(await one.closed).toBe(130);
    expect(one.log()).not.toContain("fault");
    await until("the cancellation", async () =>
      (await toolway(gateway, "call", "slow__cancelled")).out.includes("signalled"),
    );
  });
});

it.skipIf(!hasTerminals)("asks on a terminal where no gateway runs, too [call-is-live]", async () => {
  const folder = await temporaryDirectory();
  const config = join(folder, "toolway.json");
  await writeFile(config, JSON.stringify({ mcpServers: { asker: stdioFixture("asker") } }));
  const words = ["call", "elicit", "--arg", "what=Name?", "--config", config, "--state", join(folder, "state")];
  const one = startOnTerminal("call", [process.execPath, cli, ...words]);
  await until("the question", () => one.log().includes("answer: "));
  one.child.stdin.write("\u0004");
  expect(await one.closed).toBe(0);
  expect(one.log()).toContain('{"action":"decline"}');
});
