// Pinned addresses, over real sockets: resolvers lie and change their minds, and only what was judged is connected to.

import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect, createServer, type LookupFunction, type Server, type Socket } from "node:net";
import { Pool } from "undici";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listenOnLoopback } from "../../../test/fixtures/loopback.js";
import { DestinationRefused, Destinations } from "./destinations.js";
import { explain, explanationLines } from "./explain.js";
import { pinnedLookup, type Resolve } from "./resolve.js";

/** Answers as its lists say, one after the other, the last for ever. */
class LyingResolver {
  readonly asked: string[] = [];
  readonly #answers: readonly (readonly string[])[];

  constructor(...answers: readonly (readonly string[])[]) {
    this.#answers = answers;
  }

  readonly resolve: Resolve = async (host) => {
    const answer = this.#answers[Math.min(this.asked.length, this.#answers.length - 1)] ?? [];
    this.asked.push(host);
    return answer.map((address) => ({ address }));
  };
}

/** All that a lookup says, as Node calls it. */
function ask(lookup: LookupFunction, host: string, options: Parameters<LookupFunction>[1]): Promise<unknown[]> {
  return new Promise((done) => {
    lookup(host, options, (...said: unknown[]) => done(said));
  });
}

/** The addresses that a connection to this URL may be made to. */
async function pinned(url: string, destinations: Destinations, resolve?: Resolve): Promise<unknown> {
  const target = new URL(url);
  const lookup = pinnedLookup(target, destinations, resolve);
  const [error, addresses] = await ask(lookup, target.hostname.replace(/^\[|\]$/g, ""), { all: true });
  if (error !== null) throw error;
  return addresses;
}

let server: Server;
let port: number;
let accepted: Socket[];

beforeEach(async () => {
  accepted = [];
  server = createServer((socket) => {
    accepted.push(socket);
    socket.on("error", () => {});
    socket.once("data", () => socket.end("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"));
  });
  port = await listenOnLoopback(server);
});

afterEach(async () => {
  for (const socket of accepted) socket.destroy();
  server.close();
  await once(server, "close");
});

async function get(url: URL, lookup: LookupFunction, autoSelectFamily = true): Promise<IncomingMessage> {
  // Node hands them all on to net.connect(); the types of 20 do not know the last one.
  const options = { lookup, agent: false as const, autoSelectFamily };
  const asked = request(url, options);
  asked.end();
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  response.resume();
  return response;
}

