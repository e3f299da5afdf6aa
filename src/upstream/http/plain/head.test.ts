import { expect, it } from "vitest";
import { PlainHeads } from "./head.js";

const read = (text: string) => {
  const bytes = Buffer.from(text, "latin1");
  return new PlainHeads().read(bytes, bytes.length);
};
const OK = "HTTP/1.1 200 OK\r\n";

it("reads a head with a length, and one in chunks", () => {
  const text = `${OK}Content-Type: application/json \r\nContent-Length:12\r\nKeep-Alive: timeout=5\r\n\r\n`;
  expect(read(`${text}{"jsonrpc":1`)).toEqual({
    status: 200,
    headers: { "content-type": "application/json", "content-length": "12", "keep-alive": "timeout=5" },
    end: text.length,
    length: 12,
    keepAliveMs: 5000,
  });
  expect(read(`${OK}transfer-encoding: chunked\r\nconnection: Keep-Alive\r\n\r\n`)?.length).toBeUndefined();
  expect(read("HTTP/1.1 404\r\ncontent-length: 0\r\n\r\n")?.status).toBe(404);
});

it("says of a repeated head what it said, and of any other what that one says", () => {
  const heads = new PlainHeads();
  const ask = (text: string) => heads.read(Buffer.from(text), text.length);
  const first = ask(`${OK}content-length: 2\r\n\r\n{}`);
  expect(ask(`${OK}content-length: 2\r\n\r\n[]`)).toBe(first);
  expect(ask(`${OK}content-length: 3\r\n\r\n[1]`)?.length).toBe(3);
  expect(ask(`${OK}content-length: 2\r\nx: y\r\n\r\n[]`)?.headers).toHaveProperty("x", "y");
  expect(ask(`${OK}content-length: 2\r\n\r`)).toBeUndefined();
});

it("gives headers that nobody can change, since all answers with this head share them", () => {
  expect(Object.isFrozen(read(`${OK}content-length: 2\r\n\r\n{}`)?.headers)).toBe(true);
});

it.each([
  ["that has not ended", `${OK}content-length: 1\r\n`],
  ["without framing", `${OK}content-type: application/json\r\n\r\n`],
  ["without headers", `${OK}\r\n`],
  ["with two lengths", `${OK}content-length: 1\r\ncontent-length: 1\r\n\r\n`],
  ["with a length and chunks", `${OK}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`],
  ["with two codings", `${OK}transfer-encoding: gzip, chunked\r\n\r\n`],
  ["with a sign before the length", `${OK}content-length: +1\r\n\r\n`],
  ["with a list of lengths", `${OK}content-length: 1, 1\r\n\r\n`],
  ["with a length that no number holds", `${OK}content-length: 9007199254740993\r\n\r\n`],
  ["with a header twice", `${OK}content-length: 1\r\nx: 1\r\nX: 2\r\n\r\n`],
  ["with a folded line", `${OK}x: 1\r\n 2\r\ncontent-length: 1\r\n\r\n`],
  ["with a bare LF", `${OK}x: 1\ncontent-length: 1\r\n\r\n`],
  ["with a bare CR", `${OK}x: 1\rcontent-length: 2\r\ncontent-length: 1\r\n\r\n`],
  ["with a space before a colon", `${OK}content-length : 1\r\n\r\n`],
  ["with a control character", `${OK}x: \u0000\r\ncontent-length: 1\r\n\r\n`],
  ["that is not ASCII", `${OK}x: \u00e9\r\ncontent-length: 1\r\n\r\n`],
  ["on a connection that closes", `${OK}connection: close\r\ncontent-length: 1\r\n\r\n`],
  ["that upgrades", `${OK}upgrade: h2c\r\ncontent-length: 1\r\n\r\n`],
  ["of HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\n"],
  ["that only goes before another", "HTTP/1.1 100 Continue\r\nx: 1\r\n\r\n"],
  ["of a redirect", "HTTP/1.1 307 Elsewhere\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n"],
  ["of an answer without a body", "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n"],
  ["of four digits", "HTTP/1.1 2000 OK\r\ncontent-length: 1\r\n\r\n"],
  ["that is too long", `${OK}x: ${"y".repeat(5000)}\r\ncontent-length: 1\r\n\r\n`],
  ["of another protocol", "SSH-2.0-OpenSSH\r\n\r\n"],
  ["with the name of every object's own", `${OK}__proto__: 1\r\ncontent-length: 1\r\n\r\n`],
])("leaves a head %s to a full client", (_name, text) => {
  expect(read(text)).toBeUndefined();
});
