// A tiny MCP server on stdin and stdout: node stdio.mjs --era legacy|modern [--tools N] [--results]
// Each answer is a write of its own, as with real servers.

import { parseArgs } from "node:util";
import { answering } from "./answers.mjs";

const { values } = parseArgs({
  options: {
    era: { type: "string", default: "legacy" },
    tools: { type: "string", default: "2" },
    results: { type: "boolean", default: false },
  },
});
const answer = answering({ era: values.era, tools: Number(values.tools), results: values.results });

let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
  const text = rest + chunk;
  let start = 0;
  for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
    const pieces = answer(JSON.parse(text.slice(start, end)));
    start = end + 1;
    if (pieces !== undefined) send(pieces);
  }
  rest = text.slice(start);
});
process.stdin.on("end", () => process.exit(0));

function send([head, body]) {
  if (body === undefined) return void process.stdout.write(`${head}\n`);
  process.stdout.write(head);
  process.stdout.write(body);
  process.stdout.write("\n");
}
