import { PromptSchema, ResourceSchema, ResourceTemplateSchema, ToolSchema } from "@modelcontextprotocol/sdk/types.js";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { type Random, seeded } from "../../../test/faults/random.js";
import { judge, prepareJudgement } from "./mend.js";
import { flawOfSchema, toLegacyOutput } from "./output-schema.js";

const SEEDS = histories(1_500, 4_000);

type Json = Record<string, unknown>;
const SCHEMAS = {
  tools: ToolSchema,
  prompts: PromptSchema,
  resources: ResourceSchema,
  resourceTemplates: ResourceTemplateSchema,
};
type Kind = keyof typeof SCHEMAS;

const shown = (kind: Kind, value: Json, era: "legacy" | "modern" = "legacy"): Json | undefined => {
  const json = JSON.stringify(value);
  const judged = judge(kind, json, JSON.parse(json) as Json);
  if (judged.kind === "unusable") return undefined;
  return JSON.parse(judged.kind === "fit" ? json : judged.mended[era]) as Json;
};
const notes = (kind: Kind, value: Json) => {
  const judged = judge(kind, JSON.stringify(value), value);
  return judged.kind === "mended" ? judged.mended.notes : [];
};
const inputSchema = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };

const WHOLE: Record<Kind, Json> = {
  tools: {
    name: "t",
    title: "T",
    description: "d",
    icons: [{ src: "x", mimeType: "image/png", sizes: ["48x48"], theme: "dark" }],
    inputSchema,
    outputSchema: {
      type: "object",
      properties: {
        b: { type: "number", minimum: 1 },
        c: { type: "array", items: { $ref: "#/$defs/row" }, maxItems: 3, uniqueItems: true },
        d: { type: ["string", "null"], pattern: "^a", enum: ["a", null], format: "email" },
        e: { anyOf: [{ type: "null" }, { not: { const: 1 } }], patternProperties: { "^x": { minLength: 1 } } },
      },
      required: ["b"],
      $defs: { row: { type: "string", nullable: true } },
      additionalProperties: false,
    },
    annotations: { title: "x", readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true },
    execution: { taskSupport: "optional" },
    _meta: { a: 1 },
    future: { any: [1] },
  },
  prompts: {
    name: "p",
    title: "T",
    description: "d",
    icons: [{ src: "x" }],
    arguments: [{ name: "a", description: "b", required: true }, { name: "c" }],
    _meta: {},
  },
  resources: {
    uri: "a:b",
    name: "n",
    title: "T",
    description: "d",
    mimeType: "text/plain",
    size: 3,
    icons: [],
    annotations: { audience: ["user"], priority: 0.5, lastModified: "2026-02-28T10:00:00.5+01:00" },
    _meta: {},
  },
  resourceTemplates: { uriTemplate: "a:{b}", name: "n", annotations: { audience: ["assistant"] }, mimeType: "a/b" },
};
const KINDS = Object.keys(WHOLE) as Kind[];

describe("a definition that clients accept", () => {
  it.each(KINDS)("of %s passes as the server wrote it", (kind) => {
    const json = JSON.stringify(WHOLE[kind]);
    expect(judge(kind, json, WHOLE[kind])).toEqual({ kind: "fit" });
  });

  it("is accepted however it was spoilt, once it is mended, by the schemas of the SDK [one-bad-server]", () => {
    const values = [null, true, false, 0, -1, 1.5, "", "x", [], [1], [null], {}, { a: 1 }, ["a"], [{}], [{ name: 1 }]];
    let spoilt = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const random = seeded(seed);
      const kind = random.pick(KINDS);
      const value = structuredClone(WHOLE[kind]);
      const rounds = 1 + random.int(4);
      for (let round = 0; round < rounds; round++) spoil(value, values, random);
      const key = kind === "resources" ? "uri" : kind === "resourceTemplates" ? "uriTemplate" : "name";
      if (typeof value[key] !== "string") value[key] = "key";
      if (!SCHEMAS[kind].safeParse(value).success) spoilt++;
      const mended = shown(kind, value);
      // What is judged ahead of time is the same, and nothing of another text.
      const json = JSON.stringify(value);
      prepareJudgement(kind, json, value);
      expect(judge(kind, json, value)).toEqual(judge(kind, json, value));
      prepareJudgement(kind, '{"name":"another"}', value);
      expect(judge(kind, json, value)).toEqual(judge(kind, json, value));
      const parsed = SCHEMAS[kind].safeParse(mended);
      if (!parsed.success) {
        throw new Error(`Seed ${seed}: ${JSON.stringify(value)} → ${JSON.stringify(mended)} ${parsed.error}`);
      }
      if (kind !== "tools") continue;
      const output = (mended as Json)["outputSchema"];
      if (output !== undefined)
        expect(() => new AjvJsonSchemaValidator().getValidator(output as Json), `seed ${seed}`).not.toThrow();
    }
    expect(spoilt).toBeGreaterThan(SEEDS / 4);
  });
});

