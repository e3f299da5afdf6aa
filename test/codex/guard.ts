// Stands before an MCP server and lets in whoever has the token: the server of somebody who is careful.

import { createServer, request as httpRequest } from "node:http";
import { closeHttp, listenOnLoopback } from "../fixtures/loopback.js";

export interface Guard {
  readonly url: string;
  /** How many came without the token. */
  readonly refused: number;
  /** Bodies of those that were let in. */
  readonly passed: readonly string[];
  close(): Promise<void>;
}

export async function startGuard(behind: string, token: string): Promise<Guard> {
  let refused = 0;
  const passed: string[] = [];
  const { port: behindPort } = new URL(behind);
  const server = createServer((request, response) => {
    if (request.headers.authorization !== `Bearer ${token}`) {
      refused++;
      response.writeHead(403).end();
      return;
    }
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => passed.push(Buffer.concat(parts).toString()));
    const { method, url: path, headers } = request;
    const options = { host: "127.0.0.1", port: behindPort, method, path, headers };
    const onward = httpRequest(options, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}${new URL(behind).pathname}`,
    get refused() {
      return refused;
    },
    passed,
    close: () => closeHttp(server),
  };
}
