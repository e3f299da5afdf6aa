import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Caller } from "../../contracts/caller.js";
import type { AgentCall, LoginHandler } from "../../contracts/service.js";
import { listenForCallback } from "../../credentials/callback.js";
import type { RequestMessage } from "../../protocol/message.js";
import { Logins } from "./logins.js";

vi.mock("../../credentials/callback.js", () => ({ listenForCallback: vi.fn() }));
const listening = vi.mocked(listenForCallback);

beforeEach(() => {
  listening.mockReset().mockImplementation(async (port) => ({
    redirectUri: `http://127.0.0.1:${port ?? 5000}/callback`,
    answerTo: () => new Promise(() => {}),
    tell: () => {},
    close: () => {},
  }));
});

const target = { kind: "http", url: "https://mcp.example.com/mcp", headers: {} };

/** The logins of a gateway with one server, and what its calls come to. */
function start(endpoint: string | undefined, login: object = {}) {
  const sender: { logins: LoginHandler | undefined } = { logins: undefined };
  const begin = async (redirectUri: string) => ({ address: `https://login.example/?back=${redirectUri}`, state: "s" });
  const own = { redirectPort: undefined, finished: 0, isStopped: false, begin, ...login };
  const stages = {
    credentials: { loginOf: () => own },
    servers: { all: [{ spec: { name: "linear", target } }] },
    pipeline: { sender },
    records: { audit: undefined },
  };
  const logins = new Logins(stages as never, () => [], { endpoint: () => endpoint, log: { warn: () => {} } });
  return { logins, handler: sender.logins as LoginHandler };
}

/** A call of an agent that can send its user to a page. */
function call(): AgentCall {
  const caller = {
    principal: { id: "a", role: "dev" },
    sessionKey: "s",
    era: "modern",
    capabilities: { elicitation: { url: {} } },
    notify: () => {},
    ask: () => new Promise(() => {}),
  } as unknown as Caller;
  const message = { method: "tools/call" } as RequestMessage;
  return { caller, message, scope: undefined, onCancel: undefined, reply: () => {} };
}

describe("the address of a login", () => {
  it.each([
    ["http://127.0.0.1:7420/mcp", true],
    ["http://[::1]:7420/mcp", true],
    ["http://localhost:7420/mcp", true],
    // Over pipes: it started us.
    [undefined, true],
    ["http://0.0.0.0:7420/mcp", false],
    ["http://[::]:7420/mcp", false],
    ["https://10.1.2.3:7420/mcp", false],
    ["https://gateway.example.com/mcp", false],
  ])(
    "is given to an agent alone that is on this machine, where the browser comes back to: %s %s",
    (endpoint, isGiven) => {
      const { handler } = start(endpoint);
      const one = call();
      const isTaken = handler.take(
        one,
        "linear",
        () => {},
        () => {},
      );
      expect(isTaken).toBe(isGiven);
      one.onCancel?.("enough");
    },
  );
});

describe("the port that the config has a browser come back to", () => {
  it("is told to whoever logs in by the command line, and is where the gateway itself listens for a login at the page", async () => {
    const { logins } = start(undefined, { redirectPort: 4321 });
    expect(logins.redirectPort("linear")).toBe(4321);
    expect(await logins.open("linear")).toEqual({
      address: "https://login.example/?back=http://127.0.0.1:4321/callback",
    });
    expect(listening.mock.calls).toEqual([[4321]]);
    expect(start(undefined).logins.redirectPort("linear")).toBeUndefined();
  });

  it("that is taken is named with what to do, in place of a login that nobody could finish", async () => {
    listening.mockRejectedValue(Object.assign(new Error("listen EADDRINUSE"), { code: "EADDRINUSE" }));
    await expect(start(undefined, { redirectPort: 4321 }).logins.open("linear")).rejects.toThrow(
      'The port 4321 on 127.0.0.1, to which the browser comes back, is taken. End what uses it, or change "redirectPort" in the config.',
    );
  });
});
