// HTTP in a network that this program cannot reach, through an executor there:
//   TOOLWAY_TOKEN=… toolway executor --listen ws://127.0.0.1:7430 --allow wiki.internal
//   TOOLWAY_TOKEN=… node fetch.js ws://127.0.0.1:7430 http://wiki.internal/

import { pipeline } from "node:stream/promises";
import { connectExecutor, ExecutorError } from "toolway";

async function main(url = "ws://127.0.0.1:7430", page = "http://wiki.internal/"): Promise<void> {
  const executor = await connectExecutor({ url, token: process.env["TOOLWAY_TOKEN"] });
  try {
    // For code that takes a fetch.
    const response = await executor.fetch(page, { signal: AbortSignal.timeout(10_000) });
    process.stdout.write(`${response.status} ${response.headers.get("content-type")}\n`);

    // Larger than memory should be: what is not read is not sent either, and a cut of the connection is not seen.
    const { body } = await executor.requestStream({ method: "GET", url: page, headers: [] });
    await pipeline(body, process.stdout, { end: false });
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof ExecutorError ? error.cause : error;
    if (!(cause instanceof ExecutorError)) throw error;
    const seen = cause.sent ? "the server may have seen the request" : "the server has seen nothing of it";
    process.stderr.write(`${cause.code}: ${cause.message} (${seen})\n`);
  } finally {
    await executor.close();
  }
}

await main(...process.argv.slice(2));
