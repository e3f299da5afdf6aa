import { describe, expect, it } from "vitest";
import type { JsonObject } from "./jsonrpc.js";
import { agentHeaders, paramHeaders, readParamHeaders } from "./param-headers.js";

const of = (properties: JsonObject, rest: JsonObject = {}) => ({ type: "object", properties, ...rest });
const region = { type: "string", "x-mcp-header": "Region" };

describe("annotations of a tool's schema", () => {
  it("are found at any depth of properties", () => {
    const schema = of({
      region,
      retries: { type: "integer", "x-mcp-header": "Retries" },
      auth: of({
        tenant: { type: "string", "x-mcp-header": "X-Tenant" },
        dry: { type: "boolean", "x-mcp-header": "dry" },
      }),
      plain: { type: "number" },
    });
    expect(readParamHeaders(schema)).toEqual([
      { header: "mcp-param-region", path: ["region"] },
      { header: "mcp-param-retries", path: ["retries"] },
      { header: "mcp-param-x-tenant", path: ["auth", "tenant"] },
      { header: "mcp-param-dry", path: ["auth", "dry"] },
    ]);
  });

  it("do not include what only looks like one", () => {
    expect(readParamHeaders(undefined)).toEqual([]);
    expect(readParamHeaders({ type: "object" })).toEqual([]);
    expect(readParamHeaders(of({ "x-mcp-header": { type: "string" } }))).toEqual([]);
    expect(readParamHeaders(of({ a: { type: "object", default: { "x-mcp-header": "no" } } }))).toEqual([]);
    expect(readParamHeaders(of({ default: region }))).toEqual([{ header: "mcp-param-region", path: ["default"] }]);
  });

  const bad: [string, unknown][] = [
    ["empty", of({ a: { type: "string", "x-mcp-header": "" } })],
    ["not a string", of({ a: { type: "string", "x-mcp-header": 7 } })],
    ["a space", of({ a: { type: "string", "x-mcp-header": "My Region" } })],
    ["a colon", of({ a: { type: "string", "x-mcp-header": "Region:Primary" } })],
    ["not ASCII", of({ a: { type: "string", "x-mcp-header": "Région" } })],
    ["a line break", of({ a: { type: "string", "x-mcp-header": "Region\r\nX: y" } })],
    ["a control character", of({ a: { type: "string", "x-mcp-header": "Region\u0001" } })],
    ["twice", of({ a: region, b: region })],
    ["twice but for case", of({ a: region, b: { type: "string", "x-mcp-header": "REGION" } })],
    ["twice across depths", of({ a: region, b: of({ c: region }) })],
    ["number", of({ a: { type: "number", "x-mcp-header": "N" } })],
    ["object", of({ a: { type: "object", "x-mcp-header": "O" } })],
    ["array", of({ a: { type: "array", "x-mcp-header": "A" } })],
    ["null", of({ a: { type: "null", "x-mcp-header": "A" } })],
    ["several types", of({ a: { type: ["string", "null"], "x-mcp-header": "A" } })],
    ["no type", of({ a: { "x-mcp-header": "A" } })],
    ["the root", { type: "string", "x-mcp-header": "A" }],
    ["items", of({ a: { type: "array", items: region } })],
    ["properties of items", of({ a: { type: "array", items: of({ b: region }) } })],
    ["prefixItems", of({ a: { type: "array", prefixItems: [region] } })],
    ["oneOf", of({}, { oneOf: [of({ a: region })] })],
    ["anyOf", of({ a: { anyOf: [region] } })],
    ["allOf", of({}, { allOf: [of({ a: region })] })],
    ["not", of({ a: { not: region } })],
    ["if", of({}, { if: of({ a: region }) })],
    ["then", of({}, JSON.parse(`{"then":${JSON.stringify(of({ a: region }))}}`) as JsonObject)],
    ["else", of({}, { else: of({ a: region }) })],
    ["$defs", of({ a: { $ref: "#/$defs/r" } }, { $defs: { r: region } })],
    ["additionalProperties", of({}, { additionalProperties: region })],
    ["patternProperties", of({}, { patternProperties: { "^a": region } })],
    ["dependentSchemas", of({}, { dependentSchemas: { a: of({ b: region }) } })],
  ];
  it.each(bad)("are invalid: %s", (_, schema) => {
    expect(typeof readParamHeaders(schema)).toBe("string");
  });

  it("ask nothing of an agent where they are invalid, and are read once for a schema", () => {
    const schema = of({ region });
    expect(agentHeaders(schema)).toEqual([{ header: "mcp-param-region", path: ["region"] }]);
    expect(agentHeaders(schema)).toBe(agentHeaders(schema));
    expect(agentHeaders(of({ a: { type: "number", "x-mcp-header": "N" } }))).toEqual([]);
    expect(agentHeaders(undefined)).toEqual([]);
  });

  it("end a walk that goes too deep", () => {
    let schema: JsonObject = { type: "string" };
    for (let i = 0; i < 200; i++) schema = of({ a: schema });
    expect(readParamHeaders(schema)).toContain("deeper");
  });
});

describe("headers of a call", () => {
  const headers = readParamHeaders(
    of({
      s: { type: "string", "x-mcp-header": "S" },
      i: { type: "integer", "x-mcp-header": "I" },
      b: { type: "boolean", "x-mcp-header": "B" },
      o: of({ n: { type: "string", "x-mcp-header": "N" } }),
    }),
  );
  const made = (args: unknown) => paramHeaders(typeof headers === "string" ? [] : headers, args);

  it("have the values as text", () => {
    expect(made({ s: "us-west1", i: -7, b: false, o: { n: "x" } })).toEqual({
      "mcp-param-s": "us-west1",
      "mcp-param-i": "-7",
      "mcp-param-b": "false",
      "mcp-param-n": "x",
    });
    expect(made({ s: "", i: 42.0 })).toEqual({ "mcp-param-s": "", "mcp-param-i": "42" });
  });

  it("leave out what is null, absent, inherited or cannot be a header", () => {
    expect(made({ s: null, o: null })).toEqual({});
    expect(made({ s: { a: 1 }, i: 1.5, b: "true", o: { n: [] } })).toEqual({ "mcp-param-b": "true" });
    expect(made({ i: 2 ** 53 })).toEqual({});
    expect(made(undefined)).toEqual({});
    expect(made("text")).toEqual({});
  });

  it("encode what HTTP cannot carry", () => {
    expect(made({ s: "Hello, 世界" })["mcp-param-s"]).toBe("=?base64?SGVsbG8sIOS4lueVjA==?=");
    expect(made({ s: " padded " })["mcp-param-s"]).toBe("=?base64?IHBhZGRlZCA=?=");
    expect(made({ s: "line1\nline2" })["mcp-param-s"]).toBe("=?base64?bGluZTEKbGluZTI=?=");
    expect(made({ s: "=?base64?literal?=" })["mcp-param-s"]).toBe("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
  });
});
