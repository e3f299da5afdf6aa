// The table of hostile URLs, and what no rules can ever open.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { Destinations, type RefusalReason } from "./destinations.js";
import { RuleError } from "./rules.js";

const RUNS = { numRuns: histories(1_500, 4_000) };

/** What an operator may have written who thought of no attack. */
const OFFICE = ["wiki.internal", "*.corp.example:443", "10.0.0.0/8"];
const WIDE = ["*", "0.0.0.0/0", "::/0"];

/** Judged by the URL alone; nothing is resolved for any of them. */
const HOSTILE: readonly [string, readonly string[], RefusalReason][] = [
  // Metadata, in every spelling.
  ["http://169.254.169.254/latest/meta-data/", WIDE, "never"],
  ["http://169.254.169.254./latest/", WIDE, "never"],
  ["http://2852039166/", WIDE, "never"],
  ["http://0xA9FEA9FE/", WIDE, "never"],
  ["http://0xa9.0xfe.0xa9.0xfe/", WIDE, "never"],
  ["http://0251.0376.0251.0376/", WIDE, "never"],
  ["http://169.254.43518/", WIDE, "never"],
  ["http://①⑥⑨.②⑤④.①⑥⑨.②⑤④/", WIDE, "never"],
  ["http://１６９。２５４。１６９。２５４/", WIDE, "never"],
  ["http://169%2e254%2e169%2e254/", WIDE, "never"],
  ["http://[::ffff:169.254.169.254]/", WIDE, "never"],
  ["http://[::ffff:a9fe:a9fe]/", WIDE, "never"],
  ["http://[0:0:0:0:0:ffff:a9fe:a9fe]/", WIDE, "never"],
  ["http://[::169.254.169.254]/", WIDE, "never"],
  ["http://[64:ff9b::169.254.169.254]/", WIDE, "never"],
  ["http://[64:ff9b:1::169.254.169.254]/", WIDE, "never"],
  ["http://[2002:a9fe:a9fe::1]/", WIDE, "never"],
  ["http://[2001::5601:5601]/", WIDE, "never"],
  ["http://[fd00:ec2::254]/", [...WIDE, "fd00::/8"], "never"],
  ["http://[fd20:ce::254]/", WIDE, "never"],
  ["http://100.100.100.200/", WIDE, "never"],
  ["http://168.63.129.16/", WIDE, "never"],
  ["http://192.0.0.192/", [...WIDE, "192.0.0.0/24"], "never"],
  ["http://metadata.google.internal/computeMetadata/v1/", WIDE, "never"],
  ["http://METADATA.Google.Internal./", [...WIDE, "*.google.internal"], "never"],
  ["http://metadata\u00ad.google.internal/", WIDE, "never"],
  ["http://ｍｅｔａｄａｔａ/", WIDE, "never"],
  ["http://instance-data/latest/", WIDE, "never"],
  ["http://instance-data.eu-west-1.compute.internal/", WIDE, "never"],
  // Loopback, which no star and no wide range opens.
  ["http://localhost/", WIDE, "loopback"],
  ["http://LOCALHOST.:6379/", WIDE, "loopback"],
  ["http://app.localhost/", WIDE, "loopback"],
  ["http://127.0.0.1:2375/", WIDE, "loopback"],
  ["http://127.1/", WIDE, "loopback"],
  ["http://2130706433/", WIDE, "loopback"],
  ["http://0x7f.1/", WIDE, "loopback"],
  ["http://017700000001/", WIDE, "loopback"],
  ["http://127.255.255.254/", WIDE, "loopback"],
  ["http://[::1]/", WIDE, "loopback"],
  ["http://[0000:0000::0001]:8080/", WIDE, "loopback"],
  ["http://[::ffff:127.0.0.1]/", WIDE, "loopback"],
  ["http://[::ffff:7f00:1]/", ["[::1]"], "loopback"],
  ["http://127.0.0.1:9200/", ["127.0.0.1:8080"], "loopback"],
  ["http://127.0.0.2/", ["127.0.0.1", "localhost"], "loopback"],
  ["http://localhost:9200/", ["localhost:8080"], "loopback"],
  ["http://[64:ff9b::127.0.0.1]/", [...WIDE, "127.0.0.1"], "never"],
  // No address at all, and nobody's own.
  ["http://0/", WIDE, "never"],
  ["http://0.0.0.0:8080/", WIDE, "never"],
  ["http://[::]/", WIDE, "never"],
  ["http://169.254.1.1/", WIDE, "never"],
  ["http://[fe80::1]/", WIDE, "never"],
  ["http://224.0.0.251/", WIDE, "never"],
  ["http://[ff02::fb]/", WIDE, "never"],
  ["http://255.255.255.255/", WIDE, "never"],
  // Names and addresses that only look like allowed ones.
  ["http://wiki.internal.evil.example/", ["wiki.internal"], "no-rule"],
  ["http://evilwiki.internal/", ["wiki.internal"], "no-rule"],
  ["http://wiki%2einternal.evil.example/", ["wiki.internal"], "no-rule"],
  ["http://evil.example#.corp.example", ["*.corp.example"], "no-rule"],
  ["http://evil.example\\.corp.example/", ["*.corp.example"], "no-rule"],
  ["http://evil.example/?x=.corp.example", ["*.corp.example"], "no-rule"],
  ["http://corp.example/", ["*.corp.example"], "no-rule"],
  ["http://wiki.corp.example/", ["*.corp.example:443"], "no-rule"],
  ["http://xn--wki-fma.internal/", ["wiki.internal"], "no-rule"],
  ["http://wıki.internal/", ["wiki.internal"], "no-rule"],
  ["http://10.0.0.1:22/", ["10.0.0.0/8:443"], "no-rule"],
  ["http://11.0.0.1/", OFFICE, "no-rule"],
  ["http://[::ffff:11.0.0.1]/", [...OFFICE, "::/0"], "no-rule"],
  ["http://8.8.8.8/", ["wiki.internal"], "no-rule"],
  ["http://anything.example/", [], "no-rule"],
  // Other schemes, users, and hosts that are none.
  ["https://wiki.internal@evil.example/", OFFICE, "userinfo"],
  ["http://user:secret@wiki.internal/", OFFICE, "userinfo"],
  ["http://:secret@wiki.internal/", OFFICE, "userinfo"],
  ["file:///etc/passwd", WIDE, "scheme"],
  ["ftp://wiki.internal/", WIDE, "scheme"],
  ["gopher://wiki.internal:6379/_FLUSHALL", WIDE, "scheme"],
  ["ws://wiki.internal/", WIDE, "scheme"],
  ["javascript:alert(1)", WIDE, "scheme"],
  ["data:text/plain,hello", WIDE, "scheme"],
  ["blob:http://wiki.internal/1", WIDE, "scheme"],
  ["http://wiki..internal/", WIDE, "host"],
  ["http://localhost../", WIDE, "host"],
  [`http://${"a".repeat(64)}.example/`, WIDE, "host"],
];

