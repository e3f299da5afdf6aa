// Prints the tokens of the full menu and of the search menu for 20 servers with 25 tools each, and what searching
// itself costs. Run it as `npm run menu-tokens`, after a build. The tools are made up, in the size of real ones.

import { Catalog } from "../dist/catalog/catalog.js";
import { findResult } from "../dist/catalog/search.js";

const SERVERS = {
  github: ["repository", "issue", "pull request", "branch", "release"],
  gitlab: ["project", "merge request", "pipeline", "runner", "milestone"],
  jira: ["ticket", "sprint", "board", "epic", "worklog"],
  linear: ["task", "cycle", "team", "roadmap", "label"],
  slack: ["message", "channel", "thread", "reaction", "user group"],
  gmail: ["mail", "draft", "mail label", "attachment", "filter"],
  calendar: ["event", "invitation", "free slot", "reminder", "room"],
  drive: ["document", "folder", "permission", "comment", "revision"],
  notion: ["page", "database", "block", "workspace member", "template"],
  postgres: ["table", "query", "index", "schema", "database role"],
  redis: ["key", "stream", "sorted set", "consumer group", "snapshot"],
  s3: ["bucket", "object", "upload", "lifecycle rule", "access policy"],
  kubernetes: ["pod", "deployment", "service", "config map", "job"],
  docker: ["container", "image", "volume", "network", "compose project"],
  sentry: ["error group", "error event", "alert rule", "deploy", "source map"],
  grafana: ["dashboard", "panel", "data source", "silence", "annotation"],
  stripe: ["customer", "invoice", "subscription", "payout", "refund"],
  browser: ["tab", "screenshot", "form", "cookie", "download"],
  filesystem: ["file", "directory", "symbolic link", "archive", "watch"],
  weather: ["forecast", "station", "weather warning", "radar image", "observation"],
};

const ACTIONS = {
  list: {
    text: (thing) =>
      `Lists every ${thing} that the account can see, newest first. Use the cursor of the answer to get the next ` +
      `page. Prefer searching when you know a part of the name.`,
    parameters: ["filter", "sort", "page_size", "cursor"],
  },
  search: {
    text: (thing) =>
      `Searches for a ${thing} by words in its name, text and labels. Supports quotes, AND, OR and a leading minus. ` +
      `Returns short entries with an id; read one by its id for all details.`,
    parameters: ["query", "page_size", "cursor"],
  },
  get: {
    text: (thing) =>
      `Returns one ${thing} by its id with all of its fields, its owner and the time of its last change.`,
    parameters: ["id", "fields"],
  },
  create: {
    text: (thing) =>
      `Creates a new ${thing} and returns it with its id. The name must be unique where it is created. Fails when ` +
      `the account has no right to write there.`,
    parameters: ["name", "description", "labels", "assignees", "parent_id"],
  },
  update: {
    text: (thing) =>
      `Changes fields of an existing ${thing}; fields that are not given stay as they are. Pass the revision that ` +
      `you have read to be told when somebody else was faster.`,
    parameters: ["id", "name", "description", "labels", "revision"],
  },
};

const PARAMETERS = {
  filter: { type: "string", description: "Shows only entries whose fields match, such as `state:open owner:me`." },
  sort: { type: "string", enum: ["created", "updated", "name"], description: "The order of the entries." },
  page_size: { type: "integer", minimum: 1, maximum: 100, default: 20, description: "Entries in a page." },
  cursor: { type: "string", description: "The cursor of the page before." },
  query: { type: "string", description: "What to look for." },
  id: { type: "string", description: "The id, as a list or search has given it." },
  fields: { type: "array", items: { type: "string" }, description: "Only these fields; all when left out." },
  name: { type: "string", minLength: 1, maxLength: 200, description: "The name that people see." },
  description: { type: "string", description: "A longer text, in Markdown." },
  labels: { type: "array", items: { type: "string" }, description: "Labels, by name; missing ones are created." },
  assignees: { type: "array", items: { type: "string" }, description: "Ids of the people in charge." },
  parent_id: { type: "string", description: "Where to create it; the root when left out." },
  revision: { type: "integer", description: "The revision that was read." },
};

function toolsOf(things) {
  return things.flatMap((thing) =>
    Object.entries(ACTIONS).map(([action, { text, parameters }]) => {
      const value = {
        name: `${action}_${thing.replaceAll(" ", "_")}`,
        description: text(thing),
        inputSchema: {
          type: "object",
          properties: Object.fromEntries(parameters.map((name) => [name, PARAMETERS[name]])),
          required: parameters.slice(0, 1),
        },
        annotations: { readOnlyHint: action !== "create" && action !== "update" },
      };
      return { json: JSON.stringify(value), value };
    }),
  );
}

function catalogOf(menu) {
  const catalog = new Catalog({ names: "prefixed", menu, seal: (text) => text, unseal: (text) => text });
  catalog.setServers(Object.keys(SERVERS).map((name) => ({ name })));
  for (const [server, things] of Object.entries(SERVERS)) catalog.setList(server, "tools", toolsOf(things));
  return catalog;
}

async function counter() {
  try {
    const { encode } = await import("gpt-tokenizer");
    return { by: "gpt-tokenizer", count: (text) => encode(text).length };
  } catch {
    return {
      by: "a guess, bytes / 4 (gpt-tokenizer is not installed)",
      count: (text) => Math.ceil(Buffer.byteLength(text) / 4),
    };
  }
}

const view = { scope: undefined, key: "all", allows: () => true };
const listText = (catalog) => JSON.stringify(JSON.parse(catalog.page("tools", view).bytes.toString()).result.tools);

const { by, count } = await counter();
const search = catalogOf("search");
const full = count(listText(catalogOf("full")));
/** As src/gateway/door/tool-lines.ts has it: four characters of name, description and parameters are a token. */
const estimated = JSON.parse(listText(catalogOf("full"))).reduce(
  (sum, { name, description, inputSchema }) =>
    sum + Math.ceil((name.length + description.length + JSON.stringify(inputSchema).length) / 4),
  0,
);
const small = count(listText(search));

const queries = ["create an issue", "search mail", "list pods", "update invoice", "weather forecast for a city"];
let answers = 0;
for (const query of queries) answers += count(findResult(await search.find(query, 5, view)).content[0].text);
const answer = Math.round(answers / queries.length);

const tools = Object.values(SERVERS).reduce((sum, things) => sum + things.length * Object.keys(ACTIONS).length, 0);
const row = (label, value) => `${label.padEnd(52)}${String(value).padStart(9)}\n`;
process.stdout.write(
  `Tokens of ${Object.keys(SERVERS).length} servers with ${tools} tools, counted by ${by}:\n\n` +
    row("full menu", full) +
    row("full menu, as the operator's page estimates it", estimated) +
    row("search menu (find_tools, call_tool)", small) +
    row("an answer of find_tools (5 tools), on average", answer) +
    row("searches after which the full menu would be smaller", Math.floor((full - small) / answer)) +
    "\nA menu stands in every request of a conversation, but providers cache it; an answer stands in every request\n" +
    "after it, and each search is one more round trip. Search pays with many tools of which few are used.\n",
);
