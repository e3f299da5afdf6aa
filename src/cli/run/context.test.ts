import { describe, expect, it } from "vitest";
import { contextOf, repositoryAt } from "./context.js";

const FILES: Readonly<Record<string, string>> = {
  "/work/.git/HEAD": "ref: refs/heads/feature/x\n",
  "/work/.git/config": '[remote "origin"]\n\turl = git@host:acme/site.git\n',
};

const at = (cwd: string, said: readonly string[] = [], files = FILES) =>
  contextOf({ client: "claude", cwd, said, read: (path) => files[path] });

it("a run tells its client, its folder, and the repository and branch of that, unless the line says otherwise [run-own]", () => {
  expect(at("/work/deep")).toEqual({
    context: { client: "claude", cwd: "/work/deep", repo: "acme/site", branch: "feature/x" },
    notes: [],
  });
  expect(at("/work", ["branch=main", "phase=a=b", "repo="]).context).toEqual({
    client: "claude",
    cwd: "/work",
    repo: "",
    branch: "main",
    phase: "a=b",
  });
  // What a run of before has set is not so now.
  expect(at("/elsewhere").context).toEqual({ client: "claude", cwd: "/elsewhere", repo: null, branch: null });
});

it("a fact of more than 256 characters is left out, and that is said; one of the line's own is not cut [run-own]", () => {
  const long = `/${"a".repeat(256)}`;
  expect(at(long)).toEqual({
    context: { client: "claude", cwd: null, repo: null, branch: null },
    notes: ["cwd has more than 256 characters, and is left out of the context."],
  });
  expect(at(long.slice(0, 256)).notes).toEqual([]);
  const branch = "b".repeat(300);
  const files = { "/work/.git/HEAD": `ref: refs/heads/${branch}\n` };
  expect(at("/work", [], files)).toMatchObject({
    context: { branch: null },
    notes: [expect.stringMatching(/^branch /)],
  });
});

it("a fact of the line reaches the gateway by whatever key, which refuses what is none [told-why]", () => {
  expect(Object.entries(at("/work", ["__proto__=x", "phase=review"]).context)).toEqual(
    expect.arrayContaining([
      ["__proto__", "x"],
      ["phase", "review"],
    ]),
  );
});

it.each(["phase", "=review", ""])(
  "a fact of the line that is none is refused, with what it should be: %j [told-why]",
  (fact) => {
    expect(() => at("/work", [fact])).toThrow(
      expect.objectContaining({
        message: `--context ${fact}: expected KEY=VALUE.`,
        hint: "For instance: --context phase=review",
        kind: "usage",
      }),
    );
  },
);

describe("the repository of a folder", () => {
  const found = (files: Readonly<Record<string, string>>, cwd = "/work/a/b") =>
    repositoryAt(cwd, (path) => files[path]);
  const origin = (url: string) =>
    `[core]\n\tbare = false\n[remote "other"]\n\turl = no\n[remote "origin"]\n\turl = ${url}\n`;

  it.each([
    ["git@github.com:acme/site.git", "acme/site"],
    ["https://user:pass@github.com/acme/site", "acme/site"],
    ["ssh://git@host:22/group/acme/site.git", "acme/site"],
    ["/srv/git/acme/site.git", "acme/site"],
  ])("is owner and name of origin, without what could be a password: %s [run-own]", (url, repo) => {
    const files = { "/work/.git/HEAD": "ref: refs/heads/feature/x\n", "/work/.git/config": origin(url) };
    expect(found(files)).toEqual({ repo, branch: "feature/x" });
  });

  it("is that of its work tree, has no branch where none is checked out, and is none elsewhere [run-own]", () => {
    const files = {
      "/work/a/.git": "gitdir: /main/.git/worktrees/a\n",
      "/main/.git/worktrees/a/HEAD": "0123abc\n",
      "/main/.git/worktrees/a/commondir": "../..\n",
      "/main/.git/config": origin("git@h:o/n.git"),
    };
    expect(found(files)).toEqual({ repo: "o/n", branch: undefined });
    expect(found({})).toEqual({ repo: undefined, branch: undefined });
  });
});
