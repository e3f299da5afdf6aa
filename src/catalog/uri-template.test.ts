import { describe, expect, it } from "vitest";
import { ownName } from "../contracts/names.js";
import { Routes } from "./routes.js";
import { compileTemplate, matchesTemplate } from "./uri-template.js";

const matches = (template: string, uri: string): boolean => {
  const compiled = compileTemplate(template);
  return compiled !== undefined && matchesTemplate(compiled, uri, { left: 1_000_000 });
};

describe("URI templates", () => {
  it.each<[string, string, boolean]>([
    ["test://template/{id}/data", "test://template/123/data", true],
    ["test://template/{id}/data", "test://template/1/2/data", false],
    ["test://template/{id}/data", "test://template//data", false],
    ["test://template/{id}/data", "test://template/123/dat", false],
    ["test://template/{id}/data", "test://template/123/data/x", false],
    ["x://{a}-{b}", "x://1-2-3", true],
    ["x://{a}{b}", "x://1", false],
    ["x://{a,b}", "x://1,2", true],
    ["file:///{+path}", "file:///a/b/c.txt", true],
    ["file:///{path}", "file:///a/b/c.txt", false],
    ["x://doc{#part}", "x://doc#a/b", true],
    ["x://doc{#part}", "x://doc", true],
    ["x://doc{/a}", "x://doc/one", true],
    ["x://doc{/a}", "x://doc/one/two", false],
    ["x://doc{/a,b}", "x://doc/one/two", true],
    ["x://doc{/a*}", "x://doc/one/two", true],
    ["x://host{.ext}", "x://host.tar.gz", true],
    ["x://p{;a,b}", "x://p;a=1;b=2", true],
    ["x://search{?q,lang}", "x://search?lang=en&q=a%20b", true],
    ["x://search{?q}", "x://search", true],
    ["x://search?fixed=1{&q}", "x://search?fixed=1&q=2", true],
    ["x://search{?q}", "x://searching", false],
    ["x://{v:3}/{w*}", "x://abc/d", true],
    ["x://plain", "x://plain", true],
    ["x://plain", "x://plai", false],
    ["{+all}", "anything://at/all?x#y", true],
    ["x://日本/{id}", "x://日本/1", true],
    ["x://{open", "x://{open", false],
    ["x://}{a}", "x://}1", false],
    ["x://{{a}}", "x://{1}", false],
    ["x://{}", "x://", false],
    ["", "", true],
    ["", "x", false],
  ])("%s over %s: %s", (template, uri, expected) => {
    expect(matches(template, uri)).toBe(expected);
  });

  it("answers hostile templates and URIs in under 50 ms", () => {
    const hostile = [
      "{+a}".repeat(500),
      `x://${"{a}".repeat(600)}`,
      "{/a*}".repeat(400),
      `${"{?a}{&b}".repeat(250)}!`,
      `x://${"{+a}x".repeat(400)}`,
      "a".repeat(5000),
    ];
    const items = Array.from({ length: 2000 }, (_, i) => {
      const own = `${hostile[i % hostile.length]}`;
      return { own: ownName(own), json: "{}", value: {} };
    });
    const good = { own: ownName("x://{+a}"), json: "{}", value: {} };
    const routes = new Routes([
      { server: "bad", resources: [], templates: items },
      { server: "good", resources: [], templates: [good] },
    ]);
    const uris = [`x://${"x".repeat(8000)}!`, `x://${"/x".repeat(4000)}`, "?&".repeat(4000), "x".repeat(1_000_000)];
    for (const uri of uris) {
      routes.ofUri(uri); // Compiled code first: the bound is on the work, not on a cold start.
      // Nor on the time: others may have the machine meanwhile.
      const before = process.cpuUsage();
      routes.ofUri(uri);
      const { user, system } = process.cpuUsage(before);
      expect((user + system) / 1000).toBeLessThan(50);
    }
  });

  it("one server's hostile templates do not hide another's [one-bad-server]", () => {
    const item = (own: string) => ({ own: ownName(own), json: "{}", value: {} });
    const bad = Array.from({ length: 100 }, () => item(`x://${"{a}".repeat(600)}/never`));
    const routes = new Routes([
      { server: "bad", resources: [], templates: bad },
      { server: "good", resources: [], templates: [item("x://{id}")] },
    ]);
    expect(routes.ofUri(`x://${"y".repeat(4000)}`)).toBe("good");
  });
});
