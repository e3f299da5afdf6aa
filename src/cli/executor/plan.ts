// What a line of `toolway executor` asks for, checked before anything is started. Knows no sockets; never shows a
// token, nor a URL that might hold one.

import { type ListenAddress, parseListen } from "../../config/config.js";
import { isLoopback } from "../../runtime/addresses.js";
import { usageError } from "../line/errors.js";
import { TOKEN_VARIABLE } from "../text/paste-lines.js";

export interface ExecutorInput {
  readonly listen: string | undefined;
  readonly connect: readonly string[];
  readonly allow: readonly string[];
  readonly noAuth: boolean;
  readonly dryRun: readonly string[];
}

interface Base {
  readonly rules: readonly string[];
}

export interface DryRunPlan extends Base {
  readonly kind: "dry-run";
  readonly urls: readonly string[];
}

export interface ListenPlan extends Base {
  readonly kind: "listen";
  readonly address: ListenAddress;
  /** Undefined where none is asked for. */
  readonly token: string | undefined;
}

export interface ConnectPlan extends Base {
  readonly kind: "connect";
  readonly gateways: readonly string[];
  readonly token: string | undefined;
}

export type RunPlan = ListenPlan | ConnectPlan;

/** As the gateway asks of its own tokens: shorter ones can be guessed. */
const MIN_TOKEN_CHARS = 16;

/** Tokens that can stand in a header. */
const TOKEN_FORM = /^[\x21-\x7e]+$/;

export function planOf(input: ExecutorInput, env: Readonly<Record<string, string | undefined>>): DryRunPlan | RunPlan {
  const { listen, connect, allow: rules, noAuth, dryRun: urls } = input;
  if (rules.length === 0) {
    throw usageError(
      "Without --allow nothing may be reached.",
      "Name what the gateway may use: --allow wiki.internal, --allow '*.corp.example:443', --allow 10.0.0.0/8.",
    );
  }
  if (listen !== undefined && connect.length > 0) {
    throw usageError(
      "--listen and --connect exclude each other: gateways dial the executor, or it dials them.",
      "Start two executors to have both.",
    );
  }
  if (urls.length > 0) return { kind: "dry-run", rules, urls };
  if (listen !== undefined) {
    const address = listenAddress(listen);
    const token = tokenFor(env, noAuth, isLoopback(address.host) ? undefined : address.host, LISTEN_HINT);
    return { kind: "listen", rules, address, token };
  }
  if (connect.length === 0) {
    throw usageError(
      "Who dials whom? --listen or --connect is missing.",
      "--listen ws://127.0.0.1:7430, or --connect wss://gateway.example.com/executors/office.",
    );
  }
  const gateways = connect.map(gatewayUrl);
  const twice = gateways.find((url, i) => gateways.indexOf(url) !== i);
  if (twice !== undefined)
    throw usageError(`--connect ${twice} is given twice.`, "One connection carries all requests.");
  const far = gateways.map((url) => hostOf(new URL(url))).find((host) => !isLoopback(host));
  return { kind: "connect", rules, gateways, token: tokenFor(env, noAuth, far, CONNECT_HINT) };
}

const LISTEN_HINT =
  `Choose one, and give it to the gateway too: export ${TOKEN_VARIABLE}=$(openssl rand -hex 32). ` +
  "On a loopback address --no-auth goes without.";
const CONNECT_HINT =
  `Make one at the gateway: \`toolway token create --id office --role executor\`; then export ${TOKEN_VARIABLE}=… here. ` +
  "--no-auth goes without, with a gateway on this machine that was started so.";

/** `far` is a host that is not this machine, where there is one. */
function tokenFor(
  env: Readonly<Record<string, string | undefined>>,
  noAuth: boolean,
  far: string | undefined,
  hint: string,
): string | undefined {
  if (noAuth) {
    if (far === undefined) return undefined;
    throw usageError(
      `--no-auth is refused with ${far}: anybody who reaches it could use this network.`,
      `Set ${TOKEN_VARIABLE}, and leave --no-auth out.`,
    );
  }
  const token = env[TOKEN_VARIABLE] ?? "";
  if (token === "") throw usageError(`${TOKEN_VARIABLE} is not set.`, hint);
  if (!TOKEN_FORM.test(token)) {
    throw usageError(`${TOKEN_VARIABLE} has a character that no header can carry: a blank, or one beyond ASCII.`);
  }
  if (token.length < MIN_TOKEN_CHARS) {
    throw usageError(`${TOKEN_VARIABLE} is too short: a token has at least ${MIN_TOKEN_CHARS} characters.`);
  }
  return token;
}

function listenAddress(text: string): ListenAddress {
  const example = "For instance ws://127.0.0.1:7430, or ws://[::1]:0 for any free port.";
  if (/^(?:wss|https):/i.test(text)) {
    throw usageError(
      "--listen serves no TLS: a proxy in front of it does, or an SSH tunnel.",
      "Or let it dial the gateway: --connect wss://….",
    );
  }
  const bare = text.replace(/^ws:\/\//i, "").replace(/\/$/, "");
  // A port alone is what many type; it means this machine only.
  const address = parseListen(/^:?\d+$/.test(bare) ? `127.0.0.1:${bare.replace(":", "")}` : bare);
  if (address === undefined) {
    // What is before an @, or in a query, may be a secret.
    const shown = /[@?#]/.test(text) ? "" : ` ${text}`;
    throw usageError(`--listen${shown}: expected ws://HOST:PORT, with a port from 0 to 65535.`, example);
  }
  return address;
}

const SCHEMES: Readonly<Record<string, string>> = { "ws:": "ws:", "wss:": "wss:", "http:": "ws:", "https:": "wss:" };

function gatewayUrl(text: string): string {
  const example = "For instance wss://gateway.example.com/executors/office.";
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (/[@?#]/.test(text)) {
    throw usageError(
      `--connect takes an address without user, query and fragment. The token belongs into ${TOKEN_VARIABLE}.`,
      example,
    );
  }
  const scheme = url === undefined ? undefined : SCHEMES[url.protocol];
  if (url === undefined || scheme === undefined || url.hostname === "") {
    throw usageError(`--connect ${text}: expected wss:// (or ws://), a host and a path.`, example);
  }
  // A proxy may put something before it.
  if (!/\/executors\/[^/]+$/.test(url.pathname)) {
    throw usageError(
      `--connect ${text}: the path names no executor.`,
      "It ends with /executors/NAME, where NAME is a key of `executors` in the gateway's config.",
    );
  }
  return `${scheme}//${url.host}${url.pathname}`;
}

export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}
