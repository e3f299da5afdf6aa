import { AjvJsonSchemaValidator as ClientAjv } from "@modelcontextprotocol/client/validators/ajv";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { type Random, seeded } from "../../../test/faults/random.js";
import { RECEIPT_SCHEMA } from "../../catalog/receipt-menu.js";
import { widenOutput } from "./widen-output.js";

type Json = Record<string, unknown>;

const RECEIPT: Json = {
  queued: true,
  receipt: "0123456789abcdef0123456789abcdef",
  state: "queued",
  server: "tracker",
  tool: "create_issue",
  idempotencyKey: "k",
  position: 2,
  since: "2026-01-01T00:00:00.000Z",
  why: "It is away.",
  note: "Queued, not done yet.",
  ask: { tool: "toolway__receipt", arguments: { id: "0" } },
};

/** Compiling takes ten seconds for a thousand. */
const SCHEMAS = histories(60, 1_000);

type Check = (value: unknown) => boolean;

/** Each as a client makes it, once for each schema. */
const VALIDATORS: Readonly<Record<string, (schema: Json) => Check>> = {
  ajv: (schema) => {
    const check = new Ajv2020({ strict: false, validateSchema: false }).compile(schema);
    return (value) => check(value);
  },
  "the SDK of version 1": (schema) => {
    const check = new AjvJsonSchemaValidator().getValidator(schema as never);
    return (value) => check(value).valid;
  },
  "the SDK of version 2": (schema) => {
    const check = new ClientAjv().getValidator(schema as never);
    return (value) => check(value).valid;
  },
  "the SDK of version 2 at the edge": (schema) => {
    const check = new CfWorkerJsonSchemaValidator().getValidator(schema as never);
    return (value) => check(value).valid;
  },
};

const KEYS = ["a", "b", "c"] as const;

/** What a schema may refer to; `refs` are of the whole schema that it stands in. */
function subschema(random: Random, refs: readonly string[], depth: number): unknown {
  const { pick } = random;
  if (depth <= 0)
    return pick<unknown>([{ type: "string" }, { type: "integer", minimum: 0 }, true, { enum: [1, "x"] }, {}]);
  switch (random.int(9)) {
    case 0:
      return { $ref: pick(refs) };
    case 1:
      return { type: "array", items: subschema(random, refs, depth - 1), maxItems: 3 };
    case 2:
      return { anyOf: [subschema(random, refs, depth - 1), { type: "null" }] };
    case 3:
      return { oneOf: [{ type: "string" }, { $ref: pick(refs) }] };
    case 4:
      // Data that looks like a reference is none.
      return { enum: [{ $ref: "#" }, 1, "x"] };
    case 5:
      return { not: subschema(random, refs, depth - 1) };
    default:
      return objectSchema(random, refs, depth - 1);
  }
}

function objectSchema(random: Random, refs: readonly string[], depth: number): Json {
  const schema: Json = { type: "object", properties: {} };
  for (const key of KEYS) {
    if (random.int(2) === 0) (schema["properties"] as Json)[key] = subschema(random, refs, depth);
  }
  if (random.int(3) === 0) schema["required"] = [KEYS[random.int(3)]];
  switch (random.int(6)) {
    case 0:
      schema["additionalProperties"] = false;
      break;
    case 1:
      schema["unevaluatedProperties"] = false;
      schema["allOf"] = [{ properties: { c: subschema(random, refs, depth) } }];
      break;
    case 2:
      schema["patternProperties"] = { "^[ab]$": subschema(random, refs, depth) };
      break;
    case 3:
      schema["dependentSchemas"] = { a: { required: ["b"] } };
      break;
  }
  return schema;
}

function ownSchema(random: Random): Json {
  const id = random.int(3) === 0 ? "https://example.com/schemas/issue" : undefined;
  const defs = random.int(2) === 0 ? "$defs" : "definitions";
  const refs = ["#", `#/${defs}/one`, `#/${defs}/two`, "#/properties/z", "#place"];
  if (id !== undefined) refs.push(id, `${id}#/${defs}/one`, `${id}#/properties/z`);
  const schema = objectSchema(random, refs, 2);
  (schema["properties"] as Json)["z"] = { type: "string" };
  // Nothing of it may refer to itself without a step into the value: no validator ends then.
  schema[defs] = {
    one: objectSchema(random, refs, 1),
    two: { $anchor: "place", ...objectSchema(random, refs, 1) },
    ...(random.int(4) === 0
      ? { apart: { $id: "https://example.com/schemas/apart", type: "object", properties: { a: { $ref: "#" } } } }
      : {}),
  };
  if (random.int(2) === 0) schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  if (id !== undefined) schema["$id"] = id;
  return schema;
}

