import { describe, expect, it } from "vitest";
import { ISSUER, PlayedAuthority, SERVER } from "../../test/fixtures/played-authority.js";
import { oauth } from "./oauth.js";

const AT = `${ISSUER}/.well-known/oauth-authorization-server`;
const BACK = "http://127.0.0.1:5000/callback";
const DOCUMENT = "https://me.example/client.json";
const NOBODY = { clientId: undefined, clientSecret: undefined, clientMetadataUrl: undefined };

describe("who we are to an authorization server", () => {
  async function clientOf(who: Partial<typeof NOBODY | { [Key in keyof typeof NOBODY]: string }>, isTaken: boolean) {
    const authority = new PlayedAuthority();
    Object.assign(authority.documents[AT] as object, { client_id_metadata_document_supported: isTaken });
    const issuer = await oauth.discover(SERVER, undefined, authority.fetch);
    const asked = { redirectUri: BACK, scopes: ["read"] };
    const { client_id, client_secret } = await oauth.clientFor(issuer, { ...NOBODY, ...who }, asked, authority.fetch);
    const isRegistered = authority.asked.some(({ url }) => url === `${ISSUER}/register`);
    return { client_id, client_secret, isRegistered };
  }

  it("is the document of the config where there is one and it is taken; else we register", async () => {
    expect(await clientOf({ clientMetadataUrl: DOCUMENT }, true)).toMatchObject({
      client_id: DOCUMENT,
      isRegistered: false,
    });
    for (const [who, isTaken] of [
      [{ clientMetadataUrl: DOCUMENT }, false],
      [{}, true],
    ] as const) {
      expect(await clientOf(who, isTaken)).toMatchObject({ client_id: "client-1", isRegistered: true });
    }
  });

  it("is the client of the config before all else", async () => {
    expect(await clientOf({ clientId: "me", clientSecret: "s", clientMetadataUrl: DOCUMENT }, true)).toEqual({
      client_id: "me",
      client_secret: "s",
      isRegistered: false,
    });
  });
});

it("an authorization server that is known by OpenID alone is found, and one that says that it is another is refused [login-guarded]", async () => {
  const authority = new PlayedAuthority();
  const found = authority.documents[AT] as object;
  const openId = { jwks_uri: `${ISSUER}/jwks`, subject_types_supported: ["public"] };
  const signed = { id_token_signing_alg_values_supported: ["RS256"] };
  authority.documents[AT] = undefined;
  authority.documents[`${ISSUER}/.well-known/openid-configuration`] = { ...found, ...openId, ...signed };
  const { metadata } = await oauth.discover(SERVER, undefined, authority.fetch);
  expect(metadata).toMatchObject({ issuer: ISSUER, token_endpoint: `${ISSUER}/token` });
  Object.assign(authority.documents[`${ISSUER}/.well-known/openid-configuration`] as object, {
    issuer: "https://evil.example",
  });
  await expect(oauth.discover(SERVER, undefined, authority.fetch)).rejects.toThrow(/issuer/i);
});

describe("a server's word on who gives tokens for it", () => {
  const RESOURCE_AT = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";

  it.each(["javascript:alert(1)", "data:text/html,x", "no address"])(
    "is refused where that is %s [login-guarded]",
    async (issuer) => {
      for (const at of [undefined, "https://mcp.example.com/elsewhere.json"]) {
        const authority = new PlayedAuthority();
        authority.documents[RESOURCE_AT] = undefined;
        authority.documents[at ?? RESOURCE_AT] = { resource: SERVER, authorization_servers: [issuer] };
        await expect(oauth.discover(SERVER, at, authority.fetch)).rejects.toThrow(/not what the protocol says/);
      }
    },
  );

  it("is none where a page is there in place of a document: the server itself is asked, as before RFC 9728", async () => {
    const authority = new PlayedAuthority();
    authority.documents[RESOURCE_AT] = undefined;
    const fetch: typeof authority.fetch = async (input, init) =>
      String(input).includes("oauth-protected-resource") ? new Response("<html>") : authority.fetch(input, init);
    expect(await oauth.discover(SERVER, undefined, fetch)).toMatchObject({ url: "https://mcp.example.com/" });
  });
});
