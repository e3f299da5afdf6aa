// Opens an address in the person's browser, by the program that their system has for it. No shell reads the address.

import { spawn } from "node:child_process";

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Whether somebody was found to open it. What comes of it is seen by what the browser brings back. */
export function openBrowser(address: string, env: Readonly<Record<string, string | undefined>>): Promise<boolean> {
  const { protocol } = new URL(address);
  if (protocol !== "https:" && protocol !== "http:") return Promise.resolve(false);
  const [command = "xdg-open", ...args] = OPENERS[process.platform] ?? ["xdg-open"];
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("TOOLWAY_")));
  return new Promise((resolve) => {
    const child = spawn(command, [...args, address], { env: own, stdio: "ignore", detached: true });
    child.once("error", () => resolve(false));
    child.once("spawn", () => {
      child.unref();
      resolve(true);
    });
  });
}
