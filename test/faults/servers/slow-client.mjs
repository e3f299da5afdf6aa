// A client of an executor that reads slowly: node slow-client.mjs <library> <executor's url>
// Takes lines `{"url", "rate"}` on stdin, reads the body no faster than `rate` bytes a second, and prints a line with
// what came: `{"bytes", "sha256", "seconds"}`, or `{"error"}`.

import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const [library, url] = process.argv.slice(2);
const { connectExecutor } = await import(library);
const client = await connectExecutor({ url, token: process.env.TOOLWAY_TOKEN });
const print = (line) => console.log(JSON.stringify(line));

async function read({ url: target, rate }) {
  const begun = performance.now();
  const hash = createHash("sha256");
  let bytes = 0;
  const { body } = await client.requestStream({ method: "GET", url: target, headers: [] });
  for await (const chunk of body) {
    hash.update(chunk);
    bytes += chunk.length;
    const aheadMs = (bytes / rate) * 1000 - (performance.now() - begun);
    if (aheadMs > 5) await sleep(aheadMs);
  }
  return { bytes, sha256: hash.digest("hex"), seconds: (performance.now() - begun) / 1000 };
}

print({ ready: true });
for await (const line of createInterface(process.stdin)) {
  print(await read(JSON.parse(line)).catch((error) => ({ error: error.message })));
}
await client.close();