describe("destinations [exec-6]", () => {
  it.each(HOSTILE)("[exec-6] %s with %j is refused: %s", (url, rules, reason) => {
    const verdict = Destinations.parse(rules).judgeUrl(new URL(url));
    expect(verdict).toMatchObject({ kind: "refused", reason });
    if (verdict.kind === "refused") {
      expect(verdict.why).toMatch(/\.$/);
      expect(verdict.advice).toMatch(/\.$/);
      expect(verdict.why + verdict.advice).not.toContain("secret");
    }
  });

  it.each([
    "http://1.2.3.256/",
    "http://0x100000000/",
    "http://[::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://wiki.internal:99999/",
    "http://wiki internal/",
    "http://a.0x4/",
  ])("[exec-6] %s is no URL to begin with", (url) => {
    expect(() => new URL(url)).toThrow("Invalid URL");
  });

  it.each([
    ["http://wiki.internal/mcp", OFFICE, "wiki.internal", 80],
    ["http://wiki.internal:9999/mcp", OFFICE, "wiki.internal", 9999],
    ["http://WIKI.internal./", OFFICE, "wiki.internal", 80],
    ["http://ｗｉｋｉ.internal/", OFFICE, "wiki.internal", 80],
    ["https://a.b.corp.example/", OFFICE, "*.corp.example:443", 443],
    ["http://10.200.0.1:8080/", OFFICE, "10.0.0.0/8", 8080],
    ["http://0xa000001/", OFFICE, "10.0.0.0/8", 80],
    ["http://[::ffff:10.0.0.1]/", OFFICE, "10.0.0.0/8", 80],
    ["http://[64:ff9b::10.0.0.1]/", OFFICE, "10.0.0.0/8", 80],
    ["http://anything.example/", ["*"], "*", 80],
    ["http://8.8.8.8/", ["*"], "*", 80],
    ["http://[2606:4700::1]/", ["*:80"], "*:80", 80],
    ["http://[fd00::5]:8080/", ["[fd00::5]:8080"], "[fd00::5]:8080", 8080],
    ["http://localhost:8080/", ["localhost"], "localhost", 8080],
    ["http://127.0.0.1:8080/", ["127.0.0.1"], "127.0.0.1", 8080],
    ["http://127.9.9.9/", ["127.0.0.0/8"], "127.0.0.0/8", 80],
    ["http://[::1]/", ["::1"], "::1", 80],
    ["http://bücher.example/", ["bücher.example"], "bücher.example", 80],
  ])("%s with %j is allowed by %s", (url, rules, rule, port) => {
    expect(Destinations.parse(rules).judgeUrl(new URL(url))).toMatchObject({ kind: "allowed", rule, port });
  });

  it("a name that only a range can allow is to be resolved first, and only where a range has its port", () => {
    const destinations = Destinations.parse(["10.0.0.0/8:443", "127.0.0.1:9"]);
    expect(destinations.judgeUrl(new URL("https://intranet/"))).toMatchObject({ kind: "by-address", host: "intranet" });
    expect(destinations.judgeUrl(new URL("http://intranet/"))).toMatchObject({ kind: "refused", reason: "no-rule" });
    expect(destinations.judgeUrl(new URL("https://localhost/"))).toMatchObject({ kind: "refused", reason: "loopback" });
    expect(destinations.judgeUrl(new URL("http://localhost:9/"))).toMatchObject({ kind: "by-address" });
  });

  it.each([
    ["http://wiki.internal/", ["wiki.internal"], "192.168.1.1", "wiki.internal"],
    ["http://wiki.internal/", ["wiki.internal"], "127.0.0.1", "loopback"],
    ["http://wiki.internal/", ["wiki.internal"], "::1", "loopback"],
    ["http://wiki.internal/", ["wiki.internal"], "::ffff:127.0.0.1", "loopback"],
    ["http://wiki.internal/", ["wiki.internal"], "169.254.169.254", "never"],
    ["http://wiki.internal/", ["wiki.internal"], "0.0.0.0", "never"],
    ["http://wiki.internal/", ["wiki.internal"], "fe80::1%eth0", "host"],
    ["http://wiki.internal/", ["wiki.internal"], "127.1", "host"],
    ["http://wiki.internal/", ["wiki.internal", "localhost"], "127.0.0.1", "loopback"],
    ["http://wiki.internal/", ["wiki.internal", "127.0.0.1"], "127.0.0.1", "127.0.0.1"],
    ["http://wiki.internal/", ["wiki.internal", "127.0.0.1:81"], "127.0.0.1", "loopback"],
    ["http://wiki.internal/", ["*"], "127.0.0.1", "loopback"],
    ["http://wiki.internal/", ["*"], "10.0.0.1", "*"],
    ["http://wiki.internal/", ["10.0.0.0/8"], "10.0.0.1", "10.0.0.0/8"],
    ["http://wiki.internal/", ["10.0.0.0/8"], "11.0.0.1", "no-rule"],
    ["http://wiki.internal/", ["0.0.0.0/0"], "127.0.0.1", "loopback"],
    ["http://localhost/", ["localhost"], "127.0.0.1", "localhost"],
    ["http://localhost/", ["localhost"], "::1", "localhost"],
    ["http://localhost/", ["*", "localhost"], "::1", "localhost"],
    ["http://localhost/", ["localhost"], "169.254.169.254", "never"],
    ["http://app.localhost/", ["*.localhost"], "127.0.0.1", "*.localhost"],
    ["http://localhost/", ["127.0.0.1"], "::1", "loopback"],
    ["http://10.0.0.1/", ["10.0.0.0/8"], "10.0.0.1", "10.0.0.0/8"],
    // A verdict on one address is none on another.
    ["http://8.8.8.8/", ["*"], "10.0.0.1", "host"],
  ])("[exec-6] %s with %j at %s: %s", (url, rules, address, outcome) => {
    const destinations = Destinations.parse(rules);
    const verdict = destinations.judgeAddress(address, destinations.judgeUrl(new URL(url)));
    expect(verdict.kind === "allowed" ? verdict.rule : verdict.reason).toBe(outcome);
  });

  it("an address says nothing for a host that was refused", () => {
    const destinations = Destinations.parse(["10.0.0.0/8"]);
    const verdict = destinations.judgeUrl(new URL("ftp://wiki.internal/"));
    expect(destinations.judgeAddress("10.0.0.1", verdict)).toMatchObject({ kind: "refused", reason: "scheme" });
  });

  it("a refusal names the narrowest rule that is missing", () => {
    const judge = (url: string) => Destinations.parse([]).judgeUrl(new URL(url));
    expect(judge("https://wiki.internal/")).toMatchObject({
      advice: expect.stringContaining("--allow wiki.internal:443 "),
    });
    expect(judge("http://[fd00::5]/")).toMatchObject({ advice: expect.stringContaining("--allow [fd00::5]:80 ") });
    const wiki = Destinations.parse(["wiki.internal"]);
    expect(wiki.judgeAddress("::1", wiki.judgeUrl(new URL("http://wiki.internal:81/")))).toMatchObject({
      why: expect.stringContaining("::1"),
      advice: expect.stringContaining("--allow [::1]:81 "),
    });
    // And that rule does it.
    expect(Destinations.parse(["wiki.internal:443"]).judgeUrl(new URL("https://wiki.internal/")).kind).toBe("allowed");
  });
});