describe("what is mended", () => {
  it("is one member, and the rest stays, unknown ones too", () => {
    const tool = {
      name: "t",
      x: { y: [1] },
      description: null,
      inputSchema,
      annotations: { readOnlyHint: "yes", z: 1 },
    };
    expect(shown("tools", tool, "modern")).toEqual({ name: "t", x: { y: [1] }, inputSchema, annotations: { z: 1 } });
    expect(notes("tools", tool)).toEqual([
      '"description" is left out: it is no text',
      '"annotations" is mended: it was no set of hints',
    ]);
  });

  it("is an input schema that is no object's", () => {
    for (const bad of [undefined, null, true, [], {}, { type: "string" }, { type: ["object", "null"] }]) {
      expect(shown("tools", { name: "t", inputSchema: bad })).toEqual({ name: "t", inputSchema: { type: "object" } });
    }
    const booleans = { type: "object", properties: { a: true, b: false } };
    expect(shown("tools", { name: "t", inputSchema: booleans })).toEqual({
      name: "t",
      inputSchema: { type: "object", properties: { a: {}, b: { not: {} } } },
    });
    expect(notes("tools", { name: "t", inputSchema: booleans })).toEqual([]);
    expect(shown("tools", { name: "t", inputSchema: booleans }, "modern")).toMatchObject({ inputSchema: booleans });
  });

  it("is a resource without a name, and a day that is none", () => {
    expect(shown("resources", { uri: "a:b" })).toEqual({ uri: "a:b", name: "a:b" });
    expect(shown("resourceTemplates", { uriTemplate: "a:{b}" })).toEqual({ uriTemplate: "a:{b}", name: "a:{b}" });
    const annotations = { lastModified: "2026-02-30T10:00:00Z", priority: 2 };
    expect(shown("resources", { uri: "a:b", name: "n", annotations })).toEqual({
      uri: "a:b",
      name: "n",
      annotations: {},
    });
  });

  it("is not what nests deeper than any client can walk: that is left out", () => {
    const deep = JSON.parse(`${'{"a":'.repeat(300)}1${"}".repeat(300)}`) as Json;
    expect(shown("tools", { name: "t", inputSchema: { type: "object", properties: deep } })).toBeUndefined();
  });
});

describe("an output schema for legacy agents", () => {
  it("is wrapped where it is no object's, with its references", () => {
    const natural = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "array",
      items: { $ref: "#/$defs/row" },
      $defs: { row: { anyOf: [{ type: "string" }, { $ref: "#" }], default: { $ref: "#" } } },
    };
    const tool = { name: "t", inputSchema, outputSchema: natural };
    expect(shown("tools", tool, "modern")).toEqual(tool);
    expect(notes("tools", tool), "nothing is wrong with it").toEqual([]);
    const within = "#/properties/result";
    expect(shown("tools", tool)?.["outputSchema"]).toEqual({
      $schema: natural.$schema,
      type: "object",
      properties: {
        result: {
          ...natural,
          items: { $ref: `${within}/$defs/row` },
          $defs: { row: { anyOf: [{ type: "string" }, { $ref: within }], default: { $ref: "#" } } },
        },
      },
      required: ["result"],
    });
    const validate = new AjvJsonSchemaValidator().getValidator(toLegacyOutput(natural) as Json);
    expect(validate({ result: ["a", ["b"]] }).valid).toBe(true);
    expect(validate({ result: [1] }).valid).toBe(false);
  });

  it("keeps the addresses of a schema that has its own, and of the dialect of 2019", () => {
    const own = { $id: "https://x.example/s", type: "array", items: { $ref: "#" } };
    expect(toLegacyOutput(own)["properties"]).toEqual({ result: own });
    const of2019 = { $schema: "https://json-schema.org/draft/2019-09/schema", items: { $recursiveRef: "#" } };
    expect(toLegacyOutput(of2019)["properties"]).toMatchObject({ result: { items: { $ref: "#/properties/result" } } });
  });

  it.each([
    [{ type: "objekt" }, "type"],
    [{ type: "object", properties: { a: { $ref: "#/$defs/none" } } }, "#/$defs/none"],
    [{ type: "object", properties: { a: { $ref: "https://x.example/other.json" } } }, "other.json"],
    [{ type: "object", properties: { a: { pattern: "(" } } }, "regular expression"],
    [{ type: "object", properties: { a: { enum: [] } } }, "enum"],
    [{ type: "object", properties: { a: { minimum: "1" } } }, "minimum"],
    [{ type: "object", properties: { a: { nullable: true } } }, "nullable"],
    [{ type: "object", id: "x" }, "id"],
  ])("is left out where clients cannot compile it: %j", (outputSchema, word) => {
    expect(() => new AjvJsonSchemaValidator().getValidator(outputSchema as never)).toThrow();
    expect(flawOfSchema(outputSchema)).toContain(word);
    expect(shown("tools", { name: "t", inputSchema, outputSchema })).toEqual({ name: "t", inputSchema });
    expect(shown("tools", { name: "t", inputSchema, outputSchema }, "modern")).toMatchObject({ outputSchema });
  });
});

/** Puts a value of another type somewhere into it, or takes a member out. */
function spoil(value: Json, values: readonly unknown[], random: Random): void {
  let at: Json = value;
  for (;;) {
    const keys = Object.keys(at);
    const key = random.pick(keys);
    const inner = at[key];
    if (typeof inner === "object" && inner !== null && Object.keys(inner).length > 0 && random.chance(0.6)) {
      at = inner as Json;
      continue;
    }
    if (random.chance(0.2) && !Array.isArray(at)) delete at[key];
    else if (key !== undefined) at[key] = structuredClone(random.pick(values));
    return;
  }
}
