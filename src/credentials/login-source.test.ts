import { randomBytes } from "node:crypto";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { ISSUER, PlayedAuthority, SERVER } from "../../test/fixtures/played-authority.js";
import { until } from "../../test/fixtures/wait.js";
import { createVault } from "../runtime/seal.js";
import { MemoryMap } from "../store/memory-map.js";
import { type AuthFetch, authFetch } from "./auth-fetch.js";
import { Credential } from "./credential.js";
import { type Grant, type GrantRecord, grantKeeper } from "./grant.js";
import { LoginSource } from "./login-source.js";
import { type RenewalClaim, RenewalClaims } from "./renewal-claims.js";

const BACK = "http://127.0.0.1:5000/callback";

const clock = { ms: 0 };
const options = (authority: PlayedAuthority) => ({
  server: "linear",
  serverUrl: SERVER,
  // As a real one: it ends with its signal.
  fetch: (signal: AbortSignal) => (input: string | URL, init?: RequestInit) =>
    signal.aborted
      ? Promise.reject(signal.reason as Error)
      : Promise.race([
          authority.fetch(input, init),
          new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
        ]),
  now: () => clock.ms,
  wall: () => 1_000_000_000 + clock.ms,
  log: (text: string) => void logged.push(text),
});
let logged: string[] = [];
let map: MemoryMap<GrantRecord>;
const vault = createVault(randomBytes(32));
beforeEach(() => {
  clock.ms = 0;
  logged = [];
  map = new MemoryMap<GrantRecord>("logins");
});

function make(authority: PlayedAuthority, settings: { scopes?: string[]; clientId?: string } = {}) {
  const keeper = grantKeeper({ map, vault }, "linear", { url: SERVER, clientId: settings.clientId });
  const source = new LoginSource(options(authority), { from: "oauth", ...settings }, keeper, async () => undefined);
  let changes = 0;
  const credential = new Credential({
    source,
    now: () => clock.ms,
    wall: () => 1_000_000_000 + clock.ms,
    onChange: () => changes++,
    onToken: () => {},
  });
  return { source, credential, changes: () => changes };
}

function bound(target: object, name: string | symbol): unknown {
  const value = Reflect.get(target, name, target) as unknown;
  return typeof value === "function" ? value.bind(target) : value;
}

const hanging = new Promise<never>(() => {});
/** What was asked for has been answered, as far as nothing hangs. */
const settled = () => new Promise((done) => setImmediate(done));

let given = 0;
const gives = (more: object = {}) => ({
  access_token: `access-${++given}`,
  refresh_token: `refresh-${given}`,
  token_type: "Bearer",
  expires_in: 3600,
  ...more,
});

async function loggedIn(settings: { scopes?: string[] } = {}) {
  const authority = new PlayedAuthority();
  given = 0;
  authority.token = () => gives();
  const made = make(authority, settings);
  const { address, state } = await made.source.begin(BACK);
  await made.source.finish({ state, code: "c0de", iss: ISSUER, error: undefined });
  return { authority, address: new URL(address), state, ...made };
}

