// What a server says of the credential that it wants: its `WWW-Authenticate` (RFC 6750, RFC 9728). Pure.

export interface Challenge {
  /** Where its metadata is. */
  readonly metadataUrl: string | undefined;
  readonly scopes: readonly string[];
  /** The token is good, and does not allow this. */
  readonly isScopeMissing: boolean;
}

/** Scopes and addresses are short; what is longer is cut, and then does not fit. */
const MAX_CHALLENGE_CHARS = 8 * 1024;
/** So many scopes are asked for at a login at most. */
export const MAX_SCOPES = 200;

export function readChallenge(header: string | undefined): Challenge {
  const text = (header ?? "").slice(0, MAX_CHALLENGE_CHARS);
  const field = (name: string): string | undefined => {
    const [, quoted, bare] = new RegExp(`(?:^|[\\s,])${name}\\s*=\\s*(?:"([^"]*)"|([^\\s,"]+))`, "i").exec(text) ?? [];
    return quoted ?? bare;
  };
  return {
    metadataUrl: field("resource_metadata"),
    scopes: scopesIn(field("scope")),
    isScopeMissing: field("error") === "insufficient_scope",
  };
}

export function scopesIn(scope: string | undefined): string[] {
  return (scope ?? "").split(" ").filter(Boolean).slice(0, MAX_SCOPES);
}

/** All that is in either, in the order in which it came. */
export function joined(one: readonly string[], other: readonly string[]): string[] {
  return [...new Set([...one, ...other])].slice(0, MAX_SCOPES);
}
