import { describe, expect, it } from "vitest";
import { coversName, parseRule, RuleError } from "./rules.js";

describe("rules of --allow", () => {
  it.each([
    ["wiki.internal", "name", undefined],
    ["WIKI.internal.:8080", "name", 8080],
    ["bücher.example", "name", undefined],
    ["a_b.corp:65535", "name", 65_535],
    ["*", "any", undefined],
    ["*:443", "any", 443],
    ["*.corp.example", "pattern", undefined],
    ["wiki-*.corp.example:80", "pattern", 80],
    ["10.1.2.3", "range", undefined],
    ["10.1.2.3:80", "range", 80],
    ["10.0.0.0/8", "range", undefined],
    ["10.0.0.0/8:443", "range", 443],
    ["0.0.0.0/0", "range", undefined],
    ["fd00::5", "range", undefined],
    ["[fd00::5]", "range", undefined],
    ["[fd00::5]:8080", "range", 8080],
    ["fd00::/8", "range", undefined],
    ["[fd00::/8]:443", "range", 443],
    ["::/0", "range", undefined],
    ["[::ffff:10.1.2.3]", "range", undefined],
  ])("%s is a rule: %s, port %s", (text, kind, port) => {
    expect(parseRule(text)).toMatchObject({ kind, port, text, opensLoopback: false });
  });

  it.each(["localhost", "localhost:80", "app.localhost", "*.localhost", "127.0.0.1", "127.0.0.0/8", "[::1]:80", "::1"])(
    "%s opens loopback",
    (text) => {
      expect(parseRule(text).opensLoopback).toBe(true);
    },
  );

  it.each([
    ["", "Name a host"],
    ["http://wiki.internal", "Write wiki.internal."],
    ["https://wiki.internal:8443/mcp?x=1", "Write wiki.internal:8443."],
    ["http://", "Write the host alone."],
    ["wiki.internal/mcp", "Write wiki.internal."],
    ["wiki.internal:8080/mcp", "Write wiki.internal:8080."],
    ["wiki.internal:0", "from 1 to 65535"],
    ["wiki.internal:65536", "from 1 to 65535"],
    ["wiki.internal:", "Leave it away"],
    ["wiki.internal:*", "Leave it away"],
    ["wiki.internal:http", "from 1 to 65535"],
    [":8080", "Write one before the port, or *:8080."],
    ["10.0.0.0/33", "Write one such as 10.0.0.0/8"],
    ["10.0.0.0/", "Write one such as 10.0.0.0/8"],
    ["10.0.0/8", "Write one such as 10.0.0.0/8"],
    ["10.1.2.3/8", "Write 10.0.0.0/8, or 10.1.2.3 alone."],
    ["fd12:3456::/8", "Write fd00::/8"],
    ["fd00::/8:443", "[fd00::/8]:443"],
    ["[fd00::]/8", "[fd00::/8]:443"],
    ["[fd00::5", "[fd00::5]:8080"],
    ["[10.1.2.3]:80", "Write 10.1.2.3:80."],
    ["fd00::zz", "such as fd00::5"],
    ["8080", "This is the address 0.0.31.144."],
    ["127.1", "This is the address 127.0.0.1."],
    ["0x7f.0.0.1", "This is the address 127.0.0.1."],
    ["a, b", "Repeat --allow"],
    ["a,b", "Repeat --allow"],
    ["wiki .internal", "without spaces"],
    ["wiki..internal", "no host name"],
    ["1.2.3.256", "no host name"],
    ["wiki%2einternal", "nothing else"],
    ["wiki.internal?x", "nothing else"],
    ["10.*", "Write addresses as a range"],
    ["**.corp", "One star is enough"],
    ["bü*.example", "plain letters"],
    [`${"a".repeat(64)}.internal`, "no host name"],
    ["a".repeat(301), "No host is that long"],
    ["169.254.169.254", "no rule opens"],
    ["169.254.0.0/16", "no rule opens"],
    ["[fe80::1]:80", "no rule opens"],
    ["0.0.0.0", "no rule opens"],
    ["[::ffff:169.254.169.254]", "no rule opens"],
    ["metadata.google.internal", "no rule opens"],
    ["64:ff9b::/96", "Write the IPv4 range"],
    ["::ffff:10.0.0.0/104", "Write the IPv4 range"],
  ])("%j is none, and the message says how to mend it: %s", (text, advice) => {
    const parse = () => parseRule(text);
    expect(parse).toThrow(RuleError);
    expect(parse).toThrow(advice);
    expect(parse).toThrow("--allow");
  });

  it("a rule with a password in it is not repeated", () => {
    expect(() => parseRule("http://me:hunter2@wiki.internal")).toThrow(RuleError);
    expect(() => parseRule("http://me:hunter2@wiki.internal")).not.toThrow("hunter2");
  });

  it.each([
    ["wiki.internal", "wiki.internal", true],
    ["wiki.internal", "evil.wiki.internal", false],
    ["wiki.internal", "wiki.internal.evil.example", false],
    ["*.corp.example", "wiki.corp.example", true],
    ["*.corp.example", "a.b.corp.example", true],
    ["*.corp.example", "corp.example", false],
    ["*.corp.example", "evilcorp.example", false],
    ["*.corp.example", "wiki.corp.example.evil.example", false],
    ["wiki*", "wiki2", true],
    ["wiki*", "wiki.evil.example", false],
    ["*-wiki.corp", "a-wiki.corp", true],
    ["*-wiki.corp", "a.b-wiki.corp", false],
    ["a.*.corp", "a.b.corp", true],
    ["a.*.corp", "a.b.c.corp", false],
    ["w*k*i.corp", "wki.corp", true],
    ["w*k*i.corp", "wi.corp", false],
    ["w*ki*i.corp", "wki.corp", false],
    ["aba*aba.corp", "ababa.corp", false],
    ["*.Bücher.example", "www.xn--bcher-kva.example", true],
    ["*", "wiki.internal", true],
    ["*", "localhost", false],
    ["*host", "localhost", false],
    ["*", "app.localhost", false],
    ["*.localhost", "app.localhost", true],
    ["*:443", "wiki.internal", false],
    ["wiki.internal:443", "wiki.internal", false],
    ["10.0.0.0/8", "wiki.internal", false],
  ])("%s covers %s on port 80: %s", (rule, name, covered) => {
    expect(coversName(parseRule(rule), name, 80)).toBe(covered);
  });

  it("a hostile pattern costs no more than another", () => {
    const rule = parseRule(`${"*a".repeat(30)}*b.corp`);
    const started = process.cpuUsage();
    for (let times = 0; times < 1_000; times += 1) coversName(rule, `${"a".repeat(63)}.corp`, 80);
    // Tried out in every way this is 10^17 comparisons.
    expect(process.cpuUsage(started).user).toBeLessThan(5_000_000);
  });
});
