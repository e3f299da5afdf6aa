import { type AddressInfo, BlockList, createServer, isIP } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  addressText,
  assess,
  contains,
  isLoopback,
  isLoopbackName,
  readAddress,
  readRange,
  startOf,
} from "./addresses.js";

const RUNS = { numRuns: 2_000 };

function read(text: string) {
  const address = readAddress(text);
  if (address === undefined) throw new Error(`${text} was not read`);
  return address;
}

const bytes4 = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 4, maxLength: 4 });
const bytes16 = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 255 })), { minLength: 16, maxLength: 16 });

describe("addresses", () => {
  it.each([
    "1.2.3",
    "1.2.3.4.5",
    "01.2.3.4",
    "256.1.1.1",
    "1.2.3.4 ",
    "0x7f.0.0.1",
    "2130706433",
    "",
    ":",
    ":::",
    "1::2::3",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "1:2:3:4:5:6:7::8",
    "::12345",
    "::1.2.3",
    "::1.2.3.4:5",
    "1.2.3.4::",
    "fe80::1%eth0",
    "[::1]",
    "::1:80 ",
    `${"0".repeat(60)}::1`,
  ])("reads no address out of %j", (text) => {
    expect(readAddress(text)).toBeUndefined();
  });

  it("takes what Node takes as an address, zones apart, and spells it as it was", () => {
    const texts = fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      bytes4.map((bytes) => `::ffff:${bytes.join(".")}`),
      fc.stringMatching(/^[0-9a-f:.]{2,24}$/),
    );
    fc.assert(
      fc.property(texts, (text) => {
        const address = readAddress(text);
        expect(address === undefined ? 0 : address.length === 4 ? 4 : 6).toBe(isIP(text));
        if (address !== undefined) expect(readAddress(addressText(address))).toEqual(address);
      }),
      RUNS,
    );
  });

  it("knows what lies in a range, as Node's own list does", () => {
    const cases = fc.oneof(
      fc.tuple(bytes4, bytes4, fc.integer({ min: 0, max: 32 }), fc.nat(32)),
      fc.tuple(bytes16, bytes16, fc.integer({ min: 0, max: 128 }), fc.nat(128)),
    );
    fc.assert(
      fc.property(cases, ([base, other, bits, shared]) => {
        // Half of the pairs share a prefix, or nearly all would differ in the first bits.
        const near = base.map((byte, at) => (at * 8 + 8 <= shared ? byte : (other[at] ?? 0)));
        const family = base.length === 4 ? "ipv4" : "ipv6";
        const list = new BlockList();
        const start = startOf({ base, bits });
        list.addSubnet(start, bits, family);
        for (const address of [base, other, near]) {
          // The list judges mapped addresses as IPv4, which is done elsewhere here.
          if (address.slice(0, 10).every((byte) => byte === 0)) continue;
          expect(contains({ base, bits }, address)).toBe(list.check(addressText(address), family));
        }
        expect(readRange(`${start}/${bits}`)).toEqual({ base: readAddress(start), bits });
      }),
      RUNS,
    );
  });

  it.each(["10.0.0.0/33", "fd00::/129", "10.0.0.0/", "10.0.0.0/08", "10.0.0.0/-1", "10.0.0.0", "/8", "10.0.0.0/8/8"])(
    "reads no range out of %j",
    (text) => {
      expect(readRange(text)).toBeUndefined();
    },
  );

  it.each([
    ["10.1.2.3", "open", "10.1.2.3"],
    ["fd00::5", "open", "fd00::5"],
    ["240.0.0.1", "open", "240.0.0.1"],
    ["127.0.0.1", "loopback", "127.0.0.1"],
    ["127.255.255.255", "loopback", "127.255.255.255"],
    ["::1", "loopback", "::1"],
    ["::ffff:127.0.0.1", "loopback", "127.0.0.1"],
    ["::ffff:10.1.2.3", "open", "10.1.2.3"],
    ["::ffff:0:10.1.2.3", "open", "10.1.2.3"],
    ["::10.1.2.3", "open", "10.1.2.3"],
    ["64:ff9b::10.1.2.3", "open", "10.1.2.3"],
    ["2002:a01:203::1", "open", "10.1.2.3"],
    // Teredo: server 8.8.8.8, client 10.1.2.3 with its bits turned.
    ["2001:0:808:808::f5fe:fdfc", "open", "10.1.2.3"],
  ])("%s is %s and judged as %s", (text, kind, subject) => {
    const assessed = assess(read(text));
    expect(assessed.addressClass.kind).toBe(kind);
    expect(addressText(assessed.subject)).toBe(subject);
  });

  it.each([
    ["169.254.169.254", "metadata"],
    ["100.100.100.200", "metadata"],
    ["168.63.129.16", "metadata"],
    ["192.0.0.192", "metadata"],
    ["fd00:ec2::254", "metadata"],
    ["fd00:ec2::23", "metadata"],
    ["fd20:ce::254", "metadata"],
    ["fd00:42::42", "metadata"],
    ["169.254.1.1", "link-local"],
    ["fe80::1", "link-local"],
    ["febf::1", "link-local"],
    ["0.0.0.0", "unspecified"],
    ["0.1.2.3", "unspecified"],
    ["::", "unspecified"],
    ["::2", "unspecified"],
    ["224.0.0.1", "multicast"],
    ["239.255.255.255", "multicast"],
    ["ff02::1", "multicast"],
    ["255.255.255.255", "broadcast"],
    ["::ffff:169.254.169.254", "metadata"],
    ["::169.254.169.254", "metadata"],
    ["::ffff:0:a9fe:a9fe", "metadata"],
    ["64:ff9b::a9fe:a9fe", "metadata"],
    ["64:ff9b:1::a9fe:a9fe", "NAT64"],
    ["2002:a9fe:a9fe::", "metadata"],
    ["2001::5601:5601", "metadata"],
    // The server of a Teredo address is spoken to as well.
    ["2001:0:a9fe:a9fe::f5fe:fdfc", "metadata"],
    ["64:ff9b::7f00:1", "loopback"],
    ["2002:7f00:1::", "loopback"],
    ["::127.0.0.1", "loopback"],
  ])("%s is never reached: %s", (text, what) => {
    const { addressClass } = assess(read(text));
    expect(addressClass).toMatchObject({ kind: "never", what: expect.stringContaining(what) });
  });
});

