import { describe, expect, it } from "vitest";
import type { HttpTarget, StdioTarget, Target } from "../../contracts/server-spec.js";
import { serverIdentity } from "./server-identity.js";

const program = (more: Partial<StdioTarget>): Target => ({
  kind: "stdio",
  command: "/usr/bin/server",
  args: [],
  env: {},
  cwd: undefined,
  ...more,
});
const address = (url: string, more: Partial<HttpTarget> = {}): Target => ({ kind: "http", url, headers: {}, ...more });
const outside = (value: string) => ({ name: "SETTING", value });
const isSame = (a: Target, b: Target) => serverIdentity(a) === serverIdentity(b);

describe("the identity of a server's entry", () => {
  it("stays when a secret is renewed, whether it stands in the config or comes from outside [engine-entries]", () => {
    const pairs: [Target, Target][] = [
      [program({ env: { API_KEY: "1234" } }), program({ env: { API_KEY: "98765" } })],
      [program({ args: ["--token", "hunter22"] }), program({ args: ["--token", "hunter23"] })],
      [program({ args: ["--api-key=abc123"] }), program({ args: ["--api-key=def4567"] })],
      [
        program({ args: ["--header", "Authorization: Bearer abc123"] }),
        program({ args: ["--header", "Authorization: Bearer def456"] }),
      ],
      [
        program({ args: ["run", "s3cret-a"], secrets: [outside("s3cret-a")] }),
        program({ args: ["run", "s3cret-b"], secrets: [outside("s3cret-b")] }),
      ],
      [
        address("https://a.example/s3 cret/mcp", { secrets: [outside("s3 cret")] }),
        address("https://a.example/s4 cret/mcp", { secrets: [outside("s4 cret")] }),
      ],
      [program({ env: { DB_PASSWORD: "correct.horse" } }), program({ env: { DB_PASSWORD: "tr0ub4dor.3" } })],
      [program({ env: { API_KEY: "a1:1" } }), program({ env: { API_KEY: "b2:2" } })],
      [address("https://u:pw-1@a.example/mcp?token=abc123"), address("https://u:pw-2@a.example/mcp?token=def456")],
      [
        address("https://a.example/mcp", { headers: { Authorization: "Bearer a" } }),
        address("https://a.example/mcp", { headers: { authorization: "Bearer b" } }),
      ],
    ];
    for (const [a, b] of pairs) expect(isSame(a, b), JSON.stringify([a, b])).toBe(true);
  });

  it("stays where it lies elsewhere on another machine [engine-entries]", () => {
    const at = (home: string) => program({ command: `${home}/bin/server`, cwd: home, secrets: [outside(home)] });
    expect(isSame(at("/home/anna"), at("/srv/toolway"))).toBe(true);
  });

  it("is another where another server is started or dialled [engine-entries]", () => {
    const id = "1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms";
    const of = (tenant: string) => address(`https://${tenant}.example/mcp`, { secrets: [outside(tenant)] });
    const pairs: [Target, Target][] = [
      [of("tenant-1"), of("tenant-2")],
      [address("https://a.example/mcp?tenant=one-1"), address("https://a.example/mcp?tenant=two-2")],
      [address(`https://a.example/${id}/mcp`), address(`https://a.example/${id.toLowerCase()}/mcp`)],
      [program({ args: ["--sheet", id] }), program({ args: ["--sheet", id.toLowerCase()] })],
      [
        program({ env: { REGION: "us" }, secrets: [outside("us")] }),
        program({ env: { REGION: "eu" }, secrets: [outside("eu")] }),
      ],
      [program({ env: { AUTH_HOST: "a.example" } }), program({ env: { AUTH_HOST: "b.example" } })],
      [address("https://a.example/mcp"), address("https://a.example/mcp", { headers: { "x-tenant": "a" } })],
    ];
    for (const [a, b] of pairs) expect(isSame(a, b), JSON.stringify([a, b])).toBe(false);
  });

  it("does not take a short value from outside for a part of other words [engine-entries]", () => {
    const from = (region: string) => program({ secrets: [outside(region)] });
    expect(isSame(from("us"), from("eu"))).toBe(true);
  });
});
