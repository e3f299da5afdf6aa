// Every message that can reach a person and stands in the source, with the hints, remedies and notes beside it: those that are
// sentences end as sentences, none has two full stops, and no state is glued to an "is".

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const src = fileURLToPath(new URL("../src", import.meta.url));

/** Those whose messages are shown as they are. What a FrameError, say, tells is a part of another's sentence. */
const WHOLE =
  "Fault|UserError|ControlError|StoreError|TokenError|RunError|StateDirError|StateMarkedError|OutboxError|EngineKeyError|" +
  "MoveError|SharedOutboxError|OperatorError|SessionError|CallError|HostCallError|EngineError|DrainError|PeerError";
const LITERAL = "\"(?:[^\"\\\\]|\\\\.)*\"|`(?:[^`\\\\]|\\\\.)*`|'(?:[^'\\\\]|\\\\.)*'";
/** The code goes first, where there is one. */
const THROWN = new RegExp(
  `(?:new (?:${WHOLE})|usageError)\\(\\s*(?:(?:"[\\w-]+"|[\\w.]+),\\s*)?((?:${LITERAL})(?:\\s*\\+\\s*(?:${LITERAL}))*)`,
  "g",
);
/** One text, or one of two. */
const ONE = `(?:${LITERAL})(?:\\s*\\+\\s*(?:${LITERAL}))*`;
const EITHER = `((?:[^\\n"'\`;,{}]*\\?\\s+)?${ONE}(?:\\s*:\\s*${ONE})?)`;
/** What to do about it: beside a message, or in its place; some have a name. */
const NAMED = /\b(?:hint|remedy): ([A-Z][A-Z_]+)\b/g;
const HINTED = [
  new RegExp(`\\b(?:hint|remedy)(?::|(?:: string(?: \\| undefined)?)? =)\\s*${EITHER}`, "g"),
  new RegExp(`usageError\\(\\s*${ONE},\\s*${EITHER}`, "g"),
];
const NOTED = [new RegExp(`\\bnote\\((?:\\s*(?:this\\.#)?io,)?\\s*${EITHER}`, "g")];
/** What is to be copied has no full stop behind it. */
const COMMAND = /:\s+(?:`?toolway|openssl|npx) [^.]*$|^For instance: [^.]*$/;
const isCommand = (text: string) => COMMAND.test(text.replace(/\$\{[^{}]*\}/g, "X").trimEnd());
/** A template within a template: where the outer one ends is not seen here. */
const isUnread = (text: string) => text.split("{").length > text.split("}").length;
/** Closed, or with what was worked out elsewhere, within parentheses too. */
const CLOSED = /(?:[.?!…]["'`)]?|\}\)?)$/;

interface Said {
  readonly file: string;
  readonly text: string;
}

const sources = readdirSync(src, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
  .map((file) => ({ file, source: readFileSync(join(src, file), "utf8") }));

const literalsOf = (source: string) =>
  [...source.matchAll(new RegExp(LITERAL, "g"))].map(([text]) => text.slice(1, -1));

/** Codes by themselves stand there too, where the message is worked out. */
const messages: readonly Said[] = sources.flatMap(({ file, source }) =>
  [...source.matchAll(THROWN)]
    .map(([, text = ""]) => ({ file, text: literalsOf(text).join("") }))
    .filter(({ text }) => text.includes(" ")),
);

const textsOf = (patterns: readonly RegExp[]): readonly Said[] =>
  sources.flatMap(({ file, source }) =>
    patterns
      .flatMap((pattern) => [...source.matchAll(pattern)])
      .flatMap(([, texts = ""]) => texts.match(new RegExp(ONE, "g")) ?? [])
      .map((text) => ({ file, text: literalsOf(text).join("").replaceAll("\\`", "`").replaceAll("\\n", "\n") }))
      .filter(({ text }) => text !== "" && !isUnread(text)),
  );

const named = new Set(sources.flatMap(({ source }) => [...source.matchAll(NAMED)].map(([, name]) => name)));
const hints = textsOf([...HINTED, new RegExp(`\\bconst (?:${[...named].join("|")}) =\\s*${EITHER}`, "g")]);

const shown = ({ file, text }: Said) => `${file}: ${text}`;

describe("a message of an error that people read", () => {
  it("ends as a sentence, or with what was worked out elsewhere, or with a command to copy", () => {
    expect(messages.length).toBeGreaterThan(300);
    const cut = messages.filter(({ text }) => !CLOSED.test(text) && !isCommand(text));
    expect(cut.map(shown)).toEqual([]);
  });

  it("has a hint or remedy that ends as it does; in the config's own mistakes it is a part of the line, in parentheses", () => {
    expect(named.size).toBeGreaterThan(5);
    const parts = hints.filter(({ file }) => file.startsWith("config/"));
    expect([hints.length > 200, parts.length > 50]).toEqual([true, true]);
    const cut = hints.filter((one) => !parts.includes(one) && !CLOSED.test(one.text) && !isCommand(one.text));
    expect(cut.map(shown)).toEqual([]);
    expect(parts.filter(({ text }) => /\.$/.test(text)).map(shown)).toEqual([]);
  });

  it("is noted as a whole, or stands before what is to be copied", () => {
    const notes = textsOf(NOTED);
    expect(notes.length).toBeGreaterThan(80);
    const cut = notes.filter(({ text }) => !CLOSED.test(text) && !/:$/.test(text) && !isCommand(text));
    expect(cut.map(shown)).toEqual([]);
  });

  it("has no two full stops in a row, and no sentence goes on behind another's message that may have none", () => {
    const wrong = sources.flatMap(({ file, source }) =>
      literalsOf(source)
        .filter((text) => /\w\.\.(?:\s|$)|\$\{(?:\w+\.)*(?:message|messageOf\([^}]*\))\} [A-Z]/.test(text))
        .map((text) => shown({ file, text })),
    );
    expect(wrong).toEqual([]);
  });

  it('says no state as it is called in the code behind an "is"', () => {
    const glued = sources.flatMap(({ file, source }) =>
      literalsOf(source)
        .filter((text) => /\b(?:is|was) \$\{(?:\w+\.)*(?:state|phase|health)\}/.test(text))
        .map((text) => shown({ file, text })),
    );
    expect(glued).toEqual([]);
  });
});
