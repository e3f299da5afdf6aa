// What the operator's page makes of schemas, names, addresses and times of calls, before a browser shows it.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { adviceOn, phasesOf, remarksOf, timeText } from "../dashboard/call-words.js";
import { type Findable, found } from "../dashboard/find.js";
import { isSafeAddress } from "../dashboard/safe-address.js";
import { fieldOf, optionOf, type Schema, skeletonOf } from "../dashboard/try/schema-form.js";
import type { KeptCall } from "../src/contracts/control/calls.js";

const form = (schema: Schema) => fieldOf(schema, schema);
const start = (schema: Schema) => skeletonOf(schema, schema);

describe("the form of a tool", () => {
  it("has a field for each kind of value, with what stands in it at first", () => {
    const schema = {
      type: "object",
      required: ["text", "n", "mode", "nothing", "inner", "rows"],
      properties: {
        text: { type: "string", examples: ["hello"] },
        n: { type: "integer", minimum: 3 },
        mode: { enum: ["fast", 2, null] },
        nothing: { type: "null" },
        inner: { type: "object", required: ["yes"], properties: { yes: { type: "boolean" }, no: { type: "string" } } },
        rows: { type: "array", items: { $ref: "#/$defs/row" } },
        given: { type: "string", default: "as said" },
        other: { type: "number" },
      },
      $defs: { row: { type: "object", properties: { id: { type: "string" } }, required: ["id"] } },
    };
    expect(start(schema)).toEqual({
      text: "hello",
      n: 3,
      mode: "fast",
      nothing: null,
      inner: { yes: false },
      rows: [],
      given: "as said",
    });
    const field = form(schema);
    if (field.kind !== "object") throw new Error(field.kind);
    const kinds = field.members.map(({ name, schema: one }) => [name, fieldOf(schema, one, 1).kind]);
    expect(Object.fromEntries(kinds)).toEqual({
      text: "text",
      n: "number",
      mode: "choice",
      nothing: "fixed",
      inner: "object",
      rows: "list",
      given: "text",
      other: "number",
    });
    expect(skeletonOf(schema, { $ref: "#/$defs/row" }, 2)).toEqual({ id: "" });
  });

  it("has a choice for oneOf, anyOf and several types, at the root too, with the members beside them", () => {
    const root = {
      type: "object",
      properties: { both: { type: "string" } },
      required: ["both"],
      oneOf: [
        { properties: { kind: { const: "a" }, size: { type: "number" } }, required: ["kind", "size"] },
        { title: "The other", properties: { kind: { const: "b" } }, required: ["kind"] },
      ],
    };
    const field = form(root);
    if (field.kind !== "either") throw new Error(field.kind);
    expect(field.options.map(({ name }) => name)).toEqual(["with kind, size, both", "The other"]);
    expect(start(root)).toEqual({ kind: "a", size: 0, both: "" });
    expect(skeletonOf(root, field.options[1]?.schema)).toEqual({ kind: "b", both: "" });
    expect(optionOf(root, field.options, { kind: "b", both: "x" })).toBe(1);
    expect(optionOf(root, field.options, { kind: "a", size: 1, both: "x" })).toBe(0);
    expect(fieldOf({}, { type: ["string", "null"] })).toMatchObject({ kind: "either" });
    expect(fieldOf({}, { anyOf: [{ type: "integer" }, { type: "null" }] }).kind).toBe("either");
    const joined = { allOf: [{ properties: { a: { type: "string" } }, required: ["a"] }], properties: { b: {} } };
    expect(start({ type: "object", ...joined })).toEqual({ a: "" });
  });

  it("goes by the option that fits what is filled in, and stays at one where another fits no better", () => {
    const member = (name: string, schema: Schema, more: Schema = {}) => ({
      schema: { type: "object", properties: { [name]: schema }, ...more } as Schema,
    });
    const options = [
      member("path", { type: "string" }),
      member("id", { type: "integer" }, { required: ["id"] }),
      member("name", { $ref: "#/$defs/name" }),
      member("path", { type: "string" }, { additionalProperties: false }),
    ];
    const root = { $defs: { name: { enum: ["a", "b"] } } };
    const of = (value: unknown, before?: number) => optionOf(root, options, value, before);
    expect([{ path: "x" }, { id: 1 }, { name: "a" }].map((value) => of(value))).toEqual([0, 1, 2]);
    // From wherever it was, also where one before it takes whatever it is given.
    for (const before of [0, 1, 2, 3]) expect(of({ id: 1 }, before)).toBe(1);
    for (const before of [0, 1, 2, 3]) expect(of({ name: "b" }, before)).toBe(2);
    // Nothing says that it is another one: several fit as well, or none does.
    expect([0, 2, 3].map((before) => of({}, before))).toEqual([0, 2, 3]);
    expect(of({}, 1)).toBe(0);
    expect(of({ path: "x" }, 3)).toBe(3);
    expect(of({ path: "x", more: 1 }, 3)).toBe(0);
    expect([0, 1, 2, 3].map((before) => of("no object", before))).toEqual([0, 1, 2, 3]);
    expect(of("no object", 9)).toBe(0);
  });

  it("is JSON with a skeleton where there is no field, also for references that lead nowhere or to themselves", () => {
    expect(fieldOf({}, { $ref: "https://elsewhere.example/schema" }, 1).kind).toBe("json");
    const loop = { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } };
    expect(form(loop).kind).toBe("json");
    expect(start(loop)).toEqual({});
    const tree: Schema = {
      type: "object",
      properties: { child: { $ref: "#" } },
      required: ["child"],
    };
    let deep = start(tree) as { child?: unknown } | undefined;
    let depth = 0;
    for (; deep?.child !== undefined && deep.child !== null; depth++) deep = deep.child as { child?: unknown };
    expect(depth).toBeLessThan(20);
    expect(form({}).kind).toBe("json");
    expect(start({})).toEqual({});
  });

  it("is never empty and never throws, whatever a server calls a schema, in 2,000 of them", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (schema) => {
        const root = (typeof schema === "object" && schema !== null && !Array.isArray(schema) ? schema : {}) as Schema;
        expect(form(root).kind).toBeTypeOf("string");
        expect(start(root)).not.toBeUndefined();
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("an address that somebody else wrote", () => {
  it("is opened where it is a site over TLS or this machine, and nothing else", () => {
    for (const good of ["https://example.com/x", "http://127.0.0.1:8080/", "http://localhost/", "http://[::1]:1/"]) {
      expect([good, isSafeAddress(good)]).toEqual([good, true]);
    }
    for (const bad of [
      "javascript:alert(1)",
      "JaVaScRiPt:alert(1)",
      "data:text/html,x",
      "http://example.com/",
      "http://localhost.evil.example/",
      "http://127.0.0.1.evil.example/",
      "file:///etc/passwd",
      "https://user:pass@example.com/",
      "vscode://x",
      "//example.com",
      "",
    ]) {
      expect([bad, isSafeAddress(bad)]).toEqual([bad, false]);
    }
  });
});

describe("the search", () => {
  it("finds what begins so first, and a call by its whole id alone [bounded]", () => {
    const all: Findable[] = [
      { kind: "tool", name: "files__read", also: ["read"], href: "/1" },
      { kind: "server", name: "readme", href: "/2" },
      { kind: "agent", name: "bread", href: "/3" },
      { kind: "call", name: "read-17", also: ["0af7651916cd43dd8448eb211c80319c"], href: "/4" },
    ];
    expect(found(all, "read").map(({ href }) => href)).toEqual(["/1", "/2", "/3"]);
    expect(found(all, "0af7651916cd43dd8448eb211c80319c").map(({ href }) => href)).toEqual(["/4"]);
    expect(found(all, "READ-17").map(({ href }) => href)).toEqual(["/4"]);
    expect(found(all, " ")).toEqual([]);
    const many = Array.from({ length: 10_000 }, (_, n): Findable => ({ kind: "tool", name: `tool ${n}`, href: "" }));
    expect(found(many, "tool").length).toBeLessThanOrEqual(12);
  });
});

describe("a call in words", () => {
  const CALL: KeptCall = {
    seq: 1,
    endedAt: "2026-01-01T00:00:00Z",
    principal: "ann",
    role: "dev",
    client: undefined,
    method: "tools/call",
    server: "github",
    tool: "list",
    id: 1,
    trace: undefined,
    attempt: 2,
    outcome: "ok",
    failed: false,
    ms: 1_254,
    queuedMs: 0,
    startingMs: 1_200,
    credentialMs: 0,
    serverMs: 53,
    returningMs: 0,
    ownMs: 1,
    cache: undefined,
    refusedBy: undefined,
    errorCode: undefined,
    receipt: undefined,
    mended: "restart",
    bytesIn: 10,
    bytes: 20,
  };

  it("says what it waited for, who took how long, and what its agent did not notice [calls-recorded]", () => {
    expect(phasesOf(CALL).map(({ words }) => words)).toEqual([
      "waited 1.20 s while github was started again",
      "github took 53.0 ms",
      "Toolway itself took 1.00 ms",
    ]);
    expect(remarksOf(CALL)).toEqual([
      "It was sent 2 times: to do it twice does no harm.",
      "Its agent noticed nothing of github being started again.",
    ]);
    expect([timeText(0.123), timeText(12_345), timeText(90_000)]).toEqual(["0.12 ms", "12.3 s", "1.5 min"]);
  });

  it("has something to do for every way to fail, as a line of a shell, whatever the names are", () => {
    const outcomes = ["tool-error", "rpc-error", "timeout", "unavailable", "unauthorized", "outcome-unknown"];
    for (const outcome of [...outcomes, "protocol", "limit", "not-found", "denied", "invalid", "closing", "internal"]) {
      const advice = adviceOn({ ...CALL, outcome, failed: true, server: "a; rm -rf /", principal: "$(x)" });
      expect(advice?.text).toMatch(/\.$/);
      expect((advice?.line ?? "").replaceAll(/'[^']*'/g, "")).not.toMatch(/[;$()]/);
    }
    const failed = { ...CALL, failed: true };
    expect(adviceOn({ ...failed, outcome: "denied", refusedBy: "menu" })?.text).toBe(
      "A rule refused it to ann: the menu of its context does not have it.",
    );
    expect(adviceOn({ ...failed, outcome: "unavailable", refusedBy: "breaker" })?.text).toContain(
      "breaker of its server",
    );
    expect(adviceOn({ ...failed, outcome: "rpc-error", errorCode: -32602 })?.text).toContain("(code -32602)");
    expect(adviceOn(CALL)).toBeUndefined();
    expect(adviceOn({ ...CALL, outcome: "cancelled" })).toBeUndefined();
  });
});
