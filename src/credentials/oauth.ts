// OAuth as it is spoken: the SDK's client code with our fetch. It is loaded with the first login or renewal, and nothing
// else imports it by name. It keeps nothing, and takes types alone from the rest: what it shared with the gateway would be
// a file more for each start.

import {
  discoverOAuthServerInfo,
  exchangeAuthorization,
  fetchToken,
  OAuthError,
  refreshAuthorization,
  registerClient,
  selectResourceURL,
  startAuthorization,
} from "@modelcontextprotocol/client";
import { messageOf } from "../runtime/expected-error.js";
import type { AuthFetch } from "./auth-fetch.js";
import type { ClientRecord, Issuer, TokenSet } from "./grant.js";

type Metadata = NonNullable<Awaited<ReturnType<typeof discoverOAuthServerInfo>>["authorizationServerMetadata"]>;

/** What is used of an answer with tokens. The SDK's own type would be in ours, and in the programs that use them. */
interface TokenAnswer {
  readonly access_token: string;
  readonly token_type: string;
  readonly expires_in?: number | undefined;
  readonly refresh_token?: string | undefined;
  readonly scope?: string | undefined;
}

/** What is used of a metadata document; the rest of it is not kept. */
const KEPT_METADATA = [
  "issuer",
  "authorization_endpoint",
  "token_endpoint",
  "registration_endpoint",
  "revocation_endpoint",
  "response_types_supported",
  "code_challenge_methods_supported",
  "token_endpoint_auth_methods_supported",
  "scopes_supported",
  "authorization_response_iss_parameter_supported",
  "client_id_metadata_document_supported",
] as const;

/** Where servers have their metadata (RFC 9728), unless they say otherwise. */
const RESOURCE_METADATA = "/.well-known/oauth-protected-resource";

/** Finds who gives tokens for a server. `metadataUrl` is where the server itself says that its metadata is. */
async function discover(serverUrl: string, metadataUrl: string | undefined, fetch: AuthFetch): Promise<Issuer> {
  const at = metadataUrl === undefined ? undefined : asUrl(metadataUrl);
  let isNamed = false;
  const watched: AuthFetch = async (url, init) => {
    const answer = await fetch(url, init);
    const { href, pathname } = new URL(url);
    if (answer.ok && (href === at?.href || pathname.startsWith(RESOURCE_METADATA))) isNamed ||= await names(answer);
    return answer;
  };
  const info = await discoverOAuthServerInfo(serverUrl, {
    fetchFn: watched,
    ...(at === undefined ? {} : { resourceMetadataUrl: at }),
  });
  const { authorizationServerUrl, authorizationServerMetadata: found, resourceMetadata } = info;
  // The SDK takes a document that it cannot read for none, and the server itself for who gives its tokens.
  if (isNamed && resourceMetadata === undefined) {
    throw new TypeError("The server says who gives tokens for it in a document that is not what the protocol says.");
  }
  // Throws where the document is about another server.
  await selectResourceURL(serverUrl, {} as Parameters<typeof selectResourceURL>[1], resourceMetadata);
  const all = found as Readonly<Record<string, unknown>> | undefined;
  const kept = KEPT_METADATA.filter((key) => all?.[key] !== undefined);
  const metadata = all === undefined ? undefined : Object.fromEntries(kept.map((key) => [key, all[key]]));
  return {
    url: String(authorizationServerUrl),
    metadata,
    resource: resourceMetadata?.resource,
    scopes: resourceMetadata?.scopes_supported ?? [],
  };
}

/** Whether a document says who gives tokens: a page for whatever is not found, as some servers have, is no document. */
async function names(answer: Response): Promise<boolean> {
  const document: unknown = await answer
    .clone()
    .json()
    .catch(() => undefined);
  return typeof document === "object" && document !== null && "authorization_servers" in document;
}

function asUrl(text: string): URL {
  if (!URL.canParse(text)) throw new TypeError("The server names an address for its metadata that is none.");
  return new URL(text);
}

interface ClientIdentity {
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
  readonly clientMetadataUrl: string | undefined;
}

/** Who we are to it: as the config says, by a document of ours where it takes one, else by a registration. */
async function clientFor(
  { url, metadata }: Issuer,
  { clientId, clientSecret, clientMetadataUrl }: ClientIdentity,
  { redirectUri, scopes }: { readonly redirectUri: string; readonly scopes: readonly string[] },
  fetch: AuthFetch,
): Promise<ClientRecord> {
  if (clientId !== undefined) return { client_id: clientId, client_secret: clientSecret };
  if (clientMetadataUrl !== undefined && metadata?.["client_id_metadata_document_supported"] === true) {
    return { client_id: clientMetadataUrl };
  }
  const registered = await registerClient(url, {
    ...sdkMetadata(metadata),
    clientMetadata: {
      client_name: "Toolway",
      redirect_uris: [redirectUri],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
      application_type: "native",
    },
    ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") }),
    fetchFn: fetch,
  });
  return { ...registered };
}