describe("pinned addresses", () => {
  it("[exec-6] keeps the addresses that are allowed, in their order, and asks once", async () => {
    const resolver = new LyingResolver(["169.254.169.254", "10.0.0.2", "127.0.0.1", "::1", "fd00::5", "10.0.0.1"]);
    expect(await pinned("https://wiki.internal/x", Destinations.parse(["wiki.internal"]), resolver.resolve)).toEqual([
      { address: "10.0.0.2", family: 4 },
      { address: "fd00::5", family: 6 },
      { address: "10.0.0.1", family: 4 },
    ]);
    expect(resolver.asked).toEqual(["wiki.internal"]);
  });

  it("[exec-6] a name of which no address is left is refused, with the host, the addresses and the missing rule", async () => {
    const resolver = new LyingResolver(["169.254.169.254", "127.0.0.1"]);
    const refused = pinned("http://wiki.internal:81/", Destinations.parse(["*"]), resolver.resolve);
    await expect(refused).rejects.toThrow(DestinationRefused);
    await expect(refused).rejects.toMatchObject({ code: "ERR_DESTINATION_REFUSED", reason: "loopback" });
    for (const word of ["wiki.internal", "169.254.169.254", "127.0.0.1", "--allow 127.0.0.1:81"]) {
      await expect(refused).rejects.toThrow(word);
    }
  });

  it("[exec-6] what is refused by its URL is not resolved: names can carry secrets to whoever resolves them", async () => {
    const resolver = new LyingResolver(["10.0.0.1"]);
    const destinations = Destinations.parse(["wiki.internal", "10.0.0.0/8:443"]);
    for (const url of ["http://c2VjcmV0.evil.example/", "ftp://wiki.internal/", "http://metadata.google.internal/"]) {
      expect(() => pinnedLookup(new URL(url), destinations, resolver.resolve)).toThrow(DestinationRefused);
    }
    expect(resolver.asked).toEqual([]);
  });

  it("an address needs no resolver", async () => {
    const resolver = new LyingResolver(["169.254.169.254"]);
    const destinations = Destinations.parse(["fd00::5", "127.0.0.1"]);
    expect(await pinned("http://[fd00::5]/", destinations, resolver.resolve)).toEqual([
      { address: "fd00::5", family: 6 },
    ]);
    expect(await pinned("http://0x7f.1/", destinations, resolver.resolve)).toEqual([
      { address: "127.0.0.1", family: 4 },
    ]);
    expect(resolver.asked).toEqual([]);
  });

  it("[bounded] of a name with a thousand addresses a few are tried, and a few are told of", async () => {
    const many = Array.from({ length: 1_000 }, (_, at) => `10.1.${at >> 8}.${at & 255}`);
    const { resolve } = new LyingResolver(many);
    expect(await pinned("http://wiki.internal/", Destinations.parse(["*"]), resolve)).toHaveLength(16);
    const refused = pinned("http://wiki.internal/", Destinations.parse(["192.168.0.0/16"]), resolve);
    await expect(refused).rejects.toThrow("996 more");
    await expect(refused).rejects.toSatisfy((error: Error) => error.message.length < 1_000);
  });

  it("a resolver's own failure is passed on as it is, and no address is none", async () => {
    const failure = Object.assign(new Error("getaddrinfo ENOTFOUND wiki.internal"), { code: "ENOTFOUND" });
    const destinations = Destinations.parse(["wiki.internal"]);
    const url = "http://wiki.internal/";
    await expect(pinned(url, destinations, () => Promise.reject(failure))).rejects.toBe(failure);
    await expect(pinned(url, destinations, new LyingResolver([]).resolve)).rejects.toThrow("has no address");
  });

  it("resolves by the system where nobody says otherwise", async () => {
    expect(await pinned("http://localhost/", Destinations.parse(["localhost"]))).toEqual(
      expect.arrayContaining([expect.objectContaining({ address: expect.stringMatching(/^127\.|^::1$/) })]),
    );
  });
});

describe("lookups for net.connect", () => {
  const mixed = ["10.0.0.2", "fd00::5", "127.0.0.1", "10.0.0.1"];
  const url = new URL("http://wiki.internal/");
  const destinations = Destinations.parse(["wiki.internal"]);

  it("answer every way of asking", async () => {
    const lookup = pinnedLookup(url, destinations, new LyingResolver(mixed).resolve);
    const four = [
      { address: "10.0.0.2", family: 4 },
      { address: "10.0.0.1", family: 4 },
    ];
    const six = [{ address: "fd00::5", family: 6 }];
    expect(await ask(lookup, "wiki.internal", {})).toEqual([null, "10.0.0.2", 4]);
    expect(await ask(lookup, "wiki.internal", { family: 6 })).toEqual([null, "fd00::5", 6]);
    expect(await ask(lookup, "wiki.internal", { family: "IPv6", all: true })).toEqual([null, six]);
    expect(await ask(lookup, "wiki.internal", { family: 4, all: true })).toEqual([null, four]);
    const [error, all] = await ask(lookup, "wiki.internal", { all: true });
    expect([error, all]).toEqual([null, [four[0], six[0], four[1]]]);
  });

  it("says so where the family that is asked for has no address", async () => {
    const lookup = pinnedLookup(url, destinations, new LyingResolver(["10.0.0.1", "::1"]).resolve);
    const [error] = await ask(lookup, "wiki.internal", { family: 6, all: true });
    expect(error).toMatchObject({ code: "ENOTFOUND" });
  });

  it("[exec-6] is for its own host and for no other", async () => {
    const resolver = new LyingResolver(["10.0.0.1"]);
    const [error] = await ask(pinnedLookup(url, destinations, resolver.resolve), "evil.example", { all: true });
    expect(error).toBeInstanceOf(TypeError);
    expect(resolver.asked).toEqual([]);
  });
});

