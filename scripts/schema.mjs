// Writes what is generated from the config's schema: schema/toolway.schema.json and the tables in docs/config.md.
// Run by `npm run schema`, after a build.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { configJsonSchemaText, withKeyTables } from "../dist/config/json-schema.js";

const root = new URL("../", import.meta.url);
const docs = new URL("docs/config.md", root);

mkdirSync(new URL("schema/", root), { recursive: true });
writeFileSync(new URL("schema/toolway.schema.json", root), configJsonSchemaText());
writeFileSync(docs, withKeyTables(readFileSync(docs, "utf8")));
