import { beforeEach, describe, expect, it } from "vitest";
import { PlayedAuthority, SERVER } from "../../test/fixtures/played-authority.js";
import { ClientSource } from "./client-source.js";
import { Credential } from "./credential.js";

const clock = { ms: 0 };
let given = 0;
beforeEach(() => {
  clock.ms = 0;
  given = 0;
});

const options = (authority: PlayedAuthority) => ({
  server: "ci",
  serverUrl: SERVER,
  fetch: () => authority.fetch,
  now: () => clock.ms,
  wall: () => 1_000_000_000 + clock.ms,
  log: () => {},
});

const gives = () => ({ access_token: `access-${++given}`, token_type: "Bearer", expires_in: 3600 });

describe("a login by the id and secret of a client", () => {
  function clientCredential(authority: PlayedAuthority, onChange = () => {}): Credential {
    const settings = {
      from: "clientCredentials",
      clientId: "ci",
      clientSecret: { from: "text", value: "s3cret" },
    } as const;
    const source = new ClientSource(options(authority), settings, async () => "s3cret");
    return new Credential({
      source,
      now: () => clock.ms,
      wall: () => 1_000_000_000 + clock.ms,
      onChange,
      onToken: () => {},
    });
  }

  it("is made when a token is needed and renewed by itself, with more scopes where the server wants them", async () => {
    const authority = new PlayedAuthority();
    authority.token = () => gives();
    const credential = clientCredential(authority);
    expect(await credential.token()).toBe("access-1");
    expect(authority.asked.at(-1)?.body.get("scope")).toBe("read");
    expect(await credential.refused("access-1")).toBe(true);
    expect(credential.token()).toBe("access-2");
    expect(await credential.refused("access-2", 'Bearer error="insufficient_scope", scope="write"')).toBe(true);
    expect(authority.asked.at(-1)?.body.get("scope")).toBe("read write");
    // The same want again: there is nothing more to ask for.
    clock.ms += 10_000;
    const requests = authority.tokenRequests().length;
    expect(await credential.refused("access-3", 'Bearer error="insufficient_scope", scope="write"')).toBe(false);
    expect(authority.tokenRequests().length).toBe(requests);
  });

  it("shows something else when it is given other rights, and not when its token alone is another [agent-10]", async () => {
    const authority = new PlayedAuthority();
    authority.token = () => gives();
    let changes = 0;
    const credential = clientCredential(authority, () => changes++);
    await credential.token();
    expect(await credential.refused("access-1")).toBe(true);
    expect(changes).toBe(0);
    // It asks for more, or is given less by itself.
    expect(await credential.refused("access-2", 'Bearer error="insufficient_scope", scope="write"')).toBe(true);
    expect(changes).toBe(1);
    authority.token = () => ({ ...gives(), scope: "read" });
    expect(await credential.refused("access-3", 'Bearer realm="ci"')).toBe(true);
    expect([credential.token(), changes]).toEqual(["access-4", 2]);
  });

  it("that may not have a scope which one call lacks stays as it is: other calls go on, and so do renewals [token-unseen]", async () => {
    const authority = new PlayedAuthority();
    authority.token = (body) => (body.get("scope") === "read" ? gives() : { error: "invalid_scope" });
    const credential = clientCredential(authority);
    expect(await credential.token()).toBe("access-1");
    const wants = 'Bearer error="insufficient_scope", scope="admin"';
    expect(await credential.refused("access-1", wants)).toBe(false);
    expect(await credential.token()).toBe("access-1");
    // It is not asked for with every call that lacks it.
    const requests = authority.tokenRequests().length;
    expect(await credential.refused("access-1", wants)).toBe(false);
    expect(authority.tokenRequests().length).toBe(requests);
    clock.ms += 2 * 3_600_000;
    expect(await credential.token()).toBe("access-2");
  });
});
