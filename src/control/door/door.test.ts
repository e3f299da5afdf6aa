// The door on a real port, asked by raw requests: a browser cannot be made to send what is refused here.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingHttpHeaders, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { MemoryMap } from "../../store/memory-map.js";
import { type DoorRecord, OperatorDoor, PageFiles } from "./door.js";

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

function openDoor(kept = new MemoryMap<DoorRecord>("door"), at = { nowMs: 0, wallMs: 1_000_000 }) {
  const seen = { status: 1 };
  const acts: unknown[] = [];
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
    clock: { now: () => at.nowMs, wall: () => at.wallMs },
  });
  closing.push(() => door.close());
  return { door, kept, acts, seen, at };
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
    expect(await ask(port, "/api/reload", { method: "POST", headers, body })).toMatchObject({ status: 413 });
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
});