describe("a login by OAuth", () => {
  it("asks for what the server names, with PKCE, a state and the resource, and gives a token that is kept sealed", async () => {
    const { address, credential, authority, state } = await loggedIn();
    const asked = Object.fromEntries(address.searchParams);
    expect(address.origin + address.pathname).toBe(`${ISSUER}/authorize`);
    expect(asked).toMatchObject({
      client_id: "client-1",
      code_challenge_method: "S256",
      redirect_uri: BACK,
      resource: SERVER,
      scope: "read offline_access",
      state,
    });
    const exchange = authority.asked.at(-1)?.body;
    expect(exchange?.get("code")).toBe("c0de");
    expect(exchange?.get("code_verifier")).toMatch(/^.{43,}$/);
    expect(credential.token()).toBe("access-1");
    expect(credential.status()).toMatchObject({ state: "known", needsLogin: false });
    expect(credential.status().until).toBe(new Date(1_000_000_000 + 3_600_000).toISOString());
    // On disk nobody reads it, and another gateway of the same state has it.
    expect(JSON.stringify([...map.entries()])).not.toMatch(/access-1|refresh-1/);
    expect(make(authority).credential.token()).toBe("access-1");
  });

  it("begins as the server itself says where no request was refused yet: its metadata and its scopes are asked for", async () => {
    const authority = new PlayedAuthority();
    const elsewhere = "https://mcp.example.com/custom/metadata.json";
    authority.documents[elsewhere] = { resource: SERVER, authorization_servers: [ISSUER], scopes_supported: ["all"] };
    authority.documents["https://mcp.example.com/.well-known/oauth-protected-resource/mcp"] = undefined;
    authority.challenge = `Bearer scope="mcp:basic", resource_metadata="${elsewhere}"`;
    const { source } = make(authority);
    const first = new URL((await source.begin(BACK)).address);
    expect(first.searchParams.get("scope")).toBe("mcp:basic offline_access");
    // What it has said is known.
    await source.begin(BACK);
    expect(authority.asked.filter(({ url }) => url === SERVER)).toHaveLength(1);
  });

  it("is not readable by an entry with another address", async () => {
    await loggedIn();
    expect(
      grantKeeper({ map, vault }, "linear", { url: "https://evil.example/mcp", clientId: undefined }).get(),
    ).toBeUndefined();
  });

  it("that is refused by a hundred calls is renewed once, and the new refresh token is kept [token-unseen]", async () => {
    const { authority, credential, changes } = await loggedIn();
    await credential.token();
    const before = changes();
    const all = await Promise.all(Array.from({ length: 100 }, () => credential.refused("access-1")));
    expect(new Set(all)).toEqual(new Set([true]));
    expect(authority.tokenRequests()).toEqual(["authorization_code", "refresh_token"]);
    expect(credential.token()).toBe("access-2");
    // The same rights: what the server shows is the same.
    expect(changes()).toBe(before);
    await credential.refused("access-2");
    expect(authority.asked.at(-1)?.body.get("refresh_token")).toBe("refresh-2");
    expect(make(authority).credential.token()).toBe("access-3");
  });

  it("says that it ends with its token where it was given nothing to renew that with", async () => {
    const { source, credential } = await loggedIn();
    expect(credential.status()).toMatchObject({ needsLogin: false, isRenewed: true });
    const authority = new PlayedAuthority();
    authority.token = () => gives({ refresh_token: undefined });
    const ending = make(authority);
    const { state } = await ending.source.begin(BACK);
    await ending.source.finish({ state, code: "c0de", iss: ISSUER, error: undefined });
    expect(ending.credential.status()).toMatchObject({ needsLogin: false, isRenewed: false });
    await source.logout();
    expect(credential.status()).toMatchObject({ needsLogin: true, isRenewed: false });
  });

  it("that is renewed with other rights shows something else, so that the server's lists are read again [agent-10]", async () => {
    const { authority, credential, changes } = await loggedIn();
    await credential.token();
    for (const [scope, expected] of [
      ["read", 1],
      ["read", 1],
      ["read write", 2],
    ] as const) {
      authority.token = () => gives({ scope });
      expect(await credential.refused(`access-${given}`)).toBe(true);
      expect(changes()).toBe(expected);
    }
  });

  it("is renewed before it ends, and no call waits for that", async () => {
    const { authority, credential } = await loggedIn();
    clock.ms = 3_600_000 - 20_000;
    let answer: (value: unknown) => void = () => {};
    authority.token = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    expect(credential.token()).toBe("access-1");
    await expect.poll(() => authority.tokenRequests().length).toBe(2);
    clock.ms += 1_500;
    expect(credential.token()).toBe("access-1");
    answer(gives());
    await expect.poll(() => credential.token()).toBe("access-2");
    expect(authority.tokenRequests().length).toBe(2);
  });

  it("whose renewal fails for a while is tried again after waits, and is not lost", async () => {
    const { authority, credential } = await loggedIn();
    authority.token = () => new TypeError("https://login.example.com cannot be asked: ECONNREFUSED.");
    expect(await credential.refused("access-1")).toBe(false);
    await expect(credential.token()).rejects.toThrow(/"linear" could not be renewed: .*ECONNREFUSED/);
    await expect(credential.token()).rejects.toThrow("ECONNREFUSED");
    expect(authority.tokenRequests().length).toBe(2);
    clock.ms = 60_000;
    authority.token = () => gives();
    expect(await credential.refused("access-1")).toBe(true);
    expect(credential.token()).toBe("access-2");
  });

  it("that is over is asked for no more often than the waits allow, however many calls come [bounded]", async () => {
    const { authority, credential } = await loggedIn();
    authority.token = () => new TypeError("https://login.example.com cannot be asked: ECONNREFUSED.");
    const at: number[] = [];
    // From a minute before its end, when it is renewed in the background, until ten minutes after.
    for (clock.ms = 3_540_000; clock.ms < 4_200_000; clock.ms += 250) {
      const before = authority.tokenRequests().length;
      await Promise.resolve(credential.token()).catch(() => {});
      await settled();
      if (authority.tokenRequests().length > before) at.push(clock.ms);
    }
    const waits = at.slice(1).map((ms, i) => ms - (at[i] ?? 0));
    // They grow to 30 s, and that the token ended meanwhile begins nothing anew.
    expect(waits.slice(0, 4).every((ms, i) => ms >= 1_000 * 2 ** i)).toBe(true);
    expect(waits.slice(5).every((ms) => ms >= 29_000)).toBe(true);
    authority.token = () => gives();
    clock.ms += 30_000;
    expect(await credential.token()).toBe("access-2");
  });

  it("whose renewal hangs is given up after 30 s, for all who wait, and is had later [bounded]", async () => {
    const timeouts: { ms: number; end: () => void }[] = [];
    const spy = vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => {
      const one = new AbortController();
      timeouts.push({ ms, end: () => one.abort(new DOMException("timed out", "TimeoutError")) });
      return one.signal;
    });
    try {
      const { authority, credential } = await loggedIn();
      const before = timeouts.length;
      authority.token = () => hanging;
      const waiting = Promise.all(Array.from({ length: 100 }, () => credential.refused("access-1")));
      await expect.poll(() => authority.tokenRequests().length).toBe(2);
      expect(timeouts.slice(before).map(({ ms }) => ms)).toEqual([30_000]);
      timeouts.at(-1)?.end();
      expect(new Set(await waiting)).toEqual(new Set([false]));
      await expect(credential.token()).rejects.toThrow(/"linear" could not be renewed: it took more than 30 s/);
      // Nothing is lost: the next renewal has the same refresh token.
      authority.token = (body) => (body.get("refresh_token") === "refresh-1" ? gives() : { error: "invalid_grant" });
      clock.ms += 60_000;
      expect(await credential.refused("access-1")).toBe(true);
    } finally {
      spy.mockRestore();
    }
  });

  it("whose discovery hangs is not begun after 30 s, and whoever waits is told [bounded]", async () => {
    const spy = vi.spyOn(AbortSignal, "timeout").mockImplementation(() => AbortSignal.abort(new Error("timed out")));
    try {
      const authority = new PlayedAuthority();
      const { source } = make(authority);
      await expect(source.begin(BACK)).rejects.toThrow(/"linear" could not be begun: it took more than 30 s/);
    } finally {
      spy.mockRestore();
    }
  });

  it("whose renewal is refused for good is over, and calls say which command logs in", async () => {
    const { authority, credential, changes } = await loggedIn();
    authority.token = () => ({ error: "invalid_grant", error_description: "no refresh-1 here" });
    expect(await credential.refused("access-1")).toBe(false);
    expect(credential.token()).toBeUndefined();
    expect(credential.refusal(undefined)?.message).toBe('"linear" needs login: toolway login linear');
    expect(credential.status()).toMatchObject({ state: "absent", needsLogin: true });
    expect(changes()).toBeGreaterThan(0);
    expect(logged.join()).toContain("its login is over: invalid_grant: no [redacted] here");
    expect(map.get("linear")).toBeUndefined();
  });

  it("counts as finished when its token is the one that goes out, and not before", async () => {
    const { source, credential, authority } = await loggedIn();
    await credential.refused("access-1", 'Bearer error="insufficient_scope", scope="write"');
    const seen: [number, unknown][] = [];
    const put = map.put.bind(map);
    map.put = async (...args) => {
      seen.push([source.finished, credential.token()]);
      await put(...args);
    };
    authority.token = () => gives();
    const { state } = await source.begin(BACK);
    await source.finish({ state, code: "more", iss: ISSUER, error: undefined });
    seen.push([source.finished, credential.token()]);
    // On its way to the disk it is not used yet: whoever sent something then would be refused once more.
    expect(seen).toEqual([
      [1, "access-1"],
      [2, "access-2"],
    ]);
  });

  it("that is made while a renewal is under way is the one that counts", async () => {
    const { authority, source, credential } = await loggedIn();
    let answer: (value: unknown) => void = () => {};
    authority.token = (body) =>
      body.get("grant_type") === "refresh_token"
        ? new Promise((resolve) => {
            answer = resolve;
          })
        : gives({ access_token: "of-the-login" });
    const refused = credential.refused("access-1");
    await expect.poll(() => authority.tokenRequests().length).toBe(2);
    const { state } = await source.begin(BACK);
    await source.finish({ state, code: "again", iss: ISSUER, error: undefined });
    answer(gives({ access_token: "of-the-renewal" }));
    expect(await refused).toBe(true);
    expect(credential.token()).toBe("of-the-login");
    expect(make(authority).credential.token()).toBe("of-the-login");
  });

  it("whose renewal is under way when its entry is edited keeps what that gives: no refresh token is shown twice [token-unseen]", async () => {
    const { authority, credential } = await loggedIn();
    let answer: (value: unknown) => void = () => {};
    authority.token = () => new Promise((resolve) => (answer = resolve));
    clock.ms += 3600_000;
    const waiting = credential.token();
    await until("the renewal to be asked for", () => authority.tokenRequests().length === 2);
    // The entry is edited: whoever reads it now has the login as it was kept, and the one before is closed.
    const closing = credential.close();
    const next = make(authority);
    const later = next.credential.token();
    await settled();
    answer(gives());
    await closing;
    expect(await waiting).toBe("access-2");
    expect(await later).toBe("access-2");
    expect(authority.tokenRequests()).toEqual(["authorization_code", "refresh_token"]);
  });

  it.each(["logs out", "logs in"])(
    "whose renewal is under way when its entry is edited is not brought back by it where somebody %s meanwhile",
    async (does) => {
      const { authority, credential } = await loggedIn();
      let answer: (value: unknown) => void = () => {};
      authority.token = (body) =>
        body.get("grant_type") === "refresh_token" ? new Promise((resolve) => (answer = resolve)) : gives();
      clock.ms += 3600_000;
      const waiting = credential.token();
      await until("the renewal to be asked for", () => authority.tokenRequests().length === 2);
      const closing = credential.close();
      const { source } = make(authority);
      if (does === "logs out") await source.logout();
      else {
        const { state } = await source.begin(BACK);
        await source.finish({ state, code: "again", iss: ISSUER, error: undefined });
      }
      answer(gives({ access_token: "of-the-renewal" }));
      await Promise.all([closing, waiting]);
      // As the next gateway finds it.
      expect(await make(authority).credential.token()).toBe(does === "logs out" ? undefined : "access-2");
    },
  );

  it("is renewed once for two gateways that have it together, and both go on with what that gave [engine-shared]", async () => {
    const { authority, credential } = await loggedIn();
    const claims = new MemoryMap<RenewalClaim>("claims");
    const [one, two] = ["a", "b"].map((self) => {
      // Each has the map for itself in memory, as gateways have: turns within one process do not help here.
      const own = new Proxy(map, { get: (target, name) => bound(target, name) });
      const store = { map: own, vault, claims: new RenewalClaims(claims, self, () => clock.ms) };
      const keeper = grantKeeper(store, "linear", { url: SERVER, clientId: undefined });
      return new LoginSource(options(authority), { from: "oauth" }, keeper, async () => undefined);
    }) as [LoginSource, LoginSource];
    expect([one.read(), two.read()]).toEqual(["access-1", "access-1"]);
    await credential.close();
    authority.token = (body) => (body.get("refresh_token") === "refresh-1" ? gives() : { error: "invalid_grant" });
    clock.ms += 3600_000;
    expect(await Promise.all([one.read(), two.read()])).toEqual(["access-2", "access-2"]);
    expect(authority.tokenRequests()).toEqual(["authorization_code", "refresh_token"]);
    await one.logout();
    expect(await two.read()).toBeUndefined();
    await Promise.all([one.stop(), two.stop()]);
  });

  it("that another gateway renews while the renewal here is being begun is not renewed again [engine-shared]", async () => {
    const { authority, credential } = await loggedIn();
    await credential.close();
    const claims = new RenewalClaims(new MemoryMap<RenewalClaim>("claims"), "a", () => clock.ms);
    const keeper = grantKeeper({ map, vault, claims }, "linear", { url: SERVER, clientId: undefined });
    const source = new LoginSource(options(authority), { from: "oauth" }, keeper, async () => undefined);
    expect(source.read()).toBe("access-1");
    const waiting = source.read({ token: "access-1", challenge: undefined });
    const grant = keeper.get() as Grant;
    await keeper.put({ ...grant, tokens: { ...grant.tokens, access: "theirs", refresh: "refresh-theirs" } });
    expect(await waiting).toBe("theirs");
    expect(authority.tokenRequests()).toEqual(["authorization_code"]);
    await source.stop();
  });

  it("from which somebody logs out while its code is being traded stays out, and the tokens are given back", async () => {
    const authority = new PlayedAuthority();
    given = 0;
    let answer: (value: unknown) => void = () => {};
    authority.token = () => new Promise((resolve) => (answer = resolve));
    const { source } = make(authority);
    const { state } = await source.begin(BACK);
    const finishing = source.finish({ state, code: "c0de", iss: ISSUER, error: undefined });
    await until("the code to be traded", () => authority.tokenRequests().length === 1);
    expect(await source.logout()).toBe(false);
    answer(gives());
    await expect(finishing).rejects.toThrow(/somebody logged out meanwhile/);
    expect([source.needsLogin, map.get("linear")]).toEqual([true, undefined]);
    expect(authority.asked.at(-1)?.url).toBe(`${ISSUER}/revoke`);
  });

  it("is neither begun, traded for nor ended while nothing can be kept, and one that is there goes on [engine-away]", async () => {
    const { authority, source, credential } = await loggedIn();
    const { state } = await source.begin(BACK);
    const [asked, { put, delete: remove }] = [authority.asked.length, map];
    const away = async () => {
      throw new Error("the engine is away, and nothing was written.");
    };
    Object.assign(map, { put: away, delete: away });
    const refused = /the engine is away, and nothing was written\./;
    await expect(source.begin(BACK)).rejects.toThrow(refused);
    await expect(source.finish({ state, code: "again", iss: ISSUER, error: undefined })).rejects.toThrow(refused);
    await expect(source.logout()).rejects.toThrow(refused);
    // Nobody was asked for anything, no code was spent, and no token was given back.
    expect([authority.asked.length, credential.token(), source.needsLogin]).toEqual([asked, "access-1", false]);
    // What a renewal gives was good once: it is used although it cannot be kept.
    authority.token = () => gives();
    expect(await credential.refused("access-1")).toBe(false);
    expect(await source.read()).toBe("access-2");

    Object.assign(map, { put, delete: remove });
    expect(await source.logout()).toBe(true);
    expect(authority.asked.at(-1)?.body.get("token")).toBe("refresh-2");
  });

  it("whose tokens cannot be kept at its end is no login: they are given back, and the one before goes on [engine-away]", async () => {
    const { authority, source, credential } = await loggedIn();
    const { state } = await source.begin(BACK);
    Object.assign(map, { put: () => Promise.reject(new Error("the engine is away.")) });
    authority.token = () => gives();
    await expect(source.finish({ state, code: "again", iss: ISSUER, error: undefined })).rejects.toThrow(/away\./);
    expect(authority.asked.at(-1)?.body.get("token")).toBe("refresh-2");
    expect([source.read(), source.finished, credential.token()]).toEqual(["access-1", 1, "access-1"]);
  });

  it("that lacks a scope is not renewed for it: the next login asks for all that was granted and for that", async () => {
    const { authority, source, credential } = await loggedIn();
    const challenge = 'Bearer error="insufficient_scope", scope="write"';
    expect(await credential.refused("access-1", challenge)).toBe(false);
    expect(authority.tokenRequests()).toEqual(["authorization_code"]);
    expect(credential.refusal("access-1")?.message).toBe(
      '"linear" needs login, for more rights (write): toolway login linear',
    );
    const { address, state } = await source.begin(BACK);
    expect(new URL(address).searchParams.get("scope")).toBe("read offline_access write");
    await source.finish({ state, code: "more", iss: ISSUER, error: undefined });
    expect(credential.status().needsLogin).toBe(false);
  });

  it("ends with a logout: the token goes, and the authorization server is told", async () => {
    const { authority, source, credential, changes } = await loggedIn();
    await credential.token();
    expect(await source.logout()).toBe(true);
    expect([credential.token(), changes(), map.get("linear")]).toEqual([undefined, 1, undefined]);
    expect(authority.asked.at(-1)?.url).toBe(`${ISSUER}/revoke`);
    expect(authority.asked.at(-1)?.body.get("token")).toBe("refresh-1");
    expect(await source.logout()).toBe(false);
  });

  it("registers once for an address that the browser comes back to, and anew for another", async () => {
    const { authority, source } = await loggedIn();
    await source.begin(BACK);
    const registered = () => authority.asked.filter(({ url }) => url.endsWith("/register")).length;
    expect(registered()).toBe(1);
    await source.begin("http://127.0.0.1:5001/callback");
    expect(registered()).toBe(2);
  });
});

