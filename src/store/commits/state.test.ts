import { describe, expect, it } from "vitest";
import { type CommitWrite, decodeCommit, encodeCommit, findCommit } from "./commit.js";
import { CommitState, compareUtf8 } from "./state.js";

const put = (key: string, json: string): CommitWrite => ({ kind: "m", name: "m", key, json });
const gone = (key: string): CommitWrite => ({ kind: "m", name: "m", key, json: undefined });

function state(...commits: [sequence: number, ...writes: CommitWrite[]][]): CommitState {
  const made = new CommitState();
  for (const [sequence, ...writes] of commits) apply(made, sequence, ...writes);
  return made;
}

function apply(to: CommitState, sequence: number, ...writes: CommitWrite[]): void {
  to.follow({ id: `w.${sequence}`, after: [], writes }, "own", sequence, sequence);
}

const garbage = (of: CommitState) => of.takeGarbage().map(({ sequence }) => sequence);

describe("what commits come to", () => {
  it("is the same in whatever order they are told, and however often", () => {
    const one = state([1, put("k", "1")], [2, put("k", "2"), put("j", "3")], [3, gone("j")]);
    const two = state([3, gone("j")], [1, put("k", "1")], [2, put("k", "2"), put("j", "3")], [1, put("k", "1")]);
    for (const each of [one, two]) {
      expect(each.map("m").keys()).toEqual(["k"]);
      expect(each.map("m").json("k")).toBe("2");
      expect(each.map("m").revision("k")).toBe(2);
    }
  });

  it("needs no message whose writes are all superseded, and the last of a subject none the less", () => {
    const made = state([1, put("k", "1"), put("j", "1")], [2, put("k", "2")]);
    expect(garbage(made)).toEqual([]);
    apply(made, 3, put("j", "2"));
    expect(garbage(made)).toEqual([1]);
    apply(made, 4);
    expect(garbage(made)).toEqual([]);
  });

  it("keeps a deletion while an older message has a value that it would come back with", () => {
    const made = state([1, put("k", "1"), put("j", "1")], [2, gone("k")], [3, put("i", "1")]);
    expect(garbage(made)).toEqual([]);
    apply(made, 4, put("j", "2"));
    expect(garbage(made)).toEqual([1]);
    made.removed(1);
    expect(garbage(made)).toEqual([2]);
    expect(made.map("m").keys()).toEqual(["i", "j"]);
  });

  it("keeps a deletion that a writer came to know of before the stream told it what was deleted [ack-is-durable]", () => {
    const made = state([1, put("i", "1")]);
    made.apply({ id: "w.3", after: [], writes: [gone("k")] }, "own", 3, 3);
    made.apply({ id: "w.4", after: [], writes: [] }, "own", 4, 4);
    apply(made, 2, put("k", "1"));
    expect(made.map("m").keys()).toEqual(["i"]);
    apply(made, 3, gone("k"));
    apply(made, 4);
    expect(garbage(made)).toEqual([2]);
    made.removed(2);
    expect(garbage(made)).toEqual([3]);
    expect(made.map("m").keys()).toEqual(["i"]);
  });

  it("does not change when a message that was removed is told late", () => {
    const made = state([1, put("k", "1")], [2, gone("k")], [3, put("i", "1")]);
    made.removed(1);
    made.removed(2);
    apply(made, 1, put("k", "1"));
    expect(made.map("m").json("k")).toBeUndefined();
  });

  it("loses what is not told again when the stream is read from its start, and not what came since", () => {
    const made = state([1, put("a", "1")], [2, put("b", "1")], [5, put("c", "1")]);
    const told: unknown[] = [];
    made.map("m").listeners.add((key, json) => told.push([key, json]));
    made.restarted(4);
    apply(made, 2, put("b", "1"));
    made.current();
    expect(made.map("m").keys()).toEqual(["b", "c"]);
    expect(told).toEqual([["a", undefined]]);
  });

  it("orders keys by their UTF-8", () => {
    const keys = ["", "a", "a\u0000", "b", "ä", "\uffee", "\u{10000}", "\u{10ffff}"];
    expect(keys.toSorted(compareUtf8)).toEqual(keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
  });
});

describe("a commit", () => {
  it("is read as it was written, its values unchanged", () => {
    const writes: CommitWrite[] = [
      put("ü\n", '{ "a":  "\\n\u{1f600}" }'),
      gone("x"),
      { kind: "a", name: "l", key: 0, json: "1.0" },
    ];
    const commit = { id: "w.1", after: [["w.0", 3]] as const, writes };
    expect(decodeCommit(encodeCommit(commit))).toEqual(commit);
  });

  it("of a newer version is known as one, and what is none is foreign", () => {
    expect(decodeCommit('{"v":2,"other":true}\n')).toBe("newer");
    for (const body of ["", "{}", "[1]", "null", '{"v":1}\nx']) expect(decodeCommit(body)).toBe("foreign");
  });

  it("whose answer was lost is found by those after it, or known to be absent, or unknown [compare-and-set]", () => {
    expect(findCommit("me", "base", ["me", 5], [["base", 4]])).toEqual({ kind: "stored", sequence: 5 });
    expect(findCommit("me", "base", ["x", 6], [["me", 5]])).toEqual({ kind: "stored", sequence: 5 });
    expect(findCommit("me", "base", ["x", 5], [["base", 4]])).toEqual({ kind: "absent" });
    expect(findCommit("me", "base", ["base", 4], [])).toEqual({ kind: "absent" });
    expect(findCommit("me", undefined, ["x", 5], [])).toEqual({ kind: "absent" });
    expect(findCommit("me", undefined, undefined, [])).toEqual({ kind: "absent" });
    const many = Array.from({ length: 8 }, (_, i) => [`x${i}`, 20 - i] as const);
    expect(findCommit("me", "base", ["x", 21], many)).toEqual({ kind: "unknown" });
    expect(findCommit("me", undefined, ["x", 21], many)).toEqual({ kind: "unknown" });
  });
});
