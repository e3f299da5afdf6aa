// A hostile executor at a gateway: the gateway lives, other servers are not touched, every call ends within its
// deadline, and nothing of one answer gets into another.

import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, isAlive, startGateway, temporaryDirectory, until } from "../e2e/harness.js";
import { callTool, hasTool } from "../e2e/operator.js";
import { type HttpWire, openHttpWire } from "../e2e/wire.js";
import { callText, faultServer, toolCall } from "./gateway.js";
import { type Asked, type HostileExecutor, jsonHeaders, resultText, startHostile } from "./hostile-executor.js";
import { figure } from "./length.js";
import { linux, MB, megabytes, peakRss, report, resetPeak, rss } from "./measure.js";
import { expectShortOwnTurn, type Turns, watchedTurns } from "./turns.js";

const MIB = 1024 * 1024;
/** Some deeds wait it out; what is answered well takes three seconds and more with a fifth of a core. */
const CALL_TIMEOUT_MS = 10_000;
/** A deadline, and what a busy machine adds to it. */
const PATIENCE_MS = CALL_TIMEOUT_MS + 40_000;
const MAX_GROWTH = 400 * MB;

type Deed = [what: string, deed: (asked: Asked) => void];

const good = (asked: Asked) => resultText(asked.rpcId, "fine");
const withHeader = (name: string, value: string) => (asked: Asked) => {
  asked.head(200, jsonHeaders({ name, value }));
  asked.delta(1, good(asked), true);
};
/** Larger than what is held: the agent is told of its length before it is here. */
const LARGE = 3 * MIB;
/** Of a large answer, within the credit that comes as it is read. */
function pour(asked: Asked, body: Buffer, length: string): void {
  asked.head(200, jsonHeaders({ name: "content-length", value: length }));
  let at = 0;
  let seq = 0;
  let may = 65_536;
  const more = (): void => {
    while (at < body.length && may > 0) {
      const piece = body.subarray(at, at + Math.min(may, 65_536));
      at += piece.length;
      may -= piece.length;
      asked.delta(++seq, piece);
    }
    if (at === body.length) asked.delta(++seq, "", true);
  };
  asked.ws.on("message", (data) => {
    const { method, params } = JSON.parse(String(data));
    if (method !== "http/request/credit" || params.requestId !== asked.id || at === body.length) return;
    may += params.bytes;
    more();
  });
  more();
}

const DEEDS: Deed[] = [
  ["status 99", (asked) => asked.head(99)],
  ["status 101", (asked) => asked.head(101)],
  ["status 1000", (asked) => asked.head(1000)],
  ["status -200", (asked) => asked.head(-200)],
  ["a status that is text", (asked) => asked.head("200")],
  ["headers that are none", (asked) => asked.head(200, { a: 1 })],
  ["no body", (asked) => asked.head(200, jsonHeaders(), 7)],
  ["a body in a streamed head", (asked) => asked.head(200, jsonHeaders(), "aaaa")],
  ["a line break in a header", withHeader("x", "a\r\nset-cookie: evil")],
  ["a line break in a name", withHeader("x\r\ny", "a")],
  ["a NUL in a header", withHeader("x", "a\u0000")],
  [
    "300 headers",
    (asked) =>
      asked.head(
        200,
        Array.from({ length: 300 }, (_, n) => ({ name: `h${n}`, value: "" })),
      ),
  ],
  ["a header of 8 MiB", withHeader("x", "x".repeat(8 * MIB))],
  [
    "an error of 8 MiB",
    (asked) => asked.write({ id: asked.id, error: { code: -32603, message: "e".repeat(8 * MIB) } }),
  ],
  ["an error that is none", (asked) => asked.write({ id: asked.id, error: { code: "x", message: [], data: "y" } })],
  [
    "a body that breaks off with 8 MiB",
    (asked) => {
      asked.head();
      asked.delta(1, "{", true, { error: "e".repeat(8 * MIB) });
    },
  ],
  [
    "pieces from 2 on",
    (asked) => {
      asked.head();
      asked.delta(2, good(asked), true);
    },
  ],
  [
    "a piece twice",
    (asked) => {
      asked.head();
      asked.delta(1, "{");
      asked.delta(1, "{", true);
    },
  ],
  [
    "a piece beyond the credit",
    (asked) => {
      asked.head();
      asked.delta(1, Buffer.alloc(8 * MIB));
    },
  ],
  [
    "half an answer that ends well",
    (asked) => {
      asked.head();
      asked.delta(1, good(asked).slice(0, -9), true);
    },
  ],
  ["a length that is none", withHeader("content-length", "-1")],
  ["a length that is text", withHeader("content-length", "NaN")],
  ["more than the length", withHeader("content-length", "5")],
  ["less than the length", withHeader("content-length", "5000")],
  [
    "a redirect to itself",
    (asked) => {
      asked.head(308, [{ name: "location", value: "/mcp" }]);
      asked.delta(1, "", true);
    },
  ],
  ["a redirect to metadata", (asked) => asked.head(307, [{ name: "location", value: "http://169.254.169.254/" }])],
  ["no JSON", (asked) => asked.ws.send("{")],
  ["a message of 20 MiB of brackets", (asked) => asked.ws.send("[".repeat(20 * MIB))],
  ["the end of the socket", (asked) => asked.ws.terminate()],
  [
    "a head and the end of the socket",
    (asked) => {
      asked.head();
      asked.ws.terminate();
    },
  ],
  ["a goodbye", (asked) => asked.ws.close(1000)],
];

