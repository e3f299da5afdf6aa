// `toolway login` and `toolway logout`: who we are at a server that wants OAuth. The gateway makes the login; this is its
// browser, and where that comes back to.

import type { CredentialStatus } from "../../contracts/status.js";
import { isObject } from "../../protocol/jsonrpc.js";
import { gatewayFor } from "../gateway/which.js";
import { withGateway } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { print, printJson } from "../line/io.js";

export const login = defineCommand({
  metadata: {
    name: "login",
    summary: "Logs in at a server by OAuth, in the browser.",
    description:
      'Logs in at a server whose entry has `"auth": "oauth"`: opens the service\'s page in the browser, waits up to five ' +
      "minutes for it to come back to 127.0.0.1, and hands the login to the running gateway, or keeps it for the next " +
      "one. The tokens are kept sealed in the state directory and renewed by themselves. Where the browser is on another " +
      "machine, open the address there, and paste the one that it ends at.",
  },
  args: { server: { required: true, description: "Its name in the config.", completes: "server" } },
  options: {
    noBrowser: { description: "Opens nothing: prints the address, and takes a pasted answer." },
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    { line: "toolway login linear", note: "in this machine's browser" },
    { line: "toolway login linear --no-browser", note: "over ssh: open the address, paste what it ends at" },
  ],
  async handler(input, io) {
    return withGateway(await gatewayFor(input, io), io, { servers: false }, async ({ client }) => {
      const { logIn } = await import("../login/log-in.js");
      const credential = await logIn(client, input, io);
      if (input.json) printJson(io, { server: input.server, credential });
      else print(io, `Logged in at ${input.server}${untilText(credential)}.`);
      return Exit.ok;
    });
  },
});

export const logout = defineCommand({
  metadata: {
    name: "logout",
    summary: "Ends the login at a server, and forgets its tools.",
    description:
      "Forgets the tokens of a server, tells the service that they are not used any more where it wants to know, and takes " +
      "the server's tools off the menu: they are those that the login could see.",
  },
  args: { server: { required: true, description: "Its name in the config.", completes: "server" } },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [{ line: "toolway logout linear", note: "its calls say that they need a login" }],
  async handler(input, io) {
    return withGateway(await gatewayFor(input, io), io, { servers: false }, async ({ client }) => {
      const answer = await client.post(`/servers/${encodeURIComponent(input.server)}/logout`, {}, io.signal);
      const wasIn = isObject(answer) && answer["wasLoggedIn"] === true;
      if (input.json) printJson(io, { server: input.server, wasLoggedIn: wasIn });
      else print(io, wasIn ? `Logged out at ${input.server}.` : `Nobody was logged in at ${input.server}.`);
      return Exit.ok;
    });
  },
});

function untilText(credential: CredentialStatus | undefined): string {
  if (credential?.until === undefined) return "";
  const then = credential.isRenewed === false ? "then somebody has to log in again" : "renewed by itself";
  return `; its token is good until ${credential.until}, and ${then}`;
}
