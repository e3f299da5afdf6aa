// Which addresses that others wrote may be opened from the page: sites over TLS, and this machine. Nothing that runs, no
// files, no other program.

import { isLoopback } from "../src/runtime/network/loopback.js";

export function isSafeAddress(text: string): boolean {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return false;
  }
  if (url.username !== "" || url.password !== "") return false;
  if (url.protocol === "https:") return true;
  return url.protocol === "http:" && isLoopback(url.hostname);
}