describe("connections", () => {
  it.each([true, false])(
    "[exec-6] DNS that flips: one lookup for each connection, and the next answer is judged anew (family selection %s)",
    async (autoSelectFamily) => {
      const destinations = Destinations.parse([`127.0.0.1:${port}`]);
      const url = new URL(`http://flip.test:${port}/`);
      const resolver = new LyingResolver(["127.0.0.1"], ["127.0.0.2"], ["169.254.169.254"]);
      const lookup = pinnedLookup(url, destinations, resolver.resolve);
      const response = await get(url, lookup, autoSelectFamily);
      expect(response.statusCode).toBe(204);
      expect(resolver.asked).toHaveLength(1);
      expect(accepted).toHaveLength(1);
      await expect(get(url, lookup, autoSelectFamily)).rejects.toMatchObject({ reason: "loopback" });
      await expect(get(url, lookup, autoSelectFamily)).rejects.toMatchObject({ reason: "never" });
      expect(resolver.asked).toHaveLength(3);
      expect(accepted).toHaveLength(1);
    },
  );

  it("[exec-6] a pool of undici resolves at each connection, and by this lookup alone", async () => {
    const url = new URL(`http://flip.test:${port}/`);
    const resolver = new LyingResolver(["127.0.0.1"], ["127.0.0.2"]);
    const lookup = pinnedLookup(url, Destinations.parse([`127.0.0.1:${port}`]), resolver.resolve);
    const pool = new Pool(url.origin, { connect: { lookup } });
    const first = await pool.request({ path: "/", method: "GET" });
    expect(first.statusCode).toBe(204);
    await first.body.dump();
    await expect(pool.request({ path: "/", method: "GET" })).rejects.toBeInstanceOf(DestinationRefused);
    expect(resolver.asked).toEqual(["flip.test", "flip.test"]);
    expect(accepted).toHaveLength(1);
    await pool.destroy();
  });

  it("[exec-6] of several addresses only the allowed ones are tried", async () => {
    // The server is at the second address, which is refused: nobody may get there, even when the first fails.
    const destinations = Destinations.parse([`127.0.0.3:${port}`, `[::1]:${port}`]);
    const url = new URL(`http://several.test:${port}/`);
    const resolver = new LyingResolver(["127.0.0.3", "127.0.0.1", "::ffff:127.0.0.1"]);
    const socket = connect({
      host: url.hostname,
      port,
      autoSelectFamily: true,
      lookup: pinnedLookup(url, destinations, resolver.resolve),
    });
    const [error] = (await once(socket, "error").catch((reason: unknown) => [reason])) as [NodeJS.ErrnoException];
    expect(error).toMatchObject({ syscall: "connect" });
    expect(error).toMatchObject({ address: "127.0.0.3" });
    expect(accepted).toHaveLength(0);
  });

  it("the next allowed address is tried where one fails", async () => {
    const url = new URL(`http://several.test:${port}/`);
    const { resolve } = new LyingResolver(["127.0.0.3", "127.0.0.2", "127.0.0.1"]);
    const response = await get(url, pinnedLookup(url, Destinations.parse(["127.0.0.3", "127.0.0.1"]), resolve));
    expect(response.statusCode).toBe(204);
  });

  it("[exec-6] a name rule reaches no server of the executor's own machine", async () => {
    const url = new URL(`http://wiki.internal:${port}/`);
    for (const address of ["127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "::"]) {
      const { resolve } = new LyingResolver([address]);
      await expect(get(url, pinnedLookup(url, Destinations.parse(["wiki.internal", "*"]), resolve))).rejects.toThrow(
        DestinationRefused,
      );
    }
    expect(accepted).toHaveLength(0);
  });

  it("loopback is reached by its name, through the system's resolver", async () => {
    const url = new URL(`http://localhost:${port}/`);
    const response = await get(url, pinnedLookup(url, Destinations.parse([`localhost:${port}`])));
    expect(response.statusCode).toBe(204);
  });
});

describe("explain", () => {
  const destinations = Destinations.parse(["wiki.internal", "10.0.0.0/8"]);

  it("says which rule allows a URL, and of each address what becomes of it", async () => {
    const { resolve } = new LyingResolver(["10.0.0.5", "169.254.169.254"]);
    const explanation = await explain("http://wiki.internal/mcp?token=secret", destinations, resolve);
    expect(explanation).toEqual({
      allowed: true,
      url: "http://wiki.internal/mcp",
      host: "wiki.internal",
      port: 80,
      rule: "10.0.0.0/8",
      addresses: [
        { address: "10.0.0.5", allowed: true, why: "rule 10.0.0.0/8" },
        {
          address: "169.254.169.254",
          allowed: false,
          why: "wiki.internal resolves to 169.254.169.254, which is a metadata address of a cloud.",
        },
      ],
      why: "The rule 10.0.0.0/8 allows it.",
      advice: "",
    });
    expect(explanationLines(explanation)).toEqual([
      "http://wiki.internal/mcp: would be requested",
      "  The rule 10.0.0.0/8 allows it.",
      "  10.0.0.5         allowed: rule 10.0.0.0/8",
      "  169.254.169.254  refused: wiki.internal resolves to 169.254.169.254, which is a metadata address of a cloud.",
    ]);
  });

  it("says what is missing", async () => {
    const { resolve } = new LyingResolver(["11.0.0.1"]);
    expect(explanationLines(await explain("https://intranet/", destinations, resolve))).toEqual([
      "https://intranet/: would be refused",
      "  intranet resolves to 11.0.0.1, which no --allow rule covers.",
      "  Start the executor with --allow intranet:443 if it may be reached.",
    ]);
    expect(await explain("http://127.0.0.1:81/", destinations, resolve)).toMatchObject({
      allowed: false,
      rule: undefined,
      addresses: [],
      why: "127.0.0.1 is the executor's own machine.",
      advice: "Start the executor with --allow 127.0.0.1:81 if it may be reached.",
    });
  });

  it("explains a refusal as a request would get it, and what is allowed as a request would go", async () => {
    for (const answer of [["10.0.0.1"], ["127.0.0.1", "0.0.0.0"], [], ["11.0.0.1", "10.9.9.9"]]) {
      const url = "http://intranet/";
      const explanation = await explain(url, destinations, new LyingResolver(answer).resolve);
      const real = await pinned(url, destinations, new LyingResolver(answer).resolve).catch(
        (error: DestinationRefused) => error,
      );
      const allowed = explanation.addresses.filter((one) => one.allowed).map(({ address }) => ({ address, family: 4 }));
      if (real instanceof Error) expect(`${explanation.why} ${explanation.advice}`).toBe(real.message);
      else expect([explanation.allowed, allowed]).toEqual([true, real]);
    }
  });

  it.each([
    ["http://me:hunter2@wiki.internal/", "a user or a password"],
    ["http://me:hunter2@[bad/", "no URL"],
    ["data:text/plain,hunter2", "no data: requests"],
    ["javascript:hunter2", "no javascript: requests"],
  ])("repeats no secret of %s", async (url, why) => {
    const lines = explanationLines(await explain(url, destinations, new LyingResolver([]).resolve)).join("\n");
    expect(lines).toContain(why);
    expect(lines).not.toContain("hunter2");
  });

  it("says that a name does not resolve", async () => {
    const failure = Object.assign(new Error("getaddrinfo ENOTFOUND"), { code: "ENOTFOUND" });
    const explanation = await explain("http://wiki.internal/", destinations, () => Promise.reject(failure));
    expect(explanation).toMatchObject({
      allowed: false,
      host: "wiki.internal",
      why: expect.stringContaining("ENOTFOUND"),
    });
  });
});