describe("an answer to a login", () => {
  const answer = { code: "c0de", iss: ISSUER, error: undefined };

  it("of a state that nobody gave, that was used before or that is too late is refused [login-guarded]", async () => {
    const { source, state } = await loggedIn();
    const wrong = /belongs to no login that is under way/;
    await expect(source.finish({ ...answer, state: "made up" })).rejects.toThrow(wrong);
    await expect(source.finish({ ...answer, state })).rejects.toThrow(wrong);
    const late = await source.begin(BACK);
    clock.ms += 5 * 60_000;
    await expect(source.finish({ ...answer, state: late.state })).rejects.toThrow(wrong);
  });

  it("of another authorization server, or of none where it says who it is, is refused before the code is sent [login-guarded]", async () => {
    const { authority, source } = await loggedIn();
    for (const iss of ["https://evil.example", undefined]) {
      const { state } = await source.begin(BACK);
      await expect(source.finish({ ...answer, iss, state })).rejects.toThrow(/could not be finished/);
    }
    expect(authority.tokenRequests()).toEqual(["authorization_code"]);
  });

  it("that says no is told in its words", async () => {
    const { source } = await loggedIn();
    const { state } = await source.begin(BACK);
    const refused = source.finish({ state, code: undefined, iss: ISSUER, error: "access_denied: Not\u001b[31m today" });
    await expect(refused).rejects.toThrow(/it was refused there \(access_denied: Not.*today\)/);
  });

  it("that the authorization server repeats in its complaint, encoded or not, is not told on: neither code, proof nor secret", async () => {
    const authority = new PlayedAuthority();
    const keeper = grantKeeper({ map, vault }, "linear", { url: SERVER, clientId: "me" });
    const settings = { from: "oauth", clientId: "me", clientSecret: { from: "env", name: "S" } } as const;
    const source = new LoginSource(options(authority), settings, keeper, async () => "s3cret/+ value");
    let repeated = "";
    authority.token = (body) => {
      repeated = `${body.get("code")} ${body.get("code_verifier")} s3cret/+ value`;
      return {
        error: "invalid_request",
        error_description: `${repeated} ${encodeURIComponent("s3cret/+ value")} ${body}`,
      };
    };
    const { state } = await source.begin(BACK);
    const failure = await source.finish({ state, code: "c0de/1=", iss: ISSUER, error: undefined }).catch(String);
    expect(failure).toContain("invalid_request");
    const verifier = authority.asked.at(-1)?.body.get("code_verifier") ?? "none";
    expect(repeated).toContain(verifier);
    for (const secret of ["c0de", verifier, "s3cret"]) expect(failure).not.toContain(secret);
  });

  it("is one of eight at most: who begins more loses the oldest [bounded]", async () => {
    const { source } = await loggedIn();
    const states: string[] = [];
    for (let i = 0; i < 9; i++) states.push((await source.begin(BACK)).state);
    await expect(source.finish({ ...answer, state: states[0] ?? "" })).rejects.toThrow("no login that is under way");
    await source.finish({ ...answer, state: states[8] ?? "" });
  });
});

