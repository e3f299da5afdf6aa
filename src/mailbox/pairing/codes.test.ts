import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { seeded } from "../../../test/faults/random.js";
import { codeText, pairWord, readCode, readPairWord } from "./code-text.js";
import { PAIRING_LIMITS, PairingCodes } from "./codes.js";

const { codeMs, maxOpen, maxOfOne, maxWrong, windowMs, pauseMs } = PAIRING_LIMITS;
const STUDIO = { mailbox: "studio", role: "default" };

describe("pairing codes", () => {
  it("are good once, for ten minutes, and at most so many are open [bounded]", () => {
    const codes = new PairingCodes();
    expect(codes.open("a", STUDIO, 0)).toBe("open");
    expect(codes.redeem("a", codeMs - 1)).toEqual({ kind: "paired", pairing: STUDIO });
    expect(codes.redeem("a", codeMs - 1)).toEqual({ kind: "wrong" });
    expect(codes.open("b", STUDIO, 0)).toBe("open");
    expect(codes.redeem("b", codeMs)).toEqual({ kind: "wrong" });
    for (let n = 0; n < maxOfOne; n++) expect(codes.open(`c${n}`, STUDIO, codeMs)).toBe("open");
    // One that asks in a loop takes no other's.
    expect(codes.open("d", STUDIO, codeMs)).toBe("full-of-one");
    for (let n = maxOfOne; n < maxOpen; n++) {
      expect(codes.open(`c${n}`, { ...STUDIO, mailbox: `of-${n}` }, codeMs)).toBe("open");
    }
    expect(codes.open("d", { ...STUDIO, mailbox: "lab" }, codeMs)).toBe("full");
    expect(codes.open("d", STUDIO, 2 * codeMs)).toBe("open");
    expect(codes.size).toBe(1);
  });

  it("cannot be guessed for a while after five wrong tries, whoever made them [bounded]", () => {
    const codes = new PairingCodes();
    codes.open("a", STUDIO, 0);
    for (let n = 0; n < maxWrong; n++) expect(codes.redeem(`wrong ${n}`, n)).toEqual({ kind: "wrong" });
    expect(codes.redeem("a", maxWrong)).toMatchObject({ kind: "paused", leftMs: pauseMs - 1 });
    expect(codes.redeem("a", maxWrong - 1 + pauseMs)).toEqual({ kind: "paired", pairing: STUDIO });
    // Wrong ones that lie further apart are people who mistype.
    for (let n = 1; n < 20; n++) {
      expect(codes.redeem("x", n * windowMs * 2).kind).toBe("wrong");
    }
  });

  it("do what a simple model says, in any history", () => {
    for (let seed = 1; seed <= histories(2_000); seed++) {
      const random = seeded(seed);
      const codes = new PairingCodes({ codeMs: 100, maxOpen: 3, maxOfOne: 3, maxWrong: 3, windowMs: 40, pauseMs: 30 });
      let nowMs = 0;
      let open: { hash: string; endMs: number }[] = [];
      let wrong: number[] = [];
      let pausedUntil = -1;
      for (let step = 0; step < 60; step++) {
        nowMs += random.int(25);
        open = open.filter(({ endMs }) => endMs > nowMs);
        const code = `c${random.int(6)}`;
        let wanted: string;
        let got: string;
        if (random.chance(0.4) && !open.some(({ hash }) => hash === code)) {
          wanted = String(open.length < 3);
          got = String(codes.open(code, STUDIO, nowMs) === "open");
          if (open.length < 3) open.push({ hash: code, endMs: nowMs + 100 });
        } else {
          got = codes.redeem(code, nowMs).kind;
          if (nowMs < pausedUntil) wanted = "paused";
          else if (open.some(({ hash }) => hash === code)) {
            wanted = "paired";
            open = open.filter(({ hash }) => hash !== code);
          } else {
            wanted = "wrong";
            wrong = [...wrong.filter((at) => at > nowMs - 40), nowMs];
            if (wrong.length >= 3) {
              wrong = [];
              pausedUntil = nowMs + 30;
            }
          }
        }
        if (got !== wanted) throw new Error(`seed ${seed}, step ${step}: ${got}, and not ${wanted}`);
        if (codes.size > 3) throw new Error(`seed ${seed}, step ${step}: ${codes.size} are open`);
      }
    }
  });
});

describe("a code as people write it", () => {
  it("has 60 bits in groups, and is read as it was meant", () => {
    const random = seeded(7);
    for (let n = 0; n < 500; n++) {
      const code = codeText(random.bytes(12));
      expect(code).toMatch(/^([0-9A-HJKMNP-TV-Z]{4}-){2}[0-9A-HJKMNP-TV-Z]{4}$/);
      const plain = code.replaceAll("-", "");
      const typed = code
        .toLowerCase()
        .replaceAll("0", "o")
        .replaceAll("1", random.pick(["i", "l", "L", "1"]));
      expect(readCode(` ${typed.replaceAll("-", random.pick([" ", "", "-"]))} `)).toBe(plain);
    }
    for (const bad of ["", "ABCD", "ABCD-EFGH-JKM", "ABCD-EFGH-JKMNP", "ABCD-EFGH-JKMU", "ABCD_EFGH_JKMN"]) {
      expect(readCode(bad), bad).toBeUndefined();
    }
  });

  it("has the broker's address before it, in one word", () => {
    const code = "ABCD-EFGH-JKMN";
    const words: [broker: string, word: string][] = [
      ["ws://127.0.0.1:7440", `127.0.0.1:7440/${code}`],
      ["ws://[::1]:7440/mailboxes", `[::1]:7440/${code}`],
      ["wss://broker.example.com", `broker.example.com/${code}`],
      ["wss://example.com/tools", `example.com/tools/${code}`],
      ["ws://10.0.0.5:7440", `ws://10.0.0.5:7440/${code}`],
      ["wss://localhost:7440", `wss://localhost:7440/${code}`],
    ];
    for (const [broker, word] of words) {
      expect(pairWord(broker, code)).toBe(word);
      const read = readPairWord(word);
      expect(read?.code).toBe("ABCDEFGHJKMN");
      expect(read?.broker).toBe(broker.replace(/\/mailboxes$/, ""));
    }
    expect(readPairWord(`https://broker.example.com/${code}`)?.broker).toBe("wss://broker.example.com");
    for (const bad of [code, "127.0.0.1:7440", "127.0.0.1:7440/nope", `ftp://h/${code}`, `u:p@h/${code}`, `/${code}`]) {
      expect(readPairWord(bad), bad).toBeUndefined();
    }
  });
});
