// The door on a real port, asked by raw requests: a browser cannot be made to send what is refused here.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingHttpHeaders, request } from "node:http";
import { request as secureRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { makeCertificate } from "../../../test/fixtures/certificates.js";
import { MemoryMap } from "../../store/memory-map.js";
import { type DoorRecord, OperatorDoor, PageFiles } from "./door.js";
import { metricsForm } from "./metrics.js";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

function pageFiles(): PageFiles {
  const folder = mkdtempSync(join(tmpdir(), "toolway-page-"));
  closing.push(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "index.html"), "<!doctype html>the page");
  writeFileSync(join(folder, "main.js"), "script");
  return new PageFiles(folder);
}

/** The tokens of the door, by their secrets. */
const TOKENS: ReadonlyMap<string, { id: string; role: string }> = new Map(
  ["metrics", "viewer", "operator"].map((role) => [`tw_${role}`, { id: role, role }]),
);

function openDoor(
  kept = new MemoryMap<DoorRecord>("door"),
  at = { nowMs: 0, wallMs: 1_000_000 },
  held?: { host: string; port: number; hosts: readonly string[]; tls: { cert: Buffer; key: Buffer } | undefined },
) {
  const seen = { status: 1 };
  const acts: unknown[] = [];
  const ended = new Set<string>();
  const scrapes: string[] = [];
  const refused: string[] = [];
  const door = new OperatorDoor({
    kept,
    files: pageFiles(),
    seeing: { "GET /status": () => ({ ...seen }) },
    acting: {
      "POST /reload": ({ body }) => {
        acts.push(body);
        return { ok: true };
      },
    },
    look: () => ({ ...seen }),
    tokens: {
      authenticate: (token) => {
        const found = TOKENS.get(token);
        return found === undefined || ended.has(found.id) ? undefined : found;
      },
      isCurrent: ({ id }) => !ended.has(id),
      dropOldSecrets: () => {},
    },
    metrics: async (form) => {
      scrapes.push(form);
      return `# ${form}\n${"up 1\n".repeat(400)}`;
    },
    held,
    refused: (address, path) => void refused.push(`${address} ${path}`),
    clock: { now: () => at.nowMs, wall: () => at.wallMs },
  });
  closing.push(() => door.close());
  return { door, kept, acts, seen, at, ended, scrapes, refused };
}

function ask(port: number, path: string, options: { method?: string; headers?: object; body?: unknown } = {}) {
  return new Promise<Answer>((done, fail) => {
    const text = options.body === undefined ? undefined : JSON.stringify(options.body);
    const type = text === undefined ? {} : { "content-type": "application/json" };
    const headers = { host: `127.0.0.1:${port}`, ...type, ...options.headers };
    const asked = request({ port, host: "127.0.0.1", path, method: options.method ?? "GET", headers, agent: false });
    asked.once("error", fail);
    asked.once("response", async (response) => {
      let body = "";
      for await (const piece of response) body += piece;
      done({ status: response.statusCode ?? 0, headers: response.headers, text: body });
    });
    asked.end(text);
  });
}

/** A session's secret, as the page gets it. */
async function enter(door: OperatorDoor, power: "viewer" | "operator" = "operator") {
  const { url } = await door.link(power);
  const code = new URL(url).hash.slice("#code=".length);
  const answer = await ask(door.port ?? 0, "/api/session", { method: "POST", body: { code } });
  const { id, secret } = JSON.parse(answer.text) as { id: string; secret: string };
  return { code, id, secret, port: door.port ?? 0, headers: { authorization: `Bearer ${secret}` } };
}

