import { describe, expect, it } from "vitest";
import { bodyRefusal, refusalOf } from "./guard.js";

const OWN = { port: 7421, secure: false, hosts: [] };
const PLAIN = {
  method: "GET",
  host: "127.0.0.1:7421",
  origin: undefined,
  fetchSite: undefined,
  contentType: undefined,
  hasBody: false,
};

describe("the operator's door", () => {
  it.each([
    ["a program of this machine", {}],
    ["a person who types the address", { fetchSite: "none" }],
    ["its own page", { fetchSite: "same-origin", origin: "http://127.0.0.1:7421" }],
    ["its own page by name", { host: "localhost:7421", fetchSite: "same-origin", origin: "http://localhost:7421" }],
    ["its own page over IPv6", { host: "[::1]:7421", origin: "http://[::1]:7421" }],
    ["a body in JSON", { method: "POST", hasBody: true, contentType: "application/json; charset=utf-8" }],
  ])("lets in %s", (_who, asked) => {
    expect(refusalOf({ ...PLAIN, ...asked }, OWN)).toBeUndefined();
  });

  it.each([
    ["a page on another port", { fetchSite: "same-site", origin: "http://127.0.0.1:9000" }],
    ["a page on another port, in a browser without Sec-Fetch-Site", { origin: "http://127.0.0.1:9000" }],
    ["a page of localhost at 127.0.0.1", { origin: "http://localhost:7421" }],
    ["a page of another site", { fetchSite: "cross-site" }],
    ["a page that hides where it is", { origin: "null" }],
    ["a name that was rebound to this machine", { host: "evil.example:7421" }],
    ["a name under localhost, which DNS answers for", { host: "a.localhost:7421" }],
    ["another port", { host: "127.0.0.1:7422" }],
    ["no port", { host: "127.0.0.1" }],
    ["no host", { host: undefined }],
    ["a post that nobody's script made", { method: "POST", fetchSite: "none" }],
    ["a form", { method: "POST", hasBody: true, contentType: "application/x-www-form-urlencoded" }],
    ["a text that is said to be plain", { method: "POST", hasBody: true, contentType: "text/plain" }],
    ["a body of no type", { method: "POST", hasBody: true }],
  ])("refuses %s", (_who, asked) => {
    expect(refusalOf({ ...PLAIN, ...asked }, OWN)).toMatch(/\.$|\)\.$/);
  });

  it("refuses bodies that say what is to run, or where to go, and lets in arguments that do", () => {
    for (const name of ["command", "args", "env", "url", "path"]) {
      expect(bodyRefusal({ server: "a", [name]: undefined })).toContain(`"${name}"`);
    }
    for (const body of [undefined, null, "command", {}, { tool: "run", arguments: { command: "ls", path: "/" } }]) {
      expect(bodyRefusal(body)).toBeUndefined();
    }
  });

  const NAMED = { port: 7421, secure: true, hosts: ["toolway.example", "other.example:8443"] };
  const PROXIED = { port: 7421, secure: false, hosts: ["toolway.example"] };

  it.each([
    ["a name of the config, with its port", NAMED, { host: "Toolway.example:7421", origin: undefined }],
    ["a name of the config, at the port of the scheme", NAMED, { host: "toolway.example" }],
    ["a name with a port of its own", NAMED, { host: "other.example:8443", origin: "https://other.example:8443" }],
    ["a loopback name, over TLS", NAMED, { origin: "https://127.0.0.1:7421" }],
    [
      "the page behind a proxy that speaks TLS",
      PROXIED,
      { host: "toolway.example", origin: "https://toolway.example" },
    ],
  ])("lets in %s", (_who, own, asked) => {
    expect(refusalOf({ ...PLAIN, ...asked }, own)).toBeUndefined();
  });

  it.each([
    ["a name below one of the config", NAMED, { host: "evil.toolway.example:7421" }],
    ["a name of the config at another port", NAMED, { host: "toolway.example:9000" }],
    ["a name whose port is another", NAMED, { host: "other.example:7421" }],
    ["a page in clear, where the door speaks TLS", NAMED, { origin: "http://127.0.0.1:7421" }],
    ["a page of another name of the config", NAMED, { host: "toolway.example", origin: "https://other.example:8443" }],
    ["a page over TLS at a loopback name in clear", PROXIED, { origin: "https://127.0.0.1:7421" }],
    ["a name that begins as one of the config", PROXIED, { host: "toolway.example.evil" }],
    ["what is no name", PROXIED, { host: "toolway.example/x" }],
  ])("refuses %s", (_who, own, asked) => {
    expect(refusalOf({ ...PLAIN, ...asked }, own)).toMatch(/\.$/);
  });
});
