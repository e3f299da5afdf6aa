// Makes what no client should send: JSON-RPC bodies, headers and HTTP that are wrong in many ways, or nearly right.
// Sends nothing.

import type { Random } from "./random.js";

/** A request that an HTTP client can send; `headers` with an empty value are left out. */
export interface Frame {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
}

const METHODS = [
  ...["initialize", "ping", "tools/list", "tools/call", "prompts/get", "prompts/list", "resources/read"],
  ...["resources/list", "resources/templates/list", "resources/subscribe", "resources/unsubscribe"],
  ...["completion/complete", "logging/setLevel", "notifications/initialized", "notifications/cancelled"],
  ...["notifications/progress", "notifications/roots/list_changed", "tasks/get", "server/discover", "rpc.discover"],
  ...["", "__proto__", "constructor", "toString", "tools/call\u0000", "TOOLS/LIST", "\ud800", "x".repeat(5000)],
] as const;

const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2026-07-28", "1", "", "9999-99-99"] as const;

const KEYS = [
  ...["name", "arguments", "uri", "cursor", "level", "requestId", "progressToken", "_meta", "params", "id", "method"],
  ...["__proto__", "constructor", "prototype", "hasOwnProperty", "toString", "", " ", "\u0000", "\ud800", "ï", "💥"],
] as const;

const STRINGS = [
  ...["", "echo", "tools", "file:///", "file:///../../etc/passwd", "data://x", "{x}", "$HOME", "$(id)", "../..", "%00"],
  ...[
    "\u0000",
    "\u2028",
    "\ufeff",
    "\ud800",
    "a\r\nX-Injected: 1",
    "💥".repeat(50),
    "x".repeat(10_000),
    "null",
    "1e999",
  ],
  ...["debug", "emergency", "__proto__", "c.AAAAAAAAAAAA.000000000000000000000000-1", "l.x-1", "*", ">", ".", "/"],
] as const;

const NUMBERS = ["0", "-0", "1", "-1", "1.5", "1e308", "1e999", "-1e999", "9007199254740993", "1E-400", "2147483648"];

/** A JSON text, not always a valid one. */
export function json(random: Random, depth = 0): string {
  const kind = random.int(depth > 4 ? 5 : 9);
  switch (kind) {
    case 0:
      return random.pick(NUMBERS);
    case 1:
      return random.pick(["true", "false", "null"]);
    case 2:
    case 3:
      return JSON.stringify(random.pick(STRINGS));
    case 4:
      return JSON.stringify(random.bytes(random.int(40)).toString("latin1"));
    case 5:
      return `[${Array.from({ length: random.int(5) }, () => json(random, depth + 1)).join(",")}]`;
    default: {
      const members = Array.from(
        { length: random.int(6) },
        () => `${JSON.stringify(random.pick(KEYS))}:${json(random, depth + 1)}`,
      );
      return `{${members.join(random.chance(0.95) ? "," : ", ,")}}`;
    }
  }
}

function id(random: Random): string {
  return random.chance(0.7) ? String(random.int(1000)) : json(random, 4);
}

/** One message: right in most parts, so that it gets past the first check and into the next. */
export function message(random: Random): string {
  const method = random.pick(METHODS);
  const params = random.chance(0.5) ? plausible(random, method) : json(random);
  const members = [
    random.chance(0.95) ? '"jsonrpc":"2.0"' : `"jsonrpc":${json(random, 4)}`,
    random.chance(0.8) ? `"id":${id(random)}` : "",
    random.chance(0.9)
      ? `"${random.pick(["method", "method", "method", "Method", "m\\u0065thod"])}":${JSON.stringify(method)}`
      : "",
    random.chance(0.8) ? `"params":${params}` : "",
    random.chance(0.1) ? `"result":${json(random)}` : "",
    random.chance(0.1) ? `"error":${json(random)}` : "",
    random.chance(0.1) ? `${JSON.stringify(random.pick(KEYS))}:${json(random)}` : "",
    random.chance(0.05) ? `"method":${JSON.stringify(random.pick(METHODS))}` : "",
  ].filter((member) => member !== "");
  if (random.chance(0.3)) members.reverse();
  return `{${members.join(",")}}`;
}

function plausible(random: Random, method: string): string {
  const text = () => JSON.stringify(random.pick(STRINGS));
  switch (method) {
    case "initialize":
      return `{"protocolVersion":${JSON.stringify(random.pick(VERSIONS))},"capabilities":${json(random)},"clientInfo":${json(random)}}`;
    case "tools/call":
      return `{"name":"echo","arguments":${json(random)},"_meta":{"progressToken":${id(random)}}}`;
    case "logging/setLevel":
      return `{"level":${text()}}`;
    case "notifications/cancelled":
      return `{"requestId":${id(random)},"reason":${text()}}`;
    case "completion/complete":
      return `{"ref":{"type":"ref/prompt","name":${text()}},"argument":${json(random)}}`;
    default:
      return `{"uri":${text()},"name":${text()},"cursor":${text()}}`;
  }
}

function body(random: Random): Buffer {
  const roll = random.next();
  if (roll < 0.75) return mutated(random, message(random));
  if (roll < 0.85) {
    const batch = Array.from({ length: random.int(8) }, () => message(random));
    return mutated(random, `[${batch.join(",")}]`);
  }
  if (roll < 0.9) return mutated(random, json(random));
  if (roll < 0.93) {
    const deep = random.int(3000);
    return Buffer.from(`${"[".repeat(deep)}${random.chance(0.5) ? "]".repeat(deep) : ""}`);
  }
  if (roll < 0.97) return random.bytes(random.int(300));
  return Buffer.alloc(0);
}

