import { afterEach, expect, it, vi } from "vitest";
import { redeemCode } from "./redeem.js";

afterEach(() => vi.unstubAllGlobals());

it.each(["ERR_SSL_WRONG_VERSION_NUMBER", "ERR_SSL_PACKET_LENGTH_TOO_LONG", "EPROTO"])(
  "a broker without TLS is told as such, with the word to type instead: %s [told-why]",
  async (code) => {
    const cause = Object.assign(new Error("806C108EBF7F0000:error:0A00010B:SSL routines"), { code });
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("fetch failed", { cause })));
    const word = { broker: "wss://10.0.0.7:7440", code: "ABCD-EFGH-JKMN" };
    const redeemed = redeemCode(word, { name: "laptop", signal: new AbortController().signal });
    await expect(redeemed).rejects.toThrow(
      /^What answers at wss:\/\/10\.0\.0\.7:7440 speaks no TLS\. .* write ws:\/\/10\.0\.0\.7:7440\/ABCD-EFGH-JKMN instead\.$/,
    );
  },
);