/** Which last until the call's time is over, on a connection that stays: they are waited for together. */
const LASTING: Deed[] = [
  ["silence", () => {}],
  ["a head and silence", (asked) => asked.head()],
  [
    "a body without end",
    (asked) => {
      asked.head();
      let seq = 0;
      const timer = setInterval(() => asked.delta(++seq, " "), 5);
      asked.ws.on("message", (data) => {
        if (JSON.parse(String(data)).method === "http/request/cancel") clearInterval(timer);
      });
      asked.ws.once("close", () => clearInterval(timer));
    },
  ],
];

/** Which are answered all the same, for what is odd about them means nothing. */
const HARMLESS: Deed[] = [
  ["__proto__ as a header", withHeader("__proto__", "x")],
  [
    "answers to nothing",
    (asked) => {
      for (let n = 0; n < 1_000; n++) {
        asked.write({ id: `http-${n + 100_000}`, result: { status: 200, headers: [], bodyBase64: "" } });
        asked.write({
          method: "http/request/bodyDelta",
          params: { requestId: `no-${n}`, seq: 1, deltaBase64: "", done: true },
        });
      }
      asked.answer(good(asked));
    },
  ],
  [
    "a second answer",
    (asked) => {
      asked.answer(good(asked));
      asked.answer(resultText(asked.rpcId, "evil"));
    },
  ],
  [
    "lies of what it received",
    (asked) => {
      for (const received of ["1e999", "-1", "null", '"x"', "9007199254740993"]) {
        asked.ws.send(`{"method":"session/ack","params":{"received":${received}}}`);
      }
      asked.answer(good(asked));
    },
  ],
  [
    "absurd credit",
    (asked) => {
      for (const bytes of [Number.MAX_SAFE_INTEGER, -1, 0.5, "x", null]) {
        asked.write({ method: "http/request/credit", params: { requestId: asked.id, bytes } });
      }
      asked.answer(good(asked));
    },
  ],
  [
    "binary frames",
    (asked) => {
      const text = good(asked);
      asked.ws.send(
        Buffer.from(JSON.stringify({ id: asked.id, result: { status: 200, headers: jsonHeaders(), bodyBase64: "" } })),
      );
      asked.delta(1, text);
      asked.delta(2, "", true);
    },
  ],
];

const toolName = (n: number) => `deed-${n}`;
const ALL = [...DEEDS, ...HARMLESS, ...LASTING];

let hostile: HostileExecutor;
let gateway: Gateway;
let wire: HttpWire;
let turns: Turns;
/** Ids of calls are not used twice at once. */
let asked = 0;

beforeAll(async () => {
  hostile = await startHostile(["fine", "smuggle", "tiny", "asks", ...ALL.map((_, n) => toolName(n))]);
  for (const [n, [, deed]] of ALL.entries()) hostile.deeds.set(toolName(n), deed);
  turns = watchedTurns(await temporaryDirectory());
  const config = {
    executors: { office: { url: hostile.url } },
    mcpServers: {
      plain: faultServer("plain"),
      // Every deed is to be seen, so no breaker stands before it.
      wiki: {
        url: "http://wiki.internal/mcp",
        via: "office",
        callTimeoutMs: CALL_TIMEOUT_MS,
        breaker: { failures: 10_000 },
      },
    },
  };
  gateway = await startGateway(config, { env: turns.env });
  wire = await openHttpWire(gateway.url, "2025-03-26");
  await until("all tools", async () => (await hasTool(gateway.url, "echo")) && (await hasTool(gateway.url, "fine")));
});

