import { expect, it } from "vitest";
import { defineCommand } from "./command.js";
import { setRestApart } from "./rest-words.js";

const take = defineCommand({
  metadata: { name: "take", summary: "" },
  args: {
    name: { required: true, description: "" },
    command: { required: true, description: "", rest: { alone: /^https?:/ } },
  },
  options: {
    env: { value: "K=V", repeat: true, atEnd: true, description: "" },
    quick: { atEnd: true, description: "" },
    config: { value: "FILE", description: "" },
  },
  examples: [],
  handler: async () => 0,
});

it.each([
  ["take a npx -y x", "take -- a npx -y x"],
  ["take a npx -y x --env K=V --quick", "take --env K=V --quick -- a npx -y x"],
  ["take --env K=V a npx -y x", "take --env K=V -- a npx -y x"],
  ["take a --config f npx --config g", "take --config f -- a npx --config g"],
  ["take a docker run --env K=V image", "take -- a docker run --env K=V image"],
  ["take a docker run --env=K=V image --env=A=B", "take --env=A=B -- a docker run --env=K=V image"],
  ["take a -- npx x --quick", "take -- a npx x --quick"],
  ["take a npx -- x --quick", "take -- a npx -- x --quick"],
  ["take a npx -- --quick", "take -- a npx -- --quick"],
  ["take a https://x --config f --quick", "take --config f --quick -- a https://x"],
  ["take --help", "take --help"],
  ["take a npx --help", "take -- a npx --help"],
  ["take a --env", "take --env -- a"],
  ["other a -y", "other a -y"],
])("%s is read as %s", (line, expected) => {
  expect(setRestApart(line.split(" "), [take]).join(" ")).toBe(expected);
});
