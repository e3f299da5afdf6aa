// The page's files: read once when the door first opens, compressed at the build, and answered from memory. No path of
// a request is one of the disk's.

import { readdirSync, readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";

interface PageFile {
  readonly type: string;
  readonly plain: Buffer;
  readonly brotli: Buffer | undefined;
  readonly gzip: Buffer | undefined;
}

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

export class PageFiles {
  readonly #files = new Map<string, PageFile>();

  /** `folder` is what the build made of the page. Throws where it is not there. */
  constructor(folder: string) {
    const names = new Set(readdirSync(folder));
    const read = (name: string) => (names.has(name) ? readFileSync(join(folder, name)) : undefined);
    for (const name of names) {
      const type = TYPES[name.slice(name.lastIndexOf(".") + 1)];
      if (type === undefined) continue;
      const file = {
        type,
        plain: readFileSync(join(folder, name)),
        brotli: read(`${name}.br`),
        gzip: read(`${name}.gz`),
      };
      this.#files.set(name === "index.html" ? "/" : `/${name}`, file);
    }
  }

  /** Views have addresses of their own, which all are the page: `/tools/fs.read` too. Files are at the root alone. */
  answer(path: string, request: IncomingMessage, response: ServerResponse): void {
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.writeHead(405, { Allow: "GET, HEAD", Connection: "close" }).end();
      return;
    }
    const file =
      this.#files.get(path) ?? (/^\/[^/]*[.%]/.test(path) || !path.startsWith("/") ? undefined : this.#files.get("/"));
    if (file === undefined) {
      response.writeHead(404, { "Content-Type": "text/plain" }).end("There is nothing here.");
      return;
    }
    const takes = String(request.headers["accept-encoding"] ?? "");
    const [body, encoding] =
      file.brotli !== undefined && /\bbr\b/.test(takes)
        ? [file.brotli, "br"]
        : file.gzip !== undefined && /\bgzip\b/.test(takes)
          ? [file.gzip, "gzip"]
          : [file.plain, undefined];
    response.writeHead(200, {
      "Content-Type": file.type,
      "Content-Length": body.length,
      // Another version of the program may answer here next.
      "Cache-Control": "no-cache",
      Vary: "Accept-Encoding",
      ...(encoding === undefined ? {} : { "Content-Encoding": encoding }),
    });
    response.end(request.method === "HEAD" ? undefined : body);
  }
}
