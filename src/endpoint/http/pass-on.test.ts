import type { IncomingMessage, ServerResponse } from "node:http";
import { expect, it } from "vitest";
import type { Homes } from "../../contracts/engine/homes.js";
import { PeerError, type PeerErrorCode } from "../../contracts/engine/peers.js";
import { passOn } from "./pass-on.js";

it("a gateway is called gone where it is not there, and not where too much is under way here to ask it [told-truly]", async () => {
  const goneAfter = async (code: PeerErrorCode) => {
    const gone: string[] = [];
    const homes = {
      connect: () => Promise.reject(new PeerError(code, "no")),
      gone: (gateway: string) => void gone.push(gateway),
    } as unknown as Homes;
    const served = new Promise<void>((resolve) => {
      passOn(homes, "b", {} as IncomingMessage, { destroyed: false } as ServerResponse, undefined, resolve);
    });
    // Its request is served here in either case.
    await served;
    return gone;
  };
  expect(await goneAfter("away")).toEqual(["b"]);
  expect(await goneAfter("busy")).toEqual([]);
});
