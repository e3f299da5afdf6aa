// The page's way to its gateway: trades the code of the link for a secret, keeps it for this browser session, shares it
// with further tabs, and sends it to nobody: what it sends is a key that is made of it, which only the gateway that has shown
// to know the secret takes, until that one ends. Knows nothing of what the page shows.

/** Kept under the origin, which has the port: another gateway's page has another. */
const KEPT = "toolway";
/** Another tab answers at once, or there is none. */
const OTHER_TAB_MS = 300;

export interface Session {
  readonly id: string;
  readonly secret: string;
  readonly power: "viewer" | "operator";
}

/** The gateway refused, with a reason for people. `ended`: the session is over. */
export class RequestRefused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }

  get ended(): boolean {
    return this.status === 401;
  }
}

/** Somebody else listens where our gateway did. */
export class NotTheGateway extends Error {}

let session: Session | undefined;
/** For who listens there and has shown that it knows our secret; undefined since the last connection was lost. */
let key: string | undefined;
/** How many connections were lost: a proof of before is none. */
let losses = 0;

export function forgetProof(): void {
  key = undefined;
  losses++;
}

/** Undefined where nobody has a session: a link is needed then. */
export async function enter(): Promise<Session | undefined> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code !== null) {
    // It is used up by the first look at it, and stays in no history.
    history.replaceState(null, "", location.pathname + location.search);
    session = (await ask("/api/session", { method: "POST", body: JSON.stringify({ code }) })) as Session;
  } else session = kept() ?? (await fromOtherTab());
  if (session === undefined) return undefined;
  sessionStorage.setItem(KEPT, JSON.stringify(session));
  shareWithTabs(session);
  return session;
}

export function leave(): void {
  sessionStorage.removeItem(KEPT);
  session = undefined;
}

function kept(): Session | undefined {
  const text = sessionStorage.getItem(KEPT);
  return text === null ? undefined : (JSON.parse(text) as Session);
}

function fromOtherTab(): Promise<Session | undefined> {
  return new Promise((done) => {
    const channel = new BroadcastChannel(KEPT);
    const end = (found: Session | undefined) => {
      channel.close();
      done(found);
    };
    channel.onmessage = ({ data }) => {
      if (data?.session !== undefined) end(data.session as Session);
    };
    channel.postMessage({ wanted: true });
    setTimeout(() => end(undefined), OTHER_TAB_MS);
  });
}

function shareWithTabs(own: Session): void {
  const channel = new BroadcastChannel(KEPT);
  channel.onmessage = ({ data }) => {
    if (data?.wanted === true) channel.postMessage({ session: own });
  };
}

/** One request of the session's. Rejects with a RequestRefused, a NotTheGateway, or what the browser says of the network. */
export async function call<T>(method: "GET" | "POST" | "DELETE", path: string, body?: unknown): Promise<T> {
  return (await ask(`/api${path}`, {
    method,
    headers: await secretHeaders(),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })) as T;
}

/** The lines of the stream, as they come. Ends where the connection does. */
export async function* feed(signal: AbortSignal): AsyncGenerator<unknown> {
  yield* linesOf(await fetch("/api/feed", { headers: await secretHeaders(signal), signal, cache: "no-store" }));
}

/** The same of a list that comes in lines. */
export async function* lines(path: string, signal: AbortSignal): AsyncGenerator<unknown> {
  yield* linesOf(await fetch(`/api${path}`, { headers: await secretHeaders(), signal, cache: "no-store" }));
}

/** The same of an act that takes its time. Whoever fires the signal takes it back. */
export async function* stream(path: string, body: unknown, signal: AbortSignal): AsyncGenerator<unknown> {
  const headers = { ...(await secretHeaders()), ...JSON_BODY };
  yield* linesOf(
    await fetch(`/api${path}`, { method: "POST", body: JSON.stringify(body), headers, signal, cache: "no-store" }),
  );
}

async function* linesOf(answer: Response): AsyncGenerator<unknown> {
  if (!answer.ok || answer.body === null) throw await refusedBy(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield JSON.parse(line);
  }
}

async function secretHeaders(signal?: AbortSignal): Promise<Record<string, string>> {
  if (session === undefined) throw new RequestRefused(401, "There is no session.");
  return { Authorization: `Bearer ${key ?? (await demandProof(session, signal))}` };
}

/** Another program may have taken the port of a gateway that stopped: it is asked for what only the gateway can know. */
async function demandProof({ id, secret }: Session, signal: AbortSignal | null = null): Promise<string> {
  const before = losses;
  const nonce = base64url(crypto.getRandomValues(new Uint8Array(24)));
  const answer = (await ask("/api/proof", { method: "POST", body: JSON.stringify({ id, nonce }), signal })) as {
    readonly proof?: unknown;
    readonly start?: unknown;
  };
  const text = new TextEncoder();
  const hash = base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", text.encode(secret))));
  const hmac = { name: "HMAC", hash: "SHA-256" };
  const known = await crypto.subtle.importKey("raw", text.encode(hash), hmac, false, ["sign"]);
  const made = async (of: string) =>
    base64url(new Uint8Array(await crypto.subtle.sign("HMAC", known, text.encode(of))));
  if (answer.proof !== (await made(`toolway-door:${nonce}`))) {
    throw new NotTheGateway("Another program listens where the gateway did.");
  }
  const own = await made(`toolway-door-key:${String(answer.start)}`);
  if (before === losses) key = own;
  return own;
}

async function ask(path: string, init: RequestInit): Promise<unknown> {
  const headers = { ...(init.headers as Record<string, string>), ...(init.body === undefined ? {} : JSON_BODY) };
  const answer = await fetch(path, { ...init, headers, cache: "no-store" });
  if (!answer.ok) throw await refusedBy(answer);
  return answer.status === 204 ? undefined : answer.json();
}

const JSON_BODY = { "Content-Type": "application/json" };

async function refusedBy(answer: Response): Promise<Error> {
  const body = (await answer.json().catch(() => undefined)) as { error?: { message?: unknown } } | undefined;
  const message = body?.error?.message;
  // What is no answer of ours comes from somebody else.
  if (typeof message !== "string") return new NotTheGateway(`The answer was ${answer.status}, and none of Toolway's.`);
  return new RequestRefused(answer.status, message);
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
