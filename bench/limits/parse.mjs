// What a proxy costs that parses and serialises each message both ways, and does nothing else.
// node parse.mjs <url>

import { Agent, request } from "node:http";
import { serve, textOf } from "./serve.mjs";

const { hostname, port, pathname } = new URL(process.argv[2]);
const agent = new Agent({ keepAlive: true });

serve((req, res) =>
  textOf(req, (text) => {
    const body = Buffer.from(JSON.stringify(JSON.parse(text)));
    const headers = { ...req.headers, "content-length": body.length };
    const out = request({ agent, hostname, port, path: pathname, method: req.method, headers }, (reply) => {
      textOf(reply, (answer) => {
        const again = Buffer.from(reserialised(answer, reply.headers["content-type"]));
        res.writeHead(reply.statusCode, {
          "Content-Type": reply.headers["content-type"],
          "Content-Length": again.length,
        });
        res.end(again);
      });
    });
    out.on("error", () => res.destroy());
    out.end(body);
  }),
);

function reserialised(text, type) {
  if (!type?.startsWith("text/event-stream")) return JSON.stringify(JSON.parse(text));
  const data = text.slice(text.indexOf("data: ") + 6, text.indexOf("\n\n"));
  return `event: message\ndata: ${JSON.stringify(JSON.parse(data))}\n\n`;
}
