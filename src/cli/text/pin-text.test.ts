import { expect, it } from "vitest";
import { ownToolName } from "../../contracts/names.js";
import type { Io } from "../line/io.js";
import { pinDiffText } from "./pin-text.js";

it("a hidden character cannot be forged: what is written as an escape is told from what is one", () => {
  const io = { env: {}, isTTY: false } as Io;
  const side = (description: string) => ({ hash: "h", at: "now", definition: JSON.stringify({ description }) });
  const shown = (description: string) =>
    pinDiffText({ server: "s", tool: ownToolName("t"), old: side("plain"), new: side(description) }, io);
  expect(shown("\u202e")).toContain("\\u{202E}");
  expect(shown("\\u{202E}")).toContain("u{202E}");
  expect(shown("\\u{202E}")).not.toBe(shown("\u202e"));
});
