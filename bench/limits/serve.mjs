// What the bare limits have in common with any server: a port, and an end. Not a limit by itself.

import { createServer } from "node:http";

/**
 * Listens on `--port` (or any free one), prints it as one line of JSON, and ends when stdin does.
 * @param {import("node:http").RequestListener} listener
 */
export function serve(listener) {
  const server = createServer(listener);
  const at = process.argv.indexOf("--port");
  const port = at < 0 ? 0 : Number(process.argv[at + 1]);
  server.listen(port, "127.0.0.1", () => console.log(JSON.stringify({ port: server.address().port })));
  process.stdin.on("end", () => process.exit(0)).resume();
}

/** The whole body of a request or a response, as text. */
export function textOf(stream, done) {
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk) => {
    text += chunk;
  });
  stream.on("end", () => done(text));
}
