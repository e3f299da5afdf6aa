// No limit, but a proof: a target that now and then answers a call with another text. A run with it has to fail.

import { serve, textOf } from "./serve.mjs";

/** Rare enough that a look at samples would miss it. */
const LIE_EVERY = 97;
let calls = 0;

serve((req, res) =>
  textOf(req, (text) => {
    const { id, params } = JSON.parse(text);
    const said = ++calls % LIE_EVERY === 0 ? "something else" : params.arguments.text;
    res.writeHead(200, { "Content-Type": "application/json" });
    res.end(JSON.stringify({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text: said }] } }));
  }),
);
