// Ids of tasks as agents see them: they name the server whose task it is, and nobody can make one up. The same task
// has the same id each time. What tasks are is the servers' business.

import { createHmac, timingSafeEqual } from "node:crypto";
import type { OwnName } from "../contracts/names.js";

/** 96 bits: a guess is hopeless, and ids stay short enough for a header. */
const MAC_BYTES = 12;

export class TaskIds {
  readonly #key: Uint8Array;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  expose(server: string, principalId: string, own: string): string {
    const payload = Buffer.from(JSON.stringify([server, own])).toString("base64url");
    return `${payload}.${this.#mac(principalId, payload).toString("base64url")}`;
  }

  /** Undefined for an id that is not ours, or was given to somebody else. */
  resolve(exposed: string, principalId: string): { readonly server: string; readonly own: OwnName } | undefined {
    const [payload, mac, ...rest] = exposed.split(".");
    if (payload === undefined || mac === undefined || rest.length > 0) return undefined;
    const given = Buffer.from(mac, "base64url");
    const right = this.#mac(principalId, payload);
    if (given.length !== right.length || !timingSafeEqual(given, right)) return undefined;
    const [server, own] = JSON.parse(Buffer.from(payload, "base64url").toString()) as [string, OwnName];
    return { server, own };
  }

  #mac(principalId: string, payload: string): Buffer {
    const text = JSON.stringify(["task", principalId, payload]);
    return createHmac("sha256", this.#key).update(text).digest().subarray(0, MAC_BYTES);
  }
}
