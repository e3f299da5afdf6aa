import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { isRedacted, LEFT_OUT, Redactor, withoutRedacted } from "./redactor.js";
import { REDACTED } from "./safe-url.js";

/** What keys are made of, and what breaks naive escaping. */
const secret = fc
  .array(fc.constantFrom(...'abcXYZ0189+/=_-."\\ %&:é€😀$*(['), { minLength: 8, maxLength: 300 })
  .map((characters) => characters.join("").trim())
  .filter((text) => text.length >= 8);
const words = fc.stringMatching(/^[a-z ,:\n]{0,40}$/);

/** Each unit of UTF-16 by its hex. */
const escaped = (value: string, spell: (code: string) => string) =>
  Array.from({ length: value.length }, (_, at) => spell(value.charCodeAt(at).toString(16))).join("");

const SPELLINGS: readonly (readonly [name: string, spell: (value: string) => string])[] = [
  ["as it is", (value) => value],
  ["in JSON", (value) => JSON.stringify({ value })],
  ["in JSON in JSON", (value) => JSON.stringify({ body: JSON.stringify({ value }) })],
  ["in a URL", (value) => `https://host.example/a?q=${encodeURIComponent(value)}`],
  ["in a form", (value) => new URLSearchParams({ value }).toString().replace(/^value=/, "")],
  ["in base64", (value) => Buffer.from(value).toString("base64")],
  ["in base64url", (value) => Buffer.from(value).toString("base64url")],
  ["in base64 after one character", (value) => Buffer.from(`a${value}`).toString("base64")],
  ["in base64 after a user", (value) => `Basic ${Buffer.from(`me:${value}`).toString("base64")}`],
  ["in hex", (value) => Buffer.from(value).toString("hex")],
  ["in hex with capitals", (value) => Buffer.from(value).toString("hex").toUpperCase()],
  ["over two lines", (value) => `${value.slice(0, 4)}\n   ${value.slice(4)}`],
  ["a character a line", (value) => [...value].join("\n")],
  ["over two lines in JSON", (value) => `"${value.slice(0, 5)}\\n${value.slice(5)}"`],
  ["with every character escaped as in JSON", (value) => escaped(value, (code) => `\\u${code.padStart(4, "0")}`)],
  ["so in a string of JSON in JSON", (value) => escaped(value, (code) => `\\\\u${code.padStart(4, "0")}`)],
  ["with every character escaped as in HTML", (value) => escaped(value, (code) => `&#x${code};`)],
  [
    "with the first character escaped",
    (value) => escaped(value.slice(0, 1), (code) => `\\u${code.padStart(4, "0")}`) + value.slice(1),
  ],
  ["with colours inside", (value) => `${value.slice(0, 3)}\u001b[31m${value.slice(3)}`],
];

