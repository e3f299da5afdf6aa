// A login as it is kept: who issued it, to which client, and its tokens. Sealed on disk, for one server at one address.

import type { OAuthLogin } from "../contracts/server-spec.js";
import type { SharedMap } from "../contracts/store.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import type { Sealer } from "../runtime/seal.js";
import type { RenewalClaims } from "./renewal-claims.js";

/** An authorization server as it was found. */
export interface Issuer {
  readonly url: string;
  /** What is used of its metadata; undefined for old ones that have none. */
  readonly metadata: JsonObject | undefined;
  /** What it is asked for tokens to. */
  readonly resource: string | undefined;
  /** What the server says that can be asked for. */
  readonly scopes: readonly string[];
}

/** Who we are to it. */
export interface ClientRecord {
  readonly client_id: string;
  readonly client_secret?: string | undefined;
  readonly [key: string]: unknown;
}

export interface TokenSet {
  readonly access: string;
  readonly refresh: string | undefined;
  readonly scopes: readonly string[];
  /** By the wall clock; undefined where nobody said. */
  readonly endsAt: number | undefined;
  readonly lifeMs: number | undefined;
}

export interface Grant {
  readonly issuer: Issuer;
  readonly client: ClientRecord;
  /** Where the browser came back to: a client that was registered is good for that address alone. */
  readonly redirectUri: string;
  readonly tokens: TokenSet;
}

export interface GrantRecord {
  readonly server: string;
  readonly sealed: string;
}

/** The place of one server's login. */
export interface GrantKeeper {
  get(): Grant | undefined;
  /** On disk when it resolves. */
  put(grant: Grant): Promise<void>;
  delete(): Promise<void>;
  /** Rejects where nothing can be kept now: a person does not go through a login for nothing. */
  check(): Promise<void>;
  /**
   * One renewal at a time, of whichever entry: a refresh token that was given anew is good once, and an edit of the config
   * makes a second reader of the same login while the first one's renewal is still under way.
   */
  alone<T>(act: () => Promise<T>): Promise<T>;
  /** Tells that another gateway may have changed it; nothing where there is none. The returned function ends it. */
  watch(changed: () => void): () => void;
}

/** What it takes to keep logins. */
export interface GrantStore {
  readonly map: SharedMap<GrantRecord>;
  readonly vault: Sealer;
  /** Where other gateways have the same logins: who of them renews one. */
  readonly claims?: RenewalClaims | undefined;
}

/** A server is never called that. To delete what is not there is a write like any other, and changes nothing. */
const NO_SERVER = "";

/** Who is at work on each login, by the map that they are kept in. There are no more than servers. */
const turns = new WeakMap<object, Map<string, Promise<unknown>>>();

/** A login for another address or another client is not readable by this one: the entry is another then. */
export function grantKeeper(
  { map, vault, claims }: GrantStore,
  server: string,
  { url, clientId }: { readonly url: string; readonly clientId: OAuthLogin["clientId"] },
): GrantKeeper {
  const purpose = JSON.stringify(["login", server, url, clientId ?? ""]);
  return {
    get() {
      const sealed = map.get(server)?.sealed;
      const found = sealed === undefined ? undefined : vault.unseal(purpose, sealed);
      return isObject(found) ? (found as unknown as Grant) : undefined;
    },
    put: (grant) => map.put(server, { server, sealed: vault.seal(purpose, grant) }),
    delete: () => map.delete(server),
    check: () => map.delete(NO_SERVER),
    alone(act) {
      const ofMap = turns.get(map) ?? new Map<string, Promise<unknown>>();
      turns.set(map, ofMap);
      const held = claims === undefined ? act : () => claims.hold(server, act);
      const turn = (ofMap.get(server) ?? Promise.resolve()).then(held, held);
      ofMap.set(server, turn);
      return turn;
    },
    watch: (changed) =>
      claims === undefined
        ? () => {}
        : map.watch((name) => {
            if (name === server) changed();
          }),
  };
}
