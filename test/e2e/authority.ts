// The authorization server of the tests, in a process of its own, and a person who logs in at it without a browser.

import { onTestFinished } from "vitest";
import { findGateway } from "../../src/control/client.js";
import { type Authority, startAuthority } from "../fixtures/authority.js";
import { type Gateway, until } from "./harness.js";

/** Ends with the test. */
export async function authorityOfTest(): Promise<Authority> {
  const authority = await startAuthority();
  onTestFinished(() => authority.kill());
  return authority;
}

/** What a person does in a browser: follows the pages to where they end. */
export async function follow(address: string): Promise<string> {
  const cookies = new Map<string, string>();
  let [url, method] = [address, "GET"];
  for (let step = 0; step < 20; step++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(url, { method, headers: { cookie }, redirect: "manual" });
    for (const one of answer.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(one) ?? [];
      cookies.set(name, value);
    }
    const text = await answer.text();
    const location = answer.headers.get("location");
    const action = /action="([^"]+)"/.exec(text)?.[1];
    if (location === null && action === undefined) throw new Error(`${url} is the end: ${answer.status} ${text}`);
    method = location === null ? "POST" : "GET";
    url = new URL(location ?? action ?? "", url).href;
    if (url.includes("/callback?")) return url;
  }
  throw new Error("The pages have no end.");
}

/** The login that somebody makes by hand, at the control socket. */
export async function logInByHand({ stateDir }: Gateway, server: string): Promise<void> {
  const control = await until("the control socket", () => findGateway(stateDir));
  const at = `/servers/${server}/login`;
  const begun = await control.post<{ address: string }>(at, { redirectUri: "http://127.0.0.1:9/callback" });
  const back = Object.fromEntries(new URL(await follow(begun.address)).searchParams);
  await control.post(`${at}/finish`, back);
}