describe("a redactor", () => {
  it.each(SPELLINGS)("finds any secret that is written %s [secrets-unseen]", (name, spell) => {
    fc.assert(
      fc.property(secret, words, words, (value, before, after) => {
        // URLSearchParams leaves other characters as they are than encodeURIComponent does.
        if (name === "in a form" && /[*()~!']/.test(value)) return;
        // Where a line was broken, a space cannot be told from the indent, nor a backslash from that of the break.
        if (/ line/.test(name) && /[ \\]/.test(value)) return;
        const out = new Redactor([value]).redact(`${before}${spell(value)}${after}`);
        expect(out).toContain(REDACTED);
        expect(out).not.toContain(value);
        expect(out).not.toContain(spell(value));
      }),
      { numRuns: histories(500) },
    );
  });

  it("leaves no half of secrets that overlap, touch or contain each other [secrets-unseen]", () => {
    const letters = fc.stringMatching(/^[ab1]{8,14}$/);
    fc.assert(
      fc.property(
        fc.array(letters, { minLength: 1, maxLength: 12 }),
        fc.stringMatching(/^[ab1 ]{0,80}$/),
        (all, text) => {
          const out = new Redactor(all).redact(text);
          for (const value of all) expect(out).not.toContain(value);
          // What is no part of any secret is still there.
          const covered = new Array<boolean>(text.length).fill(false);
          for (const value of all) {
            for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + 1))
              covered.fill(true, at, at + value.length);
          }
          const kept = [...text].filter((_, at) => !covered[at]).join("");
          expect(out.replaceAll(REDACTED, "")).toBe(kept);
        },
      ),
      { numRuns: histories(2_000) },
    );
  });

  it("finds words that were wrapped where a space was, and leaves the lines around them [secrets-unseen]", () => {
    const redactor = new Redactor(["correct horse battery staple"]);
    expect(redactor.redact("one\nit is correct horse\n  battery staple.\ntwo")).toBe(`one\nit is ${REDACTED}.\ntwo`);
    expect(redactor.forAgents("one\nit is correct horse\n  battery staple.\ntwo")).toBe("one\ntwo");
    expect(redactor.redact("the correct horse\nhas a battery of staples")).toBe(
      "the correct horse\nhas a battery of staples",
    );
  });

  it("takes out the longest of those that begin alike", () => {
    expect(new Redactor(["hunter22", "hunter22-and-more"]).redact("it is hunter22-and-more.")).toBe(
      `it is ${REDACTED}.`,
    );
    expect(new Redactor(["abcdefgh", "efghijkl"]).redact("<abcdefghijkl>")).toBe(`<${REDACTED}>`);
  });

  it("takes a short value out where it stands alone, and not of the middle of words", () => {
    const redactor = new Redactor(["p4ss"]);
    expect(redactor.redact("password p4ss, 'p4ss' and p4ssport")).toBe(
      `password ${REDACTED}, '${REDACTED}' and p4ssport`,
    );
    expect(redactor.redact(`Basic ${Buffer.from("me:p4ss").toString("base64")}`)).toContain(REDACTED);
  });

  it("takes out the first half of a secret at the end of a text that was cut", () => {
    fc.assert(
      fc.property(secret, words, fc.nat(300), (value, before, cut) => {
        const text = before + value.slice(0, Math.max(4, Math.min(cut, value.length)));
        const redactor = new Redactor([value]);
        expect(redactor.redact(text, true)).not.toContain(text.slice(before.length));
      }),
    );
  });

  it("finds a part of a long value, such as a line of a key file", () => {
    const key = Array.from({ length: 40 }, (_, line) => `${line}`.padStart(64, "Zk9")).join("");
    expect(new Redactor([key]).redact(`>${key}<`)).toBe(`>${REDACTED}<`);
    expect(new Redactor([key]).redact(`>${key.slice(256, 1280)}<`)).toBe(`>${REDACTED}<`);
  });

  it("shows nothing at all of a server with more secrets than it looks for [bounded]", () => {
    const many = Array.from({ length: 5_001 }, (_, index) => `value-${index}-abc`);
    expect(new Redactor(many).redact("anything")).toBe(REDACTED);
    expect(new Redactor(["x".repeat(600_000)]).redact("anything")).toBe(REDACTED);
    expect(new Redactor(many).redact("")).toBe("");
  });

  it("takes time for the length of a text, not for the number of secrets [bounded]", () => {
    const many = Array.from({ length: 4_900 }, (_, index) => `sk-proj-${index.toString(36).padStart(8, "x")}`);
    const redactor = new Redactor(many);
    const text = "sk-proj-sk-proj-xxxx".repeat(800);
    const before = process.cpuUsage();
    redactor.redact(text);
    const { user } = process.cpuUsage(before);
    // One search of 16 KB for each spelling of each value takes seconds.
    expect(user).toBeLessThan(500_000);
    expect(redactor.redact(`${text} ${many[4_711]}`)).toContain(REDACTED);
  });

  it("knows what a connection learns besides, without changing what others know", () => {
    const shared = new Redactor(["of-the-entry"]);
    const own = shared.with(["of-the-session"]);
    expect(own.redact("of-the-entry of-the-session")).toBe(`${REDACTED} ${REDACTED}`);
    expect(shared.redact("of-the-session")).toBe("of-the-session");
  });
});

describe("tokens in URLs and headers of any text", () => {
  it.each([
    ["postgres://me:hush@db.example/app", `postgres://${REDACTED}@db.example/app`],
    [
      "fetch https://a.example/x?api_key=abc&page=2 failed",
      `fetch https://a.example/x?api_key=${REDACTED}&page=2 failed`,
    ],
    ["https://h.example/hooks/T02/a8Fk2LmQ9zXc7Vb1", `https://h.example/hooks/T02/${REDACTED}`],
    ["GET https://h.example/?q=a8Fk2LmQ9zXc7Vb1: 500", `GET https://h.example/?q=${REDACTED}`],
    ["Authorization: Bearer abc123def456", `Authorization: Bearer ${REDACTED}`],
  ])("%s is shown as %s", (text, shown) => {
    expect(new Redactor([]).redact(text)).toContain(shown);
  });

  it.each([
    "see https://docs.example.com/guides/getting-started?page=2#install",
    "ssh://git@github.com/owner/repo.git",
    "at file:///srv/app/node_modules/.pnpm/x@1.0.0_a8f3c2d19b4e7f60/index.js:10:5",
    "Bearer authentication is required",
    "a basic functionality",
    "key=value",
  ])("%s stays as it is", (text) => {
    expect(new Redactor([]).redact(text)).toBe(text);
  });
});

it("agents see the lines in which nothing was redacted, and are told where none is left", () => {
  const redactor = new Redactor(["hunter2hunter2"]);
  expect(redactor.forAgents("one\nkey hunter2hunter2\ntwo")).toBe("one\ntwo");
  expect(redactor.forAgents("key hunter2hunter2")).toBe(LEFT_OUT);
  expect(redactor.forAgents("one\ntwo")).toBe("one\ntwo");
  expect(isRedacted(withoutRedacted(`a ${REDACTED}\n`))).toBe(false);
});

it("a text of now that is looked at later is without the tokens of now, those that are renewed meanwhile, too", () => {
  const redactor = new Redactor(["opensesame-of-the-entry"]);
  redactor.follow(["first-token-4711"]);
  const then = redactor.asOfNow();
  redactor.follow(["second-token-4712"]);
  const text = "opensesame-of-the-entry, first-token-4711, second-token-4712";
  expect(then.redact(text)).toBe("[redacted], [redacted], second-token-4712");
  expect(redactor.redact(text)).toBe("[redacted], first-token-4711, [redacted]");
  expect(then.redact("the key is first-tok", true)).toBe("the key is [redacted]");
});