describe("hostile documents", () => {
  const metadataAt = `${ISSUER}/.well-known/oauth-authorization-server`;
  const resourceAt = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
  const changed = (at: string, more: object) => (authority: PlayedAuthority) => {
    authority.documents[at] = { ...(authority.documents[at] as object), ...more };
  };

  it.each([
    ["another issuer than the one that was asked", changed(metadataAt, { issuer: "https://evil.example" }), /issuer/i],
    [
      "a login page of javascript",
      changed(metadataAt, { authorization_endpoint: "javascript:alert(1)//x" }),
      /not what the protocol says|javascript/,
    ],
    [
      "a login page in a file",
      changed(metadataAt, { authorization_endpoint: "file:///etc/passwd" }),
      /file:.*not https|not what/,
    ],
    [
      "a login page without TLS",
      changed(metadataAt, { authorization_endpoint: "http://login.example.com/a" }),
      /is not https/,
    ],
    ["metadata of another server", changed(resourceAt, { resource: "https://other.example/mcp" }), /other\.example/],
    [
      "a document that is no JSON of the protocol",
      changed(metadataAt, { token_endpoint: 7 }),
      /not what the protocol says/,
    ],
  ])("%s: no login is begun, and the reason is told [login-guarded]", async (_, hostile, why) => {
    const authority = new PlayedAuthority();
    hostile(authority);
    await expect(make(authority).source.begin(BACK)).rejects.toThrow(why);
  });

  it("a login page on a private host, of a server that is farther away: no login is begun, and the reason is told [login-guarded]", async () => {
    const authority = new PlayedAuthority();
    changed(metadataAt, { authorization_endpoint: "https://inside.example.com/authorize" })(authority);
    const { fetch, ...others } = options(authority);
    const judged = (signal: AbortSignal): AuthFetch => {
      const resolve = async () => [{ address: "10.0.0.8" }];
      const send = () => Promise.reject(new Error("Nothing is connected to."));
      const { pageRefusal } = authFetch({
        serverUrl: "https://203.0.113.5/mcp",
        isElsewhere: false,
        send,
        signal,
        resolve,
      });
      return Object.assign(fetch(signal), { pageRefusal });
    };
    const keeper = grantKeeper({ map, vault }, "linear", { url: SERVER, clientId: undefined });
    const source = new LoginSource({ ...others, fetch: judged }, { from: "oauth" }, keeper, async () => undefined);
    await expect(source.begin(BACK)).rejects.toThrow(
      /its login page is refused: inside\.example\.com \(10\.0\.0\.8\) is a private network/,
    );
  });

  it("a token endpoint without TLS is sent no code [login-guarded]", async () => {
    const authority = new PlayedAuthority();
    changed(metadataAt, { token_endpoint: "http://login.example.com/token" })(authority);
    const { source } = make(authority);
    const { state } = await source.begin(BACK);
    const answer = { state, code: "c0de", iss: ISSUER, error: undefined };
    await expect(source.finish(answer)).rejects.toThrow(/could not be finished/);
    expect(authority.asked.some(({ body }) => body.get("code") === "c0de")).toBe(false);
  });
});
