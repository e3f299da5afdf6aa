import { describe, expect, it } from "vitest";
import { refusalOf } from "./guard.js";

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
    expect(refusalOf({ ...PLAIN, ...asked }, 7421)).toBeUndefined();
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
    expect(refusalOf({ ...PLAIN, ...asked }, 7421)).toMatch(/\.$|\)\.$/);
  });
});