const byte = fc.integer({ min: 0, max: 255 });
const hextet = fc.integer({ min: 0, max: 0xffff });
const byte4 = fc.tuple(byte, byte, byte, byte);

const never4 = fc.oneof(
  fc.constantFrom([169, 254, 169, 254], [100, 100, 100, 200], [168, 63, 129, 16], [192, 0, 0, 192]),
  fc.constant([255, 255, 255, 255]),
  byte4.map(([, b, c, d]) => [0, b, c, d]),
  byte4.map(([, , c, d]) => [169, 254, c, d]),
  byte4.map(([a, b, c, d]) => [224 + (a & 15), b, c, d]),
);

/** An IPv4 address as URLs may spell it. */
function spellings(address: readonly number[]): fc.Arbitrary<string> {
  const [a = 0, b = 0, c = 0, d = 0] = address;
  const number = ((a * 256 + b) * 256 + c) * 256 + d;
  return fc.constantFrom(
    address.join("."),
    `${address.join(".")}.`,
    String(number),
    `0x${number.toString(16)}`,
    `0${number.toString(8)}`,
    `${a}.${(b * 256 + c) * 256 + d}`,
    `0x${a.toString(16)}.0${b.toString(8)}.${c * 256 + d}`,
    `[${mapped(address)}]`,
  );
}

