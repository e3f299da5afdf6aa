// What is generated from the config's form: the JSON Schema that editors use, and the tables of docs/config.md.

import { engineAuthForm, engineForm, engineTlsForm } from "./engine.js";
import type { AnyForm, Fields, Shape } from "./form.js";
import { fileForm, OWN_OBJECTS, serverForm, toolOutbox } from "./schema.js";

type Json = Readonly<Record<string, unknown>>;

function configJsonSchema(): Json {
  const shared: Record<string, Json> = {};
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Toolway config",
    description: "The servers behind a Toolway gateway, and how it serves them.",
    ...schemaOf(fileForm, shared),
    $defs: shared,
  };
}

/** The text of schema/toolway.schema.json. */
export function configJsonSchemaText(): string {
  return `${JSON.stringify(configJsonSchema(), null, 2)}\n`;
}

/** `shared` gathers the objects that have a name of their own. */
function schemaOf(form: AnyForm, shared: Record<string, Json>): Json {
  const { meaning, fallback, shape } = form;
  return {
    ...(meaning === undefined ? {} : { description: meaning }),
    ...(fallback === undefined ? {} : { default: fallback }),
    ...shapeSchema(shape, shared),
  };
}

function shapeSchema(shape: Shape, shared: Record<string, Json>): Json {
  switch (shape.kind) {
    case "text": {
      const { min, max } = shape;
      return {
        type: "string",
        ...(min > 0 ? { minLength: min } : {}),
        ...(Number.isFinite(max) ? { maxLength: max } : {}),
      };
    }
    case "whole":
      return { type: "integer", minimum: shape.min, maximum: shape.max };
    case "flag":
      return { type: "boolean" };
    case "flagOr":
      return { anyOf: [{ type: "boolean" }, schemaOf(shape.of, shared)] };
    case "either":
      return { anyOf: [schemaOf(shape.first, shared), schemaOf(shape.of, shared)] };
    case "anyObject":
      return { type: "object" };
    case "word": {
      const word = { type: "string", enum: shape.words };
      return shape.or === undefined ? word : { anyOf: [word, { type: shape.or }] };
    }
    case "scalar":
      return { type: shape.types };
    case "list":
      return { type: "array", items: schemaOf(shape.of, shared) };
    case "record":
      return { type: "object", additionalProperties: schemaOf(shape.of, shared) };
    case "object": {
      const { id } = shape;
      if (id === undefined) return objectSchema(shape, shared);
      shared[id] ??= objectSchema(shape, shared);
      return { $ref: `#/$defs/${id}` };
    }
  }
}

function objectSchema({ fields, strict }: Extract<Shape, { kind: "object" }>, shared: Record<string, Json>): Json {
  const entries = Object.entries(fields);
  const required = entries.filter(([, form]) => !form.isOptional).map(([key]) => key);
  return {
    type: "object",
    properties: Object.fromEntries(entries.map(([key, form]) => [key, schemaOf(form, shared)])),
    ...(required.length === 0 ? {} : { required }),
    ...(strict ? { additionalProperties: false } : {}),
  };
}

/** The tables of docs/config.md, by the name in their markers. */
export function keyTables(): Readonly<Record<string, string>> {
  const { mcpServers, servers, ...settings } = fileForm.fields;
  return {
    servers: table({ mcpServers, servers }),
    entry: table(serverForm.fields),
    restarts: table(OWN_OBJECTS.restarts),
    backoff: table(OWN_OBJECTS.backoff),
    breaker: table(OWN_OBJECTS.breaker),
    budget: table(OWN_OBJECTS.budget),
    bearer: table(OWN_OBJECTS.bearer),
    oauth: table(OWN_OBJECTS.oauth),
    clientCredentials: table(OWN_OBJECTS.clientCredentials),
    tools: table(OWN_OBJECTS.tools),
    toolOutbox: table(toolOutbox.fields),
    confirm: table(OWN_OBJECTS.confirm),
    settings: table(settings),
    executors: table(OWN_OBJECTS.executors),
    engine: table(engineForm.fields),
    engineAuth: table(engineAuthForm.fields),
    engineTls: table(engineTlsForm.fields),
    admin: table(OWN_OBJECTS.admin),
    roles: table(OWN_OBJECTS.roles),
    menus: table(OWN_OBJECTS.menus),
    tls: table(OWN_OBJECTS.tls),
    sessions: table(OWN_OBJECTS.sessions),
    limits: table(OWN_OBJECTS.limits),
    cache: table(OWN_OBJECTS.cache),
    outbox: table(OWN_OBJECTS.outbox),
    telemetry: table(OWN_OBJECTS.telemetry),
    audit: table(OWN_OBJECTS.audit),
    log: table(OWN_OBJECTS.log),
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

function table(fields: Fields): string {
  const rows = Object.entries(fields).map(([key, { shape, fallback, meaning }]) => {
    const standsIn = fallback === undefined || isEmpty(fallback) ? "" : `\`${JSON.stringify(fallback)}\``;
    return `| \`${key}\` | ${typeText(shape)} | ${standsIn} | ${meaning ?? ""} |\n`;
  });
  return `| key | type | default | meaning |\n|---|---|---|---|\n${rows.join("")}`;
}

function typeText(shape: Shape): string {
  if (shape.kind === "word") {
    const words = shape.words.map((word) => `\`${JSON.stringify(word)}\``);
    return [...words, ...(shape.or === undefined ? [] : [shape.or])].join(", ");
  }
  if (shape.kind === "list") return shape.of.shape.kind === "object" ? "list of objects" : "list of strings";
  if (shape.kind === "flagOr") return "boolean, object";
  if (shape.kind === "either") return `${typeText(shape.first.shape)}, object`;
  if (shape.kind === "scalar" && !shape.types.includes("null")) return shape.types.join(", ");
  return {
    text: "string",
    whole: "integer",
    flag: "boolean",
    scalar: "object",
    record: "object",
    object: "object",
    anyObject: "object",
  }[shape.kind];
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