describe("loopback", () => {
  /** What it is to a server that may be open without a token, and what to a browser or in a rule. */
  const HOSTS: readonly [host: string, isLoopback: boolean, isName: boolean][] = [
    ["localhost", true, true],
    ["LOCALHOST", true, false],
    // The system asks DNS for these two.
    ["localhost.", false, false],
    ["a.localhost", false, true],
    ["a.b.localhost", false, true],
    ["localhost.example.com", false, false],
    ["notlocalhost", false, false],
    ["[localhost]", false, false],
    ["127.0.0.1", true, false],
    ["127.0.0.2", true, false],
    ["127.255.255.255", true, false],
    ["::1", true, false],
    ["[::1]", true, false],
    ["0:0:0:0:0:0:0:1", true, false],
    ["[0:0:0:0:0:0:0:1]", true, false],
    ["::ffff:127.0.0.1", true, false],
    ["::ffff:7f00:1", true, false],
    ["::FFFF:7F00:1", true, false],
    ["0.0.0.0", false, false],
    ["::", false, false],
    ["[::]", false, false],
    ["::2", false, false],
    ["::ffff:0.0.0.0", false, false],
    ["::ffff:10.0.0.1", false, false],
    // They lead to the loopback of whoever translates them.
    ["::127.0.0.1", false, false],
    ["64:ff9b::127.0.0.1", false, false],
    ["10.0.0.1", false, false],
    ["128.0.0.1", false, false],
    // Names, however much they look like addresses.
    ["127.0.0.1.example.com", false, false],
    ["127.0.0.1.", false, false],
    ["1.127.0.0.1", false, false],
    ["127.0.0.1.1", false, false],
    ["127.0.0.256", false, false],
    ["127.0.0.999", false, false],
    ["127.0.0.-1", false, false],
    ["", false, false],
    [" ", false, false],
    ["[]", false, false],
    ["[", false, false],
    [" 127.0.0.1", false, false],
    ["127.0.0.1 ", false, false],
    ["127.0.0.1\n", false, false],
    ["127.0.0.1:80", false, false],
    ["[::1]:80", false, false],
    ["[127.0.0.1", false, false],
    ["[127.0.0.1]", false, false],
    ["[[::1]]", false, false],
    // Some systems bind these to loopback, and others look them up.
    ["127.1", false, false],
    ["127.0.1", false, false],
    ["2130706433", false, false],
    ["0x7f000001", false, false],
    ["0x7f.0.0.1", false, false],
    ["0177.0.0.1", false, false],
    ["017700000001", false, false],
    ["127.0.0.01", false, false],
    ["127.000.000.001", false, false],
    ["0", false, false],
    ["１２７.0.0.1", false, false],
    ["::1%lo", false, false],
  ];

  it.each(HOSTS)("%j may be open without a token: %s; it is a name of this machine: %s", (host, open, isName) => {
    expect(isLoopback(host)).toBe(open);
    expect(isLoopbackName(host)).toBe(isName);
  });

  it.each(HOSTS.filter(([host, open]) => open && !host.startsWith("[")))(
    "is where a server that is told to listen at %j is bound, or nowhere",
    async (host) => {
      const server = createServer();
      const bound = await new Promise<string | undefined>((resolve) => {
        server.once("error", () => resolve(undefined));
        server.listen(0, host, () => resolve((server.address() as AddressInfo).address));
      });
      server.close();
      if (bound !== undefined) expect(isLoopback(bound), bound).toBe(true);
      else expect(host).toContain(":"); // A machine without IPv6.
    },
  );
});
