import { describe, expect, it } from "vitest";
import { cliReference } from "../../../test/fixtures/cli-reference.js";
import { commands, groups } from "../commands/index.js";

it("docs/cli.md says what the commands say", async () => {
  await expect(cliReference(commands)).toMatchFileSnapshot("../../../docs/cli.md");
});

describe("every command", () => {
  const shown = commands.filter(({ metadata }) => metadata.hidden !== true);

  it("has an example that starts with it, and belongs to a known group", () => {
    for (const { metadata, examples } of shown) {
      expect(
        examples.some(({ line }) => line.includes(`toolway ${metadata.name}`)),
        metadata.name,
      ).toBe(true);
      const [group, verb] = metadata.name.split(" ");
      if (verb !== undefined) expect(groups).toHaveProperty(group ?? "");
    }
  });

  it("that prints has --json; scripts and protocols are exempt", () => {
    const without = shown.filter(({ options }) => !("json" in options)).map(({ metadata }) => metadata.name);
    expect(without).toEqual(["run", "stdio", "token header", "completion"]);
  });

  it("leaves it to the help to say which options may be repeated, so that it is said once", () => {
    const twice = shown.flatMap(({ metadata, options }) =>
      Object.values(options)
        .filter(({ description }) => description.includes("May be repeated"))
        .map(({ flag }) => `${metadata.name} ${flag}`),
    );
    expect(twice).toEqual([]);
  });

  it("spells its flags in kebab case", () => {
    const serve = commands.find(({ metadata }) => metadata.name === "serve");
    expect(serve?.options["tlsCert"]?.flag).toBe("--tls-cert");
    expect(serve?.options["noAuth"]?.flag).toBe("--no-auth");
  });
});
