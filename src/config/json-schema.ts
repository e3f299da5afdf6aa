// What is generated from the schema: the JSON Schema that editors use, and the tables of docs/config.md.

import { z } from "zod";
import { fileSchema, OWN_OBJECTS, serverSchema } from "./schema.js";

export function configJsonSchema(): object {
  const { $schema, ...rest } = z.toJSONSchema(fileSchema, { io: "input" });
  return {
    $schema,
    title: "Toolway config",
    description: "The servers behind a Toolway gateway, and how it serves them.",
    ...rest,
  };
}

/** The text of schema/toolway.schema.json. */
export function configJsonSchemaText(): string {
  return `${JSON.stringify(configJsonSchema(), null, 2)}\n`;
}

/** The tables of docs/config.md, by the name in their markers. */
export function keyTables(): Readonly<Record<string, string>> {
  const { mcpServers, servers, ...settings } = fileSchema.shape;
  return {
    servers: table({ mcpServers, servers }),
    entry: table(serverSchema.shape),
    restarts: table(OWN_OBJECTS.restarts),
    backoff: table(OWN_OBJECTS.backoff),
    breaker: table(OWN_OBJECTS.breaker),
    budget: table(OWN_OBJECTS.budget),
    tools: table(OWN_OBJECTS.tools),
    settings: table(settings),
    roles: table(OWN_OBJECTS.roles),
    tls: table(OWN_OBJECTS.tls),
    sessions: table(OWN_OBJECTS.sessions),
    limits: table(OWN_OBJECTS.limits),
    cache: table(OWN_OBJECTS.cache),
    telemetry: table(OWN_OBJECTS.telemetry),
  };
}

/** Puts the tables between their markers, `<!-- keys:NAME -->` and `<!-- /keys -->`. */
export function withKeyTables(markdown: string): string {
  const tables = keyTables();
  return markdown.replace(
    /(<!-- keys:(\w+) -->\n)[\s\S]*?(<!-- \/keys -->)/g,
    (_, open: string, name: string, close: string) => `${open}${tables[name] ?? `no table "${name}"\n`}${close}`,
  );
}

function table(shape: Readonly<Record<string, z.ZodType>>): string {
  const rows = Object.entries(shape).map(([key, schema]) => {
    const json = z.toJSONSchema(schema, { io: "input" });
    const fallback = json.default === undefined || isEmpty(json.default) ? "" : `\`${JSON.stringify(json.default)}\``;
    return `| \`${key}\` | ${typeText(json)} | ${fallback} | ${schema.description ?? ""} |\n`;
  });
  return `| key | type | default | meaning |\n|---|---|---|---|\n${rows.join("")}`;
}

function typeText(json: z.core.JSONSchema.BaseSchema): string {
  if (json.anyOf !== undefined) return json.anyOf.map((choice) => typeText(choice)).join(", ");
  if (json.enum !== undefined) return json.enum.map((word) => `\`${JSON.stringify(word)}\``).join(", ");
  if (json.type === "array") return "list of strings";
  return String(json.type ?? "object");
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