describe("the operator's door", () => {
  it("is shut until somebody asks for a link, and gives the page to whoever comes then", async () => {
    const { door } = openDoor();
    expect(door.port).toBeUndefined();
    const { url } = await door.link("operator");
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#code=[\w-]{22}$/);
    const page = await ask(door.port ?? 0, "/servers/github");
    expect(page).toMatchObject({ status: 200, text: "<!doctype html>the page" });
    expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
    expect(page.headers["set-cookie"]).toBeUndefined();
    expect(await ask(door.port ?? 0, "/%2e%2e/etc/passwd.txt")).toMatchObject({ status: 404 });
    expect(await ask(door.port ?? 0, "/nothing.js")).toMatchObject({ status: 404 });
  });

  it("says with every answer what its pages may do, of refusals too, and that data is stored nowhere", async () => {
    const { door } = openDoor();
    const { port, headers } = await enter(door);
    const scraper = { authorization: "Bearer tw_metrics" };
    const sent: readonly [path: string, status: number, isData: boolean, options?: Parameters<typeof ask>[2]][] = [
      ["/", 200, false],
      ["/main.js", 200, false],
      ["/nothing.js", 404, false],
      ["/", 403, false, { headers: { host: "evil.example" } }],
      ["/", 403, false, { headers: { origin: "https://evil.example" } }],
      ["/api/status", 200, true, { headers }],
      ["/api/nothing", 404, true, { headers }],
      ["/api/status", 401, true],
      ["/api/session", 403, true, { method: "POST", body: { code: "x" } }],
      ["/metrics", 200, true, { headers: scraper }],
    ];
    for (const [path, status, isData, options] of sent) {
      const answer = await ask(port, path, options);
      expect({ path, status: answer.status }).toEqual({ path, status });
      expect(answer.headers, path).toMatchObject({
        "content-security-policy":
          "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; media-src 'self' blob:; " +
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
      });
      if (isData) expect(answer.headers["cache-control"], path).toBe("no-store");
    }
    const feed = await new Promise<IncomingHttpHeaders>((done, fail) => {
      const asked = request({ port, host: "127.0.0.1", path: "/api/feed", headers, agent: false });
      asked.once("error", fail);
      asked.once("response", (response) => {
        done(response.headers);
        response.destroy();
      });
      asked.end();
    });
    expect(feed).toMatchObject({ "cache-control": "no-store", "x-content-type-options": "nosniff" });
  });

  it("gives the page at the address of a thing whose name has dots, slashes and percent signs", async () => {
    const { door } = openDoor();
    await door.link("operator");
    for (const name of ["fs.read", "a/b", "50%", "..."].map(encodeURIComponent)) {
      expect(await ask(door.port ?? 0, `/tools/${name}`)).toMatchObject({
        status: 200,
        text: "<!doctype html>the page",
      });
    }
  });

  it("takes a path as it is sent: none is another by its dots, slashes or escapes", async () => {
    const { door } = openDoor();
    const { port, headers } = await enter(door);
    for (const path of ["//x/feed", "//x/status", "/x/../status", "/./status", "//status", "/%73tatus", "//["]) {
      expect(await ask(port, `/api${path}`, { headers }), path).toMatchObject({ status: 404 });
    }
    expect(await ask(port, "/api/status?a=%2F..", { headers })).toMatchObject({ status: 200 });
  });

  it("reads no more than a few KiB of anybody, with a session or without [bounded]", async () => {
    const { door, acts } = openDoor();
    const { port, headers } = await enter(door);
    const body = { code: "x".repeat(20_000) };
    expect(await ask(port, "/api/session", { method: "POST", body })).toMatchObject({ status: 413 });
    const viewer = await enter(door, "viewer");
    const more = { ...viewer.headers, "content-type": "application/json", "content-length": 20_000 };
    expect(await ask(port, "/api/status", { headers: more })).toMatchObject({ status: 413 });
    const large = { ...headers, "content-length": 1024 * 1024 + 1 };
    expect(await ask(port, "/api/reload", { method: "POST", headers: large, body: {} })).toMatchObject({ status: 413 });
    expect(acts).toEqual([]);
  });

  it("forgets the record of a session that gave way to a new one [bounded]", async () => {
    const { door, kept } = openDoor();
    for (let n = 0; n < 18; n++) await enter(door);
    expect([...kept.entries()].filter(([, record]) => "hash" in record)).toHaveLength(16);
  });

  it("gives data to a session alone, and no secret is kept or shown [secrets-unseen]", async () => {
    const { door, kept } = openDoor();
    const { secret, port, headers } = await enter(door);
    expect((await ask(port, "/api/status", { headers })).text).toBe('{"status":1}');
    for (const wrong of [{}, { authorization: `Bearer ${"x".repeat(43)}` }, { authorization: secret }]) {
      expect(await ask(port, "/api/status", { headers: wrong })).toMatchObject({ status: 401 });
    }
    expect(JSON.stringify([...kept.entries()])).not.toContain(secret);
  });

  it("refuses a link that was used or is late", async () => {
    const { door, at } = openDoor();
    const { code, port } = await enter(door);
    expect(await ask(port, "/api/session", { method: "POST", body: { code } })).toMatchObject({ status: 403 });
    const late = new URL((await door.link("operator")).url).hash.slice("#code=".length);
    at.nowMs += 60_000;
    const answer = await ask(port, "/api/session", { method: "POST", body: { code: late } });
    expect(answer.text).toContain("toolway dashboard");
    expect(answer.status).toBe(403);
  });

  it("lets a viewer see, and does nothing for one", async () => {
    const { door, acts } = openDoor();
    const { port, headers } = await enter(door, "viewer");
    expect(await ask(port, "/api/status", { headers })).toMatchObject({ status: 200 });
    expect(await ask(port, "/api/reload", { method: "POST", headers, body: {} })).toMatchObject({ status: 403 });
    const operator = await enter(door);
    const asked = { method: "POST", headers: operator.headers, body: { a: 1 } };
    expect(await ask(port, "/api/reload", asked)).toMatchObject({ status: 200 });
    expect(acts).toEqual([{ a: 1 }]);
  });

  it("refuses other sites before it looks at the session, with everything right but where they come from", async () => {
    const { door, acts } = openDoor();
    const { port, headers } = await enter(door);
    for (const from of [
      { origin: `http://127.0.0.1:${port + 1}` },
      { "sec-fetch-site": "cross-site" },
      { host: `evil.example:${port}` },
      { "content-type": "text/plain" },
    ]) {
      const answer = await ask(port, "/api/reload", { method: "POST", headers: { ...headers, ...from }, body: {} });
      expect(answer.status, JSON.stringify(from)).toBe(403);
    }
    expect(acts).toEqual([]);
  });

  it("opens again at the same port for the sessions of before, and shows that it is the same", async () => {
    const { door, kept, at } = openDoor();
    const { id, headers, port } = await enter(door);
    await door.close();
    await expect(ask(port, "/")).rejects.toThrow();
    const next = openDoor(kept, at).door;
    await next.resume();
    expect(next.port).toBe(port);
    expect(await ask(port, "/api/status", { headers })).toMatchObject({ status: 200 });
    const proof = await ask(port, "/api/proof", { method: "POST", body: { id, nonce: "n" } });
    expect(JSON.parse(proof.text)).toHaveProperty("proof");
    // Of a session that is none the page is to know that it is over.
    const none = await ask(port, "/api/proof", { method: "POST", body: { id: "another", nonce: "n" } });
    expect(none).toMatchObject({ status: 401, text: expect.stringContaining("This session has ended") });
  });

  it("does not open again where the sessions of before are over", async () => {
    const { door, kept, at } = openDoor();
    await enter(door);
    await door.close();
    const next = openDoor(kept, { ...at, wallMs: at.wallMs + 12 * 60 * 60_000 }).door;
    await next.resume();
    expect(next.port).toBeUndefined();
    expect([...kept.entries()].filter(([, record]) => "hash" in record)).toEqual([]);
  });

  it("takes another port where somebody has the one of before", async () => {
    const first = openDoor().door;
    await first.link("operator");
    const second = openDoor().door;
    await second.link("operator");
    expect(second.port).not.toBe(first.port);
    expect(second.port).toBeGreaterThan(0);
  });

  it("ends every session at once when it is told to", async () => {
    const { door } = openDoor();
    const { port, headers } = await enter(door);
    const stream = ask(port, "/api/feed", { headers }).catch(() => "cut");
    expect(await door.endAll()).toBe(1);
    expect(await stream).toBe("cut");
    expect(door.port).toBeUndefined();
    await expect(ask(port, "/api/status", { headers })).rejects.toThrow();
  });

  it("gives its metrics to a token of its own alone, in the form that is asked for, and zipped [control-apart]", async () => {
    const { door, scrapes } = openDoor(undefined, undefined, { host: "127.0.0.1", port: 0, hosts: [], tls: undefined });
    await door.resume();
    const port = door.port ?? 0;
    const { headers: session } = await enter(door);
    for (const wrong of [{}, session, { authorization: "Bearer tw_agent" }, { authorization: "Basic tw_metrics" }]) {
      expect(await ask(port, "/metrics", { headers: wrong })).toMatchObject({ status: 401 });
    }
    expect(scrapes).toEqual([]);
    const headers = { authorization: "Bearer tw_metrics" };
    const plain = await ask(port, "/metrics", { headers });
    expect(plain).toMatchObject({ status: 200, text: expect.stringContaining("# prometheus") });
    expect(plain.headers["content-type"]).toContain("version=0.0.4");
    const accept =
      "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    const open = await ask(port, "/metrics", { headers: { ...headers, accept } });
    expect(open.headers["content-type"]).toMatch(/^application\/openmetrics-text; version=1\.0\.0/);
    const zipped = await ask(port, "/metrics", { headers: { ...headers, "accept-encoding": "gzip" } });
    expect(zipped.headers["content-encoding"]).toBe("gzip");
    expect(Number(zipped.headers["content-length"])).toBeLessThan(200);
    expect(await ask(port, "/metrics", { method: "POST", headers, body: {} })).toMatchObject({ status: 405 });
    for (const foreign of [{ host: `evil.example:${port}` }, { origin: "http://127.0.0.1:1" }]) {
      expect(await ask(port, "/metrics", { headers: { ...headers, ...foreign } })).toMatchObject({ status: 403 });
    }
  });

  it("opens to a token what its power is, and nothing more [control-apart]", async () => {
    const { door, acts } = openDoor(undefined, undefined, { host: "127.0.0.1", port: 0, hosts: [], tls: undefined });
    await door.resume();
    const port = door.port ?? 0;
    const statusOf = async (power: string, path: string, method = "GET") => {
      const headers = { authorization: `Bearer tw_${power}` };
      return (await ask(port, path, { method, headers, ...(method === "POST" ? { body: {} } : {}) })).status;
    };
    expect(await statusOf("metrics", "/api/status")).toBe(403);
    expect(await statusOf("metrics", "/api/feed")).toBe(403);
    expect(await statusOf("viewer", "/api/status")).toBe(200);
    expect(await statusOf("viewer", "/api/reload", "POST")).toBe(403);
    expect(await statusOf("agent", "/api/status")).toBe(401);
    expect(acts).toEqual([]);
    expect(await statusOf("operator", "/api/reload", "POST")).toBe(200);
    expect(acts).toEqual([{}]);
  });

  it("tells of each token that it does not know, where it was shown, and not of who shows none [audit-tells]", async () => {
    const { door, refused } = openDoor();
    await door.link("viewer");
    const port = door.port ?? 0;
    for (const path of ["/api/status?x=tw_secret", "/metrics", "/api/tokens"]) {
      await ask(port, path, { headers: { authorization: "Bearer tw_stolen" } });
      await ask(port, path);
    }
    expect(await ask(port, "/metrics", { headers: { authorization: "Bearer tw_metrics" } })).toMatchObject({
      status: 200,
    });
    expect(refused).toEqual(["127.0.0.1 /api/status", "127.0.0.1 /metrics", "127.0.0.1 /api/tokens"]);
  });

  it("stays open where the config holds it, at that port alone, and says who is to let go of it", async () => {
    const first = openDoor(undefined, undefined, { host: "127.0.0.1", port: 0, hosts: [], tls: undefined });
    await first.door.resume();
    const port = first.door.port ?? 0;
    const { headers } = await enter(first.door);
    expect(await first.door.endAll()).toBe(1);
    expect(first.door.port).toBe(port);
    expect(await ask(port, "/api/status", { headers })).toMatchObject({ status: 401 });
    // Another gateway's links never lead here.
    expect([...first.kept.entries()]).toEqual([]);
    const second = openDoor(undefined, undefined, { host: "127.0.0.1", port, hosts: [], tls: undefined });
    await expect(second.door.resume()).rejects.toThrow(`127.0.0.1:${port} is not free`);
    await first.door.close();
    await second.door.resume();
    expect(second.door.port).toBe(port);
  });

  it("speaks TLS where it has a certificate, takes another while it runs, and gives links with the config's name", async () => {
    const files = makeCertificate();

    const tls = { cert: readFileSync(files.cert), key: readFileSync(files.key) };
    const held = { host: "127.0.0.1", port: 0, hosts: ["toolway.example"], tls };
    const { door } = openDoor(undefined, undefined, held);
    await door.resume();
    const port = door.port ?? 0;
    expect((await door.link("viewer")).url).toMatch(new RegExp(`^https://toolway\\.example:${port}/#code=`));
    await expect(ask(port, "/")).rejects.toThrow();
    door.setCertificate(tls);
    const status = await new Promise<number | undefined>((done, fail) => {
      const asked = secureRequest({ port, host: "127.0.0.1", rejectUnauthorized: false, agent: false, path: "/" });
      asked.setHeader("host", `toolway.example:${port}`);
      asked.once("error", fail).once("response", (response) => done(response.resume().statusCode));
      asked.end();
    });
    expect(status).toBe(200);
    const proxied = openDoor(undefined, undefined, { ...held, tls: undefined }).door;
    expect((await proxied.link("viewer")).url).toMatch(/^https:\/\/toolway\.example\/#code=/);
  });
});

describe("the form of metrics", () => {
  it.each([
    [undefined, "prometheus"],
    ["*/*", "prometheus"],
    ["text/plain;version=0.0.4", "prometheus"],
    ["application/openmetrics-text", "openmetrics"],
    ["application/openmetrics-text;version=0.0.1", "prometheus"],
    ["application/openmetrics-text; version=1.0.0; q=0.3, text/plain; q=0.5", "prometheus"],
    ["text/plain;q=0.5,application/openmetrics-text;version=1.0.0;q=0.5", "openmetrics"],
    ["application/openmetrics-text;q=0", "prometheus"],
  ] as const)("for %s is %s", (accept, form) => {
    expect(metricsForm(accept)).toBe(form);
  });
});