afterAll(() => hostile.close());

async function unharmed(): Promise<void> {
  expect(isAlive(gateway.pid)).toBe(true);
  expect(await callText(wire, "echo", { still: "here" }, `echo ${asked++}`)).toBe('{"still":"here"}');
}

/** The executor's server answers again, however it was left. */
async function wellAgain(): Promise<void> {
  await until(
    "the server behind the executor",
    async () => (await callText(wire, "fine", {}, `fine ${asked++}`)) === "fine",
    PATIENCE_MS,
  );
}

async function endsInError(what: string, n: number): Promise<void> {
  await wellAgain();
  const begun = performance.now();
  const { result, error } = await callTool(gateway.url, toolName(n));
  report("hostile executor", `${what} → ${error?.code} ${error?.message.slice(0, 150)}`);
  expect(result).toBeUndefined();
  expect(error?.message.length).toBeLessThan(3_000);
  expect(performance.now() - begun).toBeLessThan(PATIENCE_MS);
  await unharmed();
}

async function isNoSecondAnswer(length: string | undefined): Promise<void> {
  await wellAgain();
  const evil = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
  hostile.deeds.set("smuggle", (asked) => {
    const text = resultText(asked.rpcId, "x".repeat(LARGE));
    pour(asked, Buffer.from(text + evil), length ?? String(text.length));
  });
  const said = await onOneConnection(gateway.port, wire.sessionId, toolCall("smuggled", "smuggle"));
  expect(said.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  expect(said).not.toContain("NaN");
  expect(said).not.toContain(evil);
  await unharmed();
}

describe.concurrent("a hostile executor that lets its callers wait", () => {
  it.each(LASTING.map(([what], n) => [what, DEEDS.length + HARMLESS.length + n] as const))(
    "%s ends in an error, in time",
    endsInError,
  );

  it("an answer larger than the length that it names (NaN) is no second answer", () => isNoSecondAnswer("NaN"));
});

describe("a hostile executor", () => {
  it.each(DEEDS.map(([what], n) => [what, n] as const))("%s ends in an error, in time", endsInError);

  it.each(HARMLESS.map(([what], n) => [what, DEEDS.length + n] as const))(
    "%s is answered all the same",
    async (_what, n) => {
      await wellAgain();
      const { result } = await callTool(gateway.url, toolName(n));
      expect(result?.["content"]).toEqual([{ type: "text", text: "fine" }]);
      await unharmed();
    },
  );

  it("an answer larger than the length that it names (a number) is no second answer", () =>
    isNoSecondAnswer(undefined));

  it.skipIf(!linux)(
    "a body byte by byte, and questions without end, cost no more than they hold [bounded]",
    async () => {
      await wellAgain();
      const before = rss(gateway.pid);
      resetPeak(gateway.pid);
      turns.begin();
      hostile.deeds.set("tiny", (asked) => {
        asked.head();
        for (let seq = 1; seq <= figure(60_000, 65_000); seq++) asked.delta(seq, " ");
        asked.delta(figure(60_001, 65_001), good(asked), true);
      });
      expect(await callText(wire, "tiny")).toBe("fine");
      hostile.deeds.set("asks", (asked) => {
        asked.ws.pause();
        const method = "m".repeat(100_000);
        for (let n = 0; n < figure(2_000, 4_000); n++) asked.write({ id: n, method });
        asked.answer(good(asked));
        setTimeout(() => asked.ws.resume(), 1_000);
      });
      expect(await callText(wire, "asks")).toBe("fine");
      const growth = peakRss(gateway.pid) - before;
      const turn = await turns.worst();
      report(
        "hostile executor",
        `tiny pieces and questions: RSS +${megabytes(growth)} at most, longest turn ${turns.text(turn)} [bounded]`,
      );
      expect(growth).toBeLessThan(MAX_GROWTH);
      expectShortOwnTurn(turn);
      await unharmed();
    },
  );
});

/** All that comes on one connection within the time of a slow answer, kept open for another request. */
async function onOneConnection(port: number, session: string, body: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.on("error", () => {});
  const ended = once(socket, "close");
  socket.write(
    `POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\n` +
      `accept: application/json, text/event-stream\r\nmcp-session-id: ${session}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, CALL_TIMEOUT_MS + 2_000))]);
  socket.destroy();
  return Buffer.concat(chunks).toString("latin1");
}
