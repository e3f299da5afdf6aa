import { describe, expect, it } from "vitest";
import { mistakesOf } from "../../test/fixtures/config-mistakes.js";
import { parseConfig } from "./load.js";

const read = (text: string) => parseConfig(text, { path: "/etc/toolway/mcp.json", env: {}, home: "/home/me" });
const withAdmin = (admin: string) => read(`{ "mcpServers": {}, "admin": ${admin} }`).admin;
const mistakes = (admin: string) => mistakesOf(() => withAdmin(admin));

describe("admin in a config", () => {
  it("holds the operator's door open where it says, or at the usual place, and forbids it [control-apart]", () => {
    expect(read('{ "mcpServers": {} }').admin).toBeUndefined();
    expect(withAdmin("false")).toBe(false);
    const usual = { listen: { host: "127.0.0.1", port: 7421 }, hosts: [], tls: undefined };
    expect(withAdmin("true")).toEqual(usual);
    expect(withAdmin("{}")).toEqual(usual);
    expect(
      withAdmin(
        '{ "listen": "0.0.0.0:8443", "hosts": ["Toolway.example"], "tls": { "cert": "c.pem", "key": "/k.pem" } }',
      ),
    ).toEqual({
      listen: { host: "0.0.0.0", port: 8443 },
      hosts: ["toolway.example"],
      tls: { cert: "/etc/toolway/c.pem", key: "/k.pem" },
    });
  });

  it.each(["0.0.0.0:7421", "[::]:7421", "192.168.1.5:7421", "toolway.example:7421"])(
    "is refused at %s in clear, with what to do [control-apart]",
    (listen) => {
      expect(mistakes(JSON.stringify({ listen }))).toMatch(/not loopback.*"tls"/s);
    },
  );

  it.each([
    [{ listen: "7421" }, /expected HOST:PORT/],
    [{ hosts: ["https://toolway.example"] }, /without a scheme or a path/],
    [{ hosts: ["*.example"] }, /expected a name/],
    [{ tls: { cert: "c.pem" } }, /key/],
    [{ port: 1 }, /port/],
    ["yes", /admin/],
  ])("says what is wrong with %j", (admin, why) => {
    expect(mistakes(JSON.stringify(admin))).toMatch(why);
  });
});
