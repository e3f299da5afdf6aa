// A call with a person at the terminal, or without one, against a gateway's end of the session that a test plays.

import { createInterface } from "node:readline";
import { type Duplex, duplexPair, PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { type HeldIo, heldIo } from "../../../test/fixtures/held-io.js";
import { until } from "../../../test/fixtures/wait.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import { terminalOf } from "../line/ask.js";
import { type Io, Stopped } from "../line/io.js";
import { callThrough } from "./call-through.js";

/** The gateway's end: what it was sent, and a way to say anything. */
class Gateway {
  readonly got: JsonObject[] = [];
  readonly session: Duplex;
  readonly #socket: Duplex;

  readonly #levelFails: boolean;

  constructor(levelFails = false) {
    this.#levelFails = levelFails;
    const [ours, theirs] = duplexPair();
    this.#socket = ours;
    this.session = theirs;
    createInterface({ input: ours }).on("line", (line) => this.#take(JSON.parse(line)));
  }

  #take(message: JsonObject): void {
    this.got.push(message);
    const { id, method } = message;
    if (method === "initialize" || method === "ping") this.say({ id, result: {} });
    if (method === "logging/setLevel") {
      this.say(this.#levelFails ? { id, error: { code: -32601, message: "no" } } : { id, result: {} });
    }
  }

  say(message: JsonObject): void {
    this.#socket.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  leave(): void {
    this.#socket.end();
  }

  find(method: string): JsonObject | undefined {
    return this.got.find((message) => message["method"] === method);
  }

  async called(): Promise<JsonObject> {
    await until("the call", () => this.find("tools/call") !== undefined);
    return this.find("tools/call") as JsonObject;
  }

  /** Asks, and resolves with the answer. */
  async ask(params: JsonObject, id = "q1", method = "elicitation/create"): Promise<JsonObject> {
    await this.called();
    this.say({ id, method, params });
    await until("the answer", () => this.got.some((message) => message["id"] === id));
    return this.got.find((message) => message["id"] === id) as JsonObject;
  }

  async finish(): Promise<void> {
    const { id } = await this.called();
    this.say({ id, result: { content: [] } });
  }
}

interface Person extends HeldIo {
  /** Types this when what was written since the last time has `seen`. */
  type(seen: string, keys: string): Promise<void>;
}

function person(over: Partial<Io> = {}): Person {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const held = heldIo({ stdin, isErrTTY: true, ...over });
  let from = 0;
  const type = async (seen: string, keys: string) => {
    await until(seen, () => held.err().indexOf(seen, from) >= 0);
    from = held.err().indexOf(seen, from) + seen.length;
    stdin.write(keys);
  };
  return { ...held, type };
}

const tool = { name: "demo__book", server: "demo" };
const begin = (gateway: Gateway, io: Io, more: { json?: boolean; verbose?: boolean } = {}) =>
  callThrough(
    gateway.session,
    { tool, arguments: { a: 1 }, json: false, verbose: false, ...more },
    terminalOf(io),
    io.signal,
  );

const FORM = {
  mode: "form",
  message: "Where to?",
  requestedSchema: {
    type: "object",
    properties: {
      city: { type: "string", title: "City" },
      nights: { type: "integer", minimum: 1, default: 2 },
      room: { type: "string", enum: ["single", "double"] },
      note: { type: "string" },
    },
    required: ["city", "room"],
  },
};

describe("on a terminal [call-is-live]", () => {
  it("a form is asked for field by field, checked, and its answer goes to the server", async () => {
    const gateway = new Gateway();
    const { io, type, err, out } = person();
    const answer = begin(gateway, io);
    const asked = gateway.ask(FORM);
    await type("demo asks: Where to?", "");
    await type("City: ", "Oslo\r");
    await type("[2]: ", "0\r");
    await type("It is at least 1.", "");
    await type("[2]: ", "\r");
    await type("(one of them): ", "2\r");
    await type("(may be left empty): ", "\r");
    expect(await asked).toMatchObject({
      result: { action: "accept", content: { city: "Oslo", nights: 2, room: "double" } },
    });
    await gateway.finish();
    expect(await answer).toEqual({ result: { content: [] } });
    expect(err()).toContain("  2) double");
    expect(out()).toBe("");
  });

  it.each([
    ["an empty line for a field that is required", "\r"],
    ["Ctrl-D", "\u0004"],
  ])("%s declines", async (_what, keys) => {
    const gateway = new Gateway();
    const { io, type, err } = person();
    const answer = begin(gateway, io);
    const asked = gateway.ask(FORM);
    await type("City: ", keys);
    expect(await asked).toMatchObject({ result: { action: "decline" } });
    expect(err()).toContain("Declined.");
    await gateway.finish();
    await answer;
  });

  it("a field that is typed wrong three times declines", async () => {
    const gateway = new Gateway();
    const { io, type } = person();
    const answer = begin(gateway, io);
    const requestedSchema = { properties: { n: { type: "number" } }, required: ["n"] };
    const asked = gateway.ask({ message: "How many?", requestedSchema });
    for (let tries = 0; tries < 3; tries++) await type("n (number): ", "many\r");
    expect(await asked).toMatchObject({ result: { action: "decline" } });
    await gateway.finish();
    await answer;
  });

  it.each([
    ["y\r", "accept"],
    ["no\r", "decline"],
    ["\r", "decline"],
    ["\u0004", "decline"],
  ])("an address is shown with its host, and %j is taken for %s", async (keys, action) => {
    const gateway = new Gateway();
    const { io, type, err } = person();
    const answer = begin(gateway, io);
    const url = "https://login.example.com/allow?state=1";
    const asked = gateway.ask({ mode: "url", message: "Please allow it", url, elicitationId: "e" });
    await type("Will you open it?", keys);
    expect((await asked)["result"]).toEqual({ action });
    expect(err()).toContain(`at login.example.com:\n  ${url}\n`);
    await gateway.finish();
    await answer;
  });

  it("two questions at once are asked one after the other", async () => {
    const gateway = new Gateway();
    const { io, type } = person();
    const answer = begin(gateway, io);
    const one = (name: string) => ({
      message: name,
      requestedSchema: { properties: { [name]: {} }, required: [name] },
    });
    const asked = [gateway.ask(one("first"), "a"), gateway.ask(one("second"), "b")];
    await type("first: ", "1\r");
    await type("second: ", "2\r");
    const results = (await Promise.all(asked)).map(({ result }) => result);
    expect(results).toMatchObject([{ content: { first: "1" } }, { content: { second: "2" } }]);
    await gateway.finish();
    await answer;
  });

  it("a question that the server takes back ends, and the call goes on", async () => {
    const gateway = new Gateway();
    const { io, type, err } = person();
    const answer = begin(gateway, io);
    const asked = gateway.ask(FORM);
    await type("City: ", "Os");
    gateway.say({ method: "notifications/cancelled", params: { requestId: "q1" } });
    await asked;
    expect(err()).toContain("demo does not want the answer any more.");
    await gateway.finish();
    expect(await answer).toEqual({ result: { content: [] } });
  });

  it("Ctrl-C in a question takes the call back at the server", async () => {
    const gateway = new Gateway();
    const { io, type } = person();
    const ended = begin(gateway, io).catch((error: unknown) => error);
    await gateway.called();
    gateway.say({ id: "q1", method: "elicitation/create", params: FORM });
    await type("City: ", "\u0003");
    expect(await ended).toBeInstanceOf(Stopped);
    expect(gateway.find("notifications/cancelled")).toMatchObject({ params: { requestId: 2 } });
  });

  it("progress is asked for and drawn; with --json it is neither", async () => {
    const gateway = new Gateway();
    const { io, err } = person();
    const answer = begin(gateway, io);
    const { params } = await gateway.called();
    expect(params).toMatchObject({ name: "demo__book", arguments: { a: 1 }, _meta: { progressToken: 2 } });
    gateway.say({ method: "notifications/progress", params: { progressToken: 2, progress: 1, total: 2 } });
    await until("the progress", () => err().includes(" 50%"));
    await gateway.finish();
    await answer;
    const other = new Gateway();
    const quiet = begin(other, io, { json: true });
    expect((await other.called())["params"]).not.toHaveProperty("_meta");
    await other.finish();
    await quiet;
  });
});

describe("without a terminal [call-is-live]", () => {
  it("a question is declined, and it is said; nobody is shown progress", async () => {
    const gateway = new Gateway();
    const { io, err } = heldIo();
    const answer = begin(gateway, io);
    expect(await gateway.ask(FORM)).toMatchObject({ result: { action: "decline" } });
    expect(err()).toBe("toolway: demo asked “Where to?”; declined, because this is not a terminal.\n");
    expect(gateway.find("tools/call")?.["params"]).not.toHaveProperty("_meta");
    const url = "https://example.com/allow";
    expect(await gateway.ask({ mode: "url", message: "Allow it", url }, "u")).toMatchObject({
      result: { action: "decline" },
    });
    expect(err()).toContain(`“Allow it” (${url}); declined`);
    await gateway.finish();
    await answer;
  });

  it("what needs a model is declined with a sentence, and was never offered", async () => {
    const gateway = new Gateway();
    const answer = begin(gateway, heldIo().io);
    const declined = await gateway.ask({}, "s", "sampling/createMessage");
    expect(declined).toMatchObject({ error: { code: -32601, message: expect.stringContaining("without a model") } });
    expect(gateway.find("initialize")).toMatchObject({
      params: { capabilities: { elicitation: { form: {}, url: {} } } },
    });
    expect(await gateway.ask({}, "p", "ping")).toMatchObject({ result: {} });
    await gateway.finish();
    await answer;
  });
});

describe("log messages [call-is-live]", () => {
  const said = { method: "notifications/message", params: { level: "debug", data: "reading" } };

  it.each([false, true])(
    "are asked for and shown with --verbose, also where a level cannot be set: %s",
    async (fails) => {
      const gateway = new Gateway(fails);
      const { io, err } = heldIo();
      const answer = begin(gateway, io, { verbose: true });
      await gateway.called();
      expect(gateway.find("logging/setLevel")).toMatchObject({ params: { level: "debug" } });
      gateway.say(said);
      await gateway.finish();
      await answer;
      expect(err()).toBe("demo [debug] reading\n");
    },
  );

  it("are left out without it", async () => {
    const gateway = new Gateway();
    const { io, err } = heldIo();
    const answer = begin(gateway, io);
    await gateway.called();
    expect(gateway.find("logging/setLevel")).toBeUndefined();
    gateway.say(said);
    await gateway.finish();
    await answer;
    expect(err()).toBe("");
  });
});

describe("the end of a call", () => {
  it("by a signal takes it back at the server, and waits until that has passed it on [call-is-live]", async () => {
    const gateway = new Gateway();
    const stop = new AbortController();
    const ended = begin(gateway, heldIo({ signal: stop.signal }).io).catch((error: unknown) => error);
    await gateway.called();
    stop.abort(new Stopped("SIGINT"));
    expect(await ended).toBe(stop.signal.reason);
    const methods = gateway.got.map(({ method }) => method);
    expect(methods.slice(-2)).toEqual(["notifications/cancelled", "ping"]);
  });

  it("by the gateway's is an unknown outcome [unknown-is-said]", async () => {
    const gateway = new Gateway();
    const answer = begin(gateway, heldIo().io);
    await gateway.called();
    gateway.leave();
    await expect(answer).rejects.toThrow("Whether the call took effect is unknown.");
  });

  it("is an error where the gateway refuses the session", async () => {
    const gateway = new Gateway();
    const answer = begin(gateway, heldIo().io);
    const { id } = await gateway.called();
    gateway.say({ id, error: { code: -31004, message: "It took too long." } });
    expect(await answer).toEqual({ error: { code: -31004, message: "It took too long." } });
  });
});
