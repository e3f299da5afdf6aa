// The limit for calls over HTTP: node:http, a keep-alive agent, bodies piped both ways, nothing read.
// node pass-through.mjs <url>

import { Agent, request } from "node:http";
import { serve } from "./serve.mjs";

const { hostname, port, pathname } = new URL(process.argv[2]);
const agent = new Agent({ keepAlive: true });

serve((req, res) => {
  const { method, headers } = req;
  const out = request({ agent, hostname, port, path: pathname, method, headers }, (reply) => {
    res.writeHead(reply.statusCode, reply.headers);
    reply.pipe(res);
  });
  out.on("error", () => res.destroy());
  req.pipe(out);
});