/** The address that a person opens, and what proves later that we sent them there. */
async function authorization(
  { url, metadata, resource }: Issuer,
  client: ClientRecord,
  asked: { readonly redirectUri: string; readonly scopes: readonly string[]; readonly state: string },
): Promise<{ readonly address: string; readonly verifier: string }> {
  const { authorizationUrl, codeVerifier } = await startAuthorization(url, {
    ...sdkMetadata(metadata),
    clientInformation: client,
    redirectUrl: asked.redirectUri,
    state: asked.state,
    ...(asked.scopes.length === 0 ? {} : { scope: asked.scopes.join(" ") }),
    ...(resource === undefined ? {} : { resource }),
  });
  return { address: authorizationUrl.href, verifier: codeVerifier };
}

interface LoginReturn {
  readonly code: string;
  readonly iss: string | undefined;
  readonly verifier: string;
  readonly redirectUri: string;
}

async function exchange(
  { url, metadata, resource }: Issuer,
  client: ClientRecord,
  { code, iss, verifier, redirectUri }: LoginReturn,
  fetch: AuthFetch,
): Promise<TokenAnswer> {
  return exchangeAuthorization(url, {
    ...sdkMetadata(metadata),
    clientInformation: client,
    authorizationCode: code,
    iss,
    codeVerifier: verifier,
    redirectUri,
    ...(resource === undefined ? {} : { resource }),
    fetchFn: fetch,
  } as Parameters<typeof exchangeAuthorization>[1]);
}

async function refresh(
  { url, metadata, resource }: Issuer,
  client: ClientRecord,
  refreshToken: string,
  fetch: AuthFetch,
): Promise<TokenAnswer> {
  return refreshAuthorization(url, {
    ...sdkMetadata(metadata),
    clientInformation: client,
    refreshToken,
    ...(resource === undefined ? {} : { resource }),
    fetchFn: fetch,
  });
}

/** A token by the id and secret of a client, without a person. */
async function byClientCredentials(
  { url, metadata, resource }: Issuer,
  client: ClientRecord,
  scopes: readonly string[],
  fetch: AuthFetch,
): Promise<TokenAnswer> {
  const scope = scopes.length === 0 ? undefined : scopes.join(" ");
  const provider = {
    clientMetadata: { redirect_uris: [] },
    clientInformation: () => client,
    prepareTokenRequest: () =>
      new URLSearchParams({ grant_type: "client_credentials", ...(scope === undefined ? {} : { scope }) }),
  };
  return fetchToken(provider as unknown as Parameters<typeof fetchToken>[0], url, {
    ...sdkMetadata(metadata),
    ...(resource === undefined ? {} : { resource }),
    fetchFn: fetch,
  });
}

/** Tells the authorization server that a token is not used any more (RFC 7009), where it wants to know. */
async function revoke({ metadata }: Issuer, client: ClientRecord, tokens: TokenSet, fetch: AuthFetch) {
  const endpoint = metadata?.["revocation_endpoint"];
  if (typeof endpoint !== "string") return;
  const [token, hint] =
    tokens.refresh === undefined ? [tokens.access, "access_token"] : [tokens.refresh, "refresh_token"];
  const body = new URLSearchParams({ token, token_type_hint: hint, client_id: client.client_id });
  if (client.client_secret !== undefined) body.set("client_secret", client.client_secret);
  await fetch(endpoint, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
    body: body.toString(),
  });
}

/** The authorization server itself said no, and would say so again. */
function isFinal(error: unknown): boolean {
  if (!(error instanceof OAuthError)) return false;
  return ["invalid_grant", "invalid_client", "unauthorized_client"].includes(error.code);
}

/** Its code goes first: descriptions are in any words. */
function complaintOf(error: unknown): string {
  if (error instanceof OAuthError) return error.message === "" ? error.code : `${error.code}: ${error.message}`;
  if (error instanceof Error && error.name === "ZodError") return "its answer is not what the protocol says";
  return messageOf(error);
}

function sdkMetadata(metadata: Issuer["metadata"]): { metadata?: Metadata } {
  return metadata === undefined ? {} : { metadata: metadata as unknown as Metadata };
}

export const oauth = {
  discover,
  clientFor,
  authorization,
  exchange,
  refresh,
  byClientCredentials,
  revoke,
  isFinal,
  complaintOf,
};
