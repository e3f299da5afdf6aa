import { expect, it } from "vitest";
import { safeAddress, safeUrl } from "./safe-url.js";

it.each([
  ["https://user:hush@host.example:8443/a/b?token=hush#hush", "https://host.example:8443/a/b"],
  ["ws://hush@127.0.0.1:7430/executors/office?hush", "ws://127.0.0.1:7430/executors/office"],
  ["http://[::1]/", "http://[::1]/"],
])("shows %s as %s", (url, shown) => {
  expect(safeUrl(new URL(url))).toBe(shown);
});

it("shows an address without a path that is only a slash", () => {
  expect(safeAddress(new URL("ws://user:hush@host/?hush"))).toBe("ws://host");
  expect(safeAddress(new URL("ws://host/a/?hush"))).toBe("ws://host/a/");
});