function value(random: Random, depth: number): unknown {
  if (depth <= 0 || random.int(3) === 0) return [1, -1, "x", "text", null, true, [], {}][random.int(8)];
  if (random.int(5) === 0) return [value(random, depth - 1)];
  const made: Json = {};
  for (const key of [...KEYS, "z"]) if (random.int(3) === 0) made[key] = value(random, depth - 1);
  return made;
}

describe("a widened output schema", () => {
  it.each(Object.keys(VALIDATORS))(
    "takes every receipt, and of all else exactly what the own one takes, of many schemas: %s",
    (name) => {
      const make = VALIDATORS[name] as (schema: Json) => Check;
      const seen = { good: 0, bad: 0 };
      for (let seed = 1; seed <= SCHEMAS; seed++) {
        const random = seeded(seed);
        const own = ownSchema(random);
        const widened = widenOutput(own, RECEIPT_SCHEMA) as Json;
        expect(widened, `seed ${seed}`).toBeDefined();
        const checks = [make(structuredClone(own)), make(structuredClone(widened))] as const;
        expect(checks[1](RECEIPT), `seed ${seed}: ${JSON.stringify(widened)}`).toBe(true);
        for (let i = 0; i < 12; i++) {
          const tried = i === 0 ? {} : value(random, 3);
          const verdict = checks[0](tried);
          seen[verdict ? "good" : "bad"]++;
          const why = () =>
            `seed ${seed}: ${JSON.stringify(tried)} by ${JSON.stringify(own)} → ${JSON.stringify(widened)}`;
          if (checks[1](tried) !== verdict) expect(checks[1](tried), why()).toBe(verdict);
        }
      }
      expect(Math.min(seen.good, seen.bad)).toBeGreaterThan(SCHEMAS);
    },
  );

  it("has the own dialect and definitions at the root, where references to them lead, and another address", () => {
    const own = {
      $schema: "http://json-schema.org/draft-07/schema#",
      $id: "https://example.com/issue",
      type: "object",
      properties: { parent: { $ref: "#" }, user: { $ref: "#/definitions/user" }, twin: { $ref: "#/properties/user" } },
      definitions: { user: { properties: { boss: { $ref: "https://example.com/issue#/definitions/user" } } } },
    };
    expect(widenOutput(own, { type: "object" })).toEqual({
      $schema: "http://json-schema.org/draft-07/schema#",
      $id: "https://example.com/issue?toolway=receipt",
      type: "object",
      anyOf: [
        {
          type: "object",
          properties: {
            parent: { $ref: "#/anyOf/0" },
            user: { $ref: "#/definitions/user" },
            twin: { $ref: "#/anyOf/0/properties/user" },
          },
        },
        { type: "object" },
      ],
      definitions: { user: { properties: { boss: { $ref: "#/definitions/user" } } } },
    });
  });

  it("is of no type where the own one is of another than an object, as modern servers have it", () => {
    expect(widenOutput({ type: "array", items: { $ref: "#" } }, RECEIPT_SCHEMA)).toEqual({
      anyOf: [{ type: "array", items: { $ref: "#/anyOf/0" } }, RECEIPT_SCHEMA],
    });
  });

  it("keeps what 2019-09 means by the root of a schema", () => {
    const own = {
      $schema: "https://json-schema.org/draft/2019-09/schema",
      type: "object",
      properties: { child: { $recursiveRef: "#" } },
    };
    expect(widenOutput(own, {})).toMatchObject({
      anyOf: [{ properties: { child: { $ref: "#/anyOf/0" } } }, {}],
    });
  });

  it("is taken for the own one by no client that has both, by their addresses", () => {
    const own = { $id: "https://example.com/one", type: "object", additionalProperties: false };
    const client = new AjvJsonSchemaValidator();
    client.getValidator(own as never);
    expect(client.getValidator(widenOutput(own, RECEIPT_SCHEMA) as never)(RECEIPT).valid).toBe(true);
  });
});
