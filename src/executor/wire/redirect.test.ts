import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { redirected } from "./redirect.js";

const SECRETS = ["authorization", "Cookie", "proxy-authorization", "X-Api-Key", "x-auth-token", "Mcp-Session-Id"];

function hop(method: string, url: string) {
  const names = [...SECRETS, "content-type", "x-own"];
  return { method, url: new URL(url), headers: names.map((name) => ({ name, value: "v" })) };
}

describe("where a redirect leads", () => {
  it.each([
    [301, "GET", "GET"],
    [301, "POST", "GET"],
    [301, "PUT", "PUT"],
    [302, "POST", "GET"],
    [302, "HEAD", "HEAD"],
    [303, "PUT", "GET"],
    [303, "HEAD", "HEAD"],
    [307, "POST", "POST"],
    [308, "DELETE", "DELETE"],
  ])("%i of %s is %s", (status, method, expected) => {
    const next = redirected(hop(method, "http://a.test/"), status, "/b");
    expect([next?.method, next?.keepsBody]).toEqual([expected, expected === method]);
    expect(next?.headers.some(({ name }) => name === "content-type")).toBe(next?.keepsBody);
  });

  it.each([200, 300, 304, 305, 306, 400])("%i is no redirect, whatever its Location says", (status) => {
    expect(redirected(hop("GET", "http://a.test/"), status, "/b")).toBe(undefined);
  });

  it("another scheme, host or port is another origin", () => {
    for (const location of [
      "https://a.test/",
      "http://b.test/",
      "http://a.test:81/",
      "//b.test",
      "http://a.test.:80/",
    ]) {
      const names = redirected(hop("GET", "http://a.test/"), 302, location)?.headers.map(({ name }) => name);
      expect([location, names]).toEqual([location, ["content-type", "x-own"]]);
    }
    const same = redirected(hop("GET", "http://a.test/"), 302, "HTTP://A.test:80/x");
    expect(same?.headers.length).toBe(SECRETS.length + 2);
  });

  it("no secret ever leaves its origin, however many steps it takes [exec-6]", () => {
    const location = fc.oneof(
      fc.webUrl({ validSchemes: ["http", "https"] }),
      fc.webPath(),
      fc.constantFrom("//b.test/", "http://a.test/", "https://a.test/", "http://a.test:80", "\\\\b.test", "?x"),
      fc.string(),
    );
    const step = fc.tuple(fc.constantFrom(301, 302, 303, 307, 308), location);
    fc.assert(
      fc.property(fc.array(step, { maxLength: 6 }), (steps) => {
        const first = hop("POST", "http://a.test/");
        let now: { method: string; url: URL; headers: readonly { name: string; value: string }[] } = first;
        let left = false;
        for (const [status, to] of steps) {
          const next = redirected(now, status, to);
          if (next === undefined) continue;
          left ||= next.url.origin !== first.url.origin;
          const secrets = next.headers.filter(({ name }) => SECRETS.includes(name));
          expect(secrets.length).toBe(left ? 0 : SECRETS.length);
          now = next;
        }
      }),
      { numRuns: histories(2_000) },
    );
  });
});
