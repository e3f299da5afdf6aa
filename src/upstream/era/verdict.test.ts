import { describe, expect, it } from "vitest";
import { Fault } from "../../protocol/errors.js";
import { classify, type DiscoverOutcome, type EraVerdict, identityOf, ProcessEras } from "./verdict.js";

const fault = new Fault("protocol", "x");
const discovered = (supportedVersions: unknown): DiscoverOutcome => ({ kind: "result", result: { supportedVersions } });
const error = (code: number, data?: unknown): DiscoverOutcome => ({ kind: "error", code, message: "m", data });
const refused = (status: number): DiscoverOutcome => ({ kind: "refused", status, fault });

type Row = [what: string, outcome: DiscoverOutcome, stdio: EraVerdict["kind"], http: EraVerdict["kind"]];

const TABLE: Row[] = [
  ["a DiscoverResult", discovered(["2026-07-28"]), "modern", "modern"],
  ["a DiscoverResult of both eras", discovered(["2025-11-25", "2026-07-28"]), "modern", "modern"],
  ["a DiscoverResult of legacy versions alone", discovered(["2025-11-25"]), "legacy", "legacy"],
  ["a DiscoverResult of versions to come", discovered(["2027-01-01"]), "unusable", "unusable"],
  ["a result that is none", discovered(undefined), "legacy", "legacy"],
  ["-32022 that supports legacy versions", error(-32022, { supported: ["2025-06-18"] }), "legacy", "legacy"],
  ["-32022 that supports others", error(-32022, { supported: ["2030-01-01"] }), "unusable", "unusable"],
  ["-32022 that names none", error(-32022), "legacy", "legacy"],
  ["-32020", error(-32020), "legacy", "unusable"],
  ["-32021", error(-32021, { requiredCapabilities: {} }), "legacy", "unusable"],
  ["-32601", error(-32601), "legacy", "legacy"],
  ["-32602", error(-32602), "legacy", "legacy"],
  ["-32000, not initialized", error(-32000), "legacy", "legacy"],
  ["an error of its own", error(7), "legacy", "legacy"],
  ["HTTP 400 without a message", refused(400), "legacy", "legacy"],
  ["HTTP 404", refused(404), "legacy", "legacy"],
  ["HTTP 405", refused(405), "legacy", "legacy"],
  ["HTTP 406", refused(406), "legacy", "legacy"],
  ["HTTP 200 with something else", refused(200), "legacy", "legacy"],
  ["HTTP 401", refused(401), "none", "none"],
  ["HTTP 403", refused(403), "none", "none"],
  ["HTTP 408", refused(408), "none", "none"],
  ["HTTP 429", refused(429), "none", "none"],
  ["HTTP 500", refused(500), "none", "none"],
  ["HTTP 503", refused(503), "none", "none"],
  ["no network", { kind: "unreachable", fault }, "none", "none"],
  ["an exit", { kind: "exited", fault }, "legacy", "legacy"],
  ["silence", { kind: "silent" }, "legacy", "none"],
];

describe("the era of a server", () => {
  it.each(TABLE)("is told by %s", (_, outcome, stdio, http) => {
    expect(classify("stdio", outcome).kind).toBe(stdio);
    expect(classify("http", outcome).kind).toBe(http);
  });
});

describe("what is remembered", () => {
  it("is of one server at one address, and can be dropped", () => {
    const eras = new ProcessEras();
    const one = identityOf({ kind: "http", url: "http://a/", headers: {} });
    const other = identityOf({ kind: "http", url: "http://b/", headers: {} });
    eras.put("s", one, "legacy");
    expect(eras.get("s", one)).toBe("legacy");
    expect(eras.get("s", other)).toBeUndefined();
    expect(eras.get("t", one)).toBeUndefined();
    eras.put("s", one, undefined);
    expect(eras.get("s", one)).toBeUndefined();
  });
});
