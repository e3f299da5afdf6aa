// Every message that can reach a person and stands in the source: those that are sentences end as sentences, none has two full
// stops, and no state is glued to an "is".

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
/** What is to be copied has no full stop behind it. */
const COMMAND = /: (?:openssl|toolway|npx) [^.]*$/;

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

const shown = ({ file, text }: Said) => `${file}: ${text}`;

describe("a message of an error that people read", () => {
  it("ends as a sentence, or with what was worked out elsewhere, or with a command to copy", () => {
    expect(messages.length).toBeGreaterThan(300);
    const cut = messages.filter(({ text }) => !/(?:[.?!…]["'`)]?|\})$/.test(text) && !COMMAND.test(text));
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