const hex = (a: number, b: number) => ((a << 8) | b).toString(16);

function mapped([a = 0, b = 0, c = 0, d = 0]: readonly number[]): string {
  return `::ffff:${hex(a, b)}:${hex(c, d)}`;
}

/** IPv6 that leads to an IPv4. */
function carried([a = 0, b = 0, c = 0, d = 0]: readonly number[], rest: number): string[] {
  const low = `${hex(a, b)}:${hex(c, d)}`;
  const turned = `${hex(a ^ 255, b ^ 255)}:${hex(c ^ 255, d ^ 255)}`;
  return [
    `::${low}`,
    `::ffff:0:${low}`,
    `64:ff9b::${low}`,
    `2002:${low}:${rest.toString(16)}::1`,
    `2001:0:808:808:${rest.toString(16)}:0:${turned}`,
    `2001:0:${low}:${rest.toString(16)}:0:f7f7:f7f7`,
  ];
}

const never6 = fc.oneof(
  fc.constantFrom("::", "fd00:ec2::254", "fd20:ce::254", "fd00:42::42"),
  fc
    .tuple(hextet, hextet, hextet)
    .map(([a, b, c]) => `${(0xfe80 | (a & 0x3f)).toString(16)}::${b.toString(16)}:${c.toString(16)}`),
  fc.tuple(byte, hextet).map(([a, b]) => `${(0xff00 | a).toString(16)}::${b.toString(16)}`),
  fc.tuple(hextet, hextet).map(([a, b]) => `64:ff9b:1:${a.toString(16)}::${b.toString(16)}`),
  fc.tuple(never4, hextet, fc.nat(5)).map(([address, rest, which]) => carried(address, rest)[which] ?? "::"),
);