/** Now and then with bytes changed, cut off, or doubled. */
export function mutated(random: Random, text: string): Buffer {
  const bytes = Buffer.from(text);
  if (random.chance(0.6) || bytes.length === 0) return bytes;
  if (random.chance(0.4)) return bytes.subarray(0, random.int(bytes.length));
  if (random.chance(0.2)) return Buffer.concat([bytes, bytes]);
  for (let n = 1 + random.int(4); n > 0; n--) bytes[random.int(bytes.length)] = random.int(256);
  return bytes;
}

const PATHS = [
  ...["/mcp/echo", "/mcp/none", "/mcp/", "/mcp/%00", "/mcp/%zz", "/mcp/../x", "/mcp/echo/x", "/%6dcp", "/mcp?token=x"],
  ...["/messages?session=x", "/messages", "/", "//", "/healthz", "/readyz"],
] as const;

/** `session`: an id that is good. */
export function frame(random: Random, session: string): Frame {
  const header = (good: string, ...odd: string[]) => (random.chance(0.97) ? good : random.pick(["", ...odd]));
  const lastEventId = () =>
    random.pick([
      "0",
      "",
      "x".repeat(3000),
      `l.${"A".repeat(12)}.${"0".repeat(24)}-1`,
      `c.${"A".repeat(12)}.${"0".repeat(24)}.MQ-${"9".repeat(random.int(20))}`,
      random.bytes(9).toString("base64url"),
    ]);
  const method = random.chance(0.85) ? "POST" : random.pick(["GET", "GET", "GET", "PUT", "HEAD", "OPTIONS", "PATCH"]);
  const headers = {
    "content-type": header("application/json", "text/plain", "application/json; charset=x", "multipart/form-data", ";"),
    accept: header("application/json, text/event-stream", "text/event-stream", "application/json", "*/*;q=0", "x,,;q"),
    "mcp-session-id": header(session, "x", session.slice(0, -2), `${session}AA`, "A".repeat(7000), "null"),
    "mcp-protocol-version": header(random.pick(VERSIONS.slice(0, 3)), ...VERSIONS),
    "last-event-id": method === "GET" && random.chance(0.8) ? lastEventId() : "",
    host: header("127.0.0.1", "evil.example", "127.0.0.1:99999", "[::1]", "a b", "localhost."),
    origin: random.chance(0.97) ? "" : random.pick(["http://evil.example", "null", "http://127.0.0.1", "x"]),
    authorization: random.chance(0.97) ? "" : random.pick(["Bearer", "Bearer x", "Basic eDp4", "Bearer \u00ff"]),
    expect: random.chance(0.99) ? "" : "x",
    "x-odd": random.chance(0.95) ? "" : "y".repeat(random.int(20_000)),
  };
  return {
    method,
    path: random.chance(0.85) ? "/mcp" : random.pick(PATHS),
    headers,
    body: method === "POST" || method === "PUT" ? body(random) : undefined,
  };
}

/** Bytes that no HTTP client would write. */
export function oddHttp(random: Random, session: string): Buffer {
  const text = message(random);
  const line = random.pick([
    "POST /mcp HTTP/1.1",
    "POST /mcp HTTP/1.1",
    "POST /mcp HTTP/1.0",
    "POST /mcp HTTP/9.9",
    "POST  /mcp  HTTP/1.1",
    "post /mcp HTTP/1.1",
    "GET http://evil.example/mcp HTTP/1.1",
    "CONNECT evil.example:443 HTTP/1.1",
    "PRI * HTTP/2.0",
    "GET /mcp",
    "\u0016\u0003\u0001\u0002",
    `GET /${"a".repeat(40_000)} HTTP/1.1`,
  ]);
  const headers = [
    "Host: 127.0.0.1",
    "Content-Type: application/json",
    `Mcp-Session-Id: ${session}`,
    random.pick([
      `Content-Length: ${text.length}`,
      `Content-Length: ${text.length + random.int(10) - 5}`,
      "Content-Length: -1",
      "Content-Length: 1e3",
      "Content-Length: 99999999999999999999",
      `Content-Length: 5\r\nContent-Length: ${text.length}`,
      `Content-Length: ${text.length}\r\nTransfer-Encoding: chunked`,
      "Transfer-Encoding: chunked",
      "Transfer-Encoding: chunked, chunked",
      "Transfer-Encoding : chunked",
      "Transfer-Encoding: gzip",
    ]),
    random.pick([
      "X: 1",
      "X: 1\nY: 2",
      " folded: 1",
      "no colon",
      ": nameless",
      "X:\u0000",
      "X: \u007f\u0080",
      "Upgrade: websocket\r\nConnection: Upgrade",
      "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings",
      "Expect: 100-continue",
      "Connection: close, keep-alive, x",
      Array.from({ length: 3000 }, (_, n) => `H${n}: 1`).join("\r\n"),
      `Cookie: ${"c".repeat(40_000)}`,
    ]),
  ];
  const chunked = random.pick([
    `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`,
    `FFFFFFFFFFFFFFFFF\r\n${text}`,
    `-1\r\n${text}\r\n0\r\n\r\n`,
    `5;ext=${"e".repeat(20_000)}\r\nhello\r\n0\r\n\r\n`,
    "zz\r\n",
    text,
  ]);
  const end = random.pick(["\r\n", "\r\n", "\r\n", "\n", "\r", "\r\r\n"]);
  const whole = `${[line, ...headers].join(end)}${end}${end}${random.chance(0.5) ? chunked : text}`;
  return mutated(random, whole);
}