const host = fc.oneof(
  never4.chain(spellings),
  never6.map((address) => `[${address}]`),
);

/** Rules as wide as they can be, and any others; what is no rule cannot be given. */
const rules = fc
  .array(
    fc.oneof(
      fc.constantFrom("*", "*:80", "0.0.0.0/0", "::/0", "0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1", "fc00::/7"),
      fc.constantFrom("wiki.internal", "*.internal", "localhost", "127.0.0.0/8", "::1", "100.64.0.0/10", "168.0.0.0/6"),
      never4.map((address) => address.join(".")),
      never6,
      fc.tuple(byte4, fc.nat(32)).map(([address, bits]) => `${address.join(".")}/${bits}`),
      fc.tuple(never4, fc.nat(32)).map(([address, bits]) => `${address.join(".")}/${bits}`),
      fc.tuple(never6, fc.nat(128)).map(([address, bits]) => `${address}/${bits}`),
    ),
    { maxLength: 8 },
  )
  .map((texts) => texts.filter(isRule));

function isRule(text: string): boolean {
  try {
    Destinations.parse([text]);
    return true;
  } catch (error) {
    if (error instanceof RuleError) return false;
    throw error;
  }
}

describe("whatever the rules [exec-6]", () => {
  it("[exec-6] no literal that is never reached is allowed", () => {
    fc.assert(
      fc.property(host, rules, (name, texts) => {
        const destinations = Destinations.parse(["*", ...texts]);
        expect(destinations.judgeUrl(new URL(`http://${name}/`))).toMatchObject({ kind: "refused", reason: "never" });
      }),
      RUNS,
    );
  });

  it("[exec-6] no name leads to an address that is never reached", () => {
    const addresses = fc.oneof(
      never4.map((address) => address.join(".")),
      never4.map(mapped),
      never6,
    );
    fc.assert(
      fc.property(
        addresses,
        rules,
        fc.constantFrom("wiki.internal", "localhost", "intranet"),
        (address, texts, name) => {
          const destinations = Destinations.parse(["*", "localhost", ...texts]);
          const verdict = destinations.judgeUrl(new URL(`http://${name}/`));
          expect(verdict.kind).toBe("allowed");
          expect(destinations.judgeAddress(address, verdict)).toMatchObject({ kind: "refused", reason: "never" });
        },
      ),
      RUNS,
    );
  });

  it("[exec-6] loopback is opened by rules that name it and by no others", () => {
    const addresses = fc.oneof(
      byte4.map(([, b, c, d]) => [127, b, c, d].join(".")),
      fc.constant("::1"),
    );
    const namesLoopback = (rule: string) => rule === "localhost" || rule === "::1" || rule.startsWith("127.");
    fc.assert(
      fc.property(addresses, rules, (address, texts) => {
        const named = texts.some(namesLoopback);
        const destinations = Destinations.parse(["*", "wiki.internal", ...texts]);
        const literal = destinations.judgeUrl(new URL(`http://${address.includes(":") ? `[${address}]` : address}/`));
        const resolved = destinations.judgeAddress(address, destinations.judgeUrl(new URL("http://wiki.internal/")));
        if (!named) expect([literal, resolved]).toMatchObject([{ reason: "loopback" }, { reason: "loopback" }]);
        expect(resolved.kind).toBe(literal.kind);
      }),
      RUNS,
    );
  });
});
