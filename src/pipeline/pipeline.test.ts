// The pipeline with its catalog, policy and cache, and stand-ins for the servers: no process is started. What it takes
// from a server is contracts/servers.ts alone, so any kind of server can stand behind it; one like a mailbox does here.

import { describe, expect, it } from "vitest";
import { Agent, notification } from "../../test/fixtures/agent.js";
import { CALLER } from "../../test/fixtures/hosted.js";
import { echo, names, StandInServer, setUpPipeline, tools, twoServers } from "../../test/fixtures/pipeline.js";
import type { Caller } from "../contracts/caller.js";
import { ownToolName } from "../contracts/names.js";
import type { Isolation } from "../contracts/server-spec.js";
import type { ServerConnection, ServerHandle } from "../contracts/servers.js";
import type { Upstream, UpstreamCall } from "../contracts/upstream.js";
import { compileBudgets } from "../policy/budget.js";
import { Fault } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { faultReply, type Reply } from "../protocol/reply.js";
import type { Pipeline } from "./pipeline.js";

/** A mailbox's way: calls lie there until somebody fetches them, and are answered when that one says so. */
class MailboxServer implements ServerHandle {
  readonly name: string;
  readonly isolation: Isolation = "shared";
  readonly intro = { version: "2025-11-25", capabilities: { tools: {} }, serverInfo: {}, instructions: undefined };
  listed = false;
  readonly trouble = "nobody has joined the mailbox";
  readonly connections: ServerConnection[] = [];
  #read = () => {};
  readonly firstTry = new Promise<void>((resolve) => {
    this.#read = resolve;
  });
  readonly #waiting = new Map<UpstreamCall, string>();

  constructor(name: string) {
    this.name = name;
  }

  upstream(): Upstream {
    return {
      server: this.name,
      send: (call) => void this.#waiting.set(call, call.render(this.#waiting.size)),
      cancel: (call, reason) => {
        if (this.#waiting.delete(call)) call.reply(faultReply(new Fault("cancelled", reason ?? "Cancelled.")));
      },
      notify: () => {},
      request: async () => ({}),
    };
  }

  sessionConnection(): undefined {
    return undefined;
  }

  /** Somebody joins, and says what tools there are. */
  join(pipeline: Pipeline, ...names: string[]): void {
    pipeline.fromServers.onIntro(this.name, this.intro, this.upstream(), undefined);
    pipeline.fromServers.onList(this.name, "tools", tools(...names));
    this.listed = true;
    this.#read();
  }

  /** Nobody joined in time. */
  giveUp(): void {
    this.#read();
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** What waits is fetched and answered. */
  fetch(): void {
    for (const [call, text] of this.#waiting) {
      this.#waiting.delete(call);
      call.reply(echo(this.name, JSON.parse(text) as JsonObject));
    }
  }
}

it("the operator's list of tools is read again where an agent's would be, within a short wait [menu-current]", async () => {
  const { pipeline, files, mail } = twoServers();
  const asked: string[] = [];
  const renews = (server: StandInServer, reading: Promise<void>) =>
    Object.assign(server, {
      renew: (kind: string, why: string) => {
        asked.push(`${server.name} ${kind} ${why}`);
        return reading;
      },
    });
  let isRead = false;
  renews(
    files,
    Promise.resolve().then(() => {
      isRead = true;
    }),
  );
  await pipeline.renewTools();
  expect([isRead, asked]).toEqual([true, ["files tools asked"]]);
  // One that hangs does not hold up the list.
  renews(mail, new Promise<void>(() => {}));
  await pipeline.renewTools();
  expect(asked).toHaveLength(3);
});

it("a name that is not listed reads again the servers that its prefix and the caller's role leave, and no other [menu-current]", async () => {
  const { pipeline, files, mail } = twoServers({ reader: { allow: ["mail"] } });
  const asked: string[] = [];
  for (const server of [files, mail]) {
    Object.assign(server, {
      renew: async (kind: string, why: string) => {
        asked.push(`${server.name} ${kind} ${why}`);
        // It is found once the list has it.
        if (server === mail) pipeline.fromServers.onList("mail", "tools", tools("read", "send", "new"));
      },
    });
  }
  const [ada, eve] = [new Agent({ pipeline }, "ada"), new Agent({ pipeline }, "eve", "reader")];
  expect(await ada.call("mail__new").json()).toMatchObject({ server: "mail", name: "new" });
  expect(asked).toEqual(["mail tools missed"]);
  // Whoever may not know of a server has nothing read there, and learns nothing of it.
  expect((await eve.call("files__nothing").answer()).error).toMatchObject({ code: -32602 });
  expect(asked).toHaveLength(1);
  expect((await ada.call("files__nothing").answer()).error).toMatchObject({ code: -32602 });
  expect(asked.slice(1)).toEqual(["files tools missed"]);
});

describe("a call", () => {
  it("reaches the server that the menu's name means, under the server's own name of the tool", async () => {
    const { pipeline, files, mail } = twoServers();
    const agent = new Agent({ pipeline }, "ada");
    expect(await agent.call("mail__read", { id: 7 }).json()).toEqual({
      server: "mail",
      name: "read",
      arguments: { id: 7 },
    });
    expect(mail.called).toEqual(["read"]);
    expect(files.called).toEqual([]);
  });

  it("of a tool that the caller's role is denied is refused, and does not reach the server", async () => {
    const { pipeline, files, mail } = twoServers({ reader: { deny: ["mail/send", "files"] } });
    const reader = new Agent({ pipeline }, "reader", "reader");
    expect(await names(reader)).toEqual(["mail__read"]);
    expect(await reader.call("mail__send").code()).toBe(-31007);
    expect(await reader.call("files__read").code()).toBe(-31007);
    expect([...mail.called, ...files.called]).toEqual([]);
    expect(await names(new Agent({ pipeline }, "ada"))).toHaveLength(4);
  });

  it("is sent when it is written down, which happens past the roles, and not where that fails [no-double-effect]", async () => {
    const { pipeline, mail } = twoServers({ reader: { deny: ["mail/send"] } });
    const begun: string[] = [];
    let write: Promise<void> = Promise.resolve();
    const beforeSend = ({ server, tool }: { server: string | undefined; tool: string | undefined }) => {
      begun.push(`${server}/${tool}, sent so far: ${mail.called.length}`);
      return write;
    };
    const reader = new Agent({ pipeline }, "reader", "reader");
    reader.beforeSend = beforeSend;
    expect(await reader.call("mail__send").code()).toBe(-31007);
    expect(begun).toEqual([]);
    let written = () => {};
    write = new Promise((resolve) => {
      written = resolve;
    });
    const call = reader.call("mail__read");
    expect([begun, mail.called]).toEqual([["mail/read, sent so far: 0"], []]);
    written();
    await call.json();
    expect(mail.called).toHaveLength(1);
    write = Promise.reject(new Fault("limit", "The journal is full."));
    expect(await reader.call("mail__read").code()).toBe(-31006);
    expect(mail.called).toHaveLength(1);
  });

  it("that cannot be written down, is taken back meanwhile or whose tool changes then costs no budget [no-double-effect]", async () => {
    const { pipeline, mail, quarantined, logged } = twoServers();
    const servers = [{ name: "mail", budget: { calls: 1, windowMs: 60_000 } }];
    pipeline.setBudgets(compileBudgets({ roles: {}, servers }, undefined));
    const agent = new Agent({ pipeline }, "ada");
    agent.beforeSend = () => Promise.reject(new Fault("limit", "The journal is full."));
    logged.length = 0;
    expect(await agent.call("mail__read").code()).toBe(-31006);
    expect(logged).toEqual([]);
    // What nobody foresaw is in the log, since the agent is told to look there.
    agent.beforeSend = () => Promise.reject(new Error("the disk is on fire"));
    expect(await agent.call("mail__read").code()).toBe(-32603);
    expect(logged).toEqual(["error: tools/call failed inside the gateway"]);
    agent.beforeSend = () => Promise.resolve();
    const taken = agent.call("mail__read");
    taken.onCancel?.(undefined);
    expect(await taken.code()).toBe(-31008);
    agent.beforeSend = async () => void quarantined.add("read");
    expect(await agent.call("mail__read").code()).toBe(-31007);
    expect(mail.called).toEqual([]);
    agent.beforeSend = undefined;
    await agent.call("mail__send").json();
    expect(await agent.call("mail__send").code()).toBe(-31006);
  });

  it("of a modern agent asks the guard once, and then for the headers that the tool's schema wants", async () => {
    const { pipeline, mail } = twoServers();
    const inputSchema = { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } };
    const value = { name: "send", inputSchema };
    pipeline.fromServers.onList("mail", "tools", [{ json: JSON.stringify(value), value }]);
    const asked: string[] = [];
    pipeline.setGuard((_principal, _server, tool) => {
      if (tool !== undefined) asked.push(tool);
      return { kind: "allow" };
    });
    const { caller, message } = new Agent({ pipeline }, "ada").call("mail__send", { region: "eu" });
    asked.length = 0;
    mail.received.length = 0;
    const replies: Reply[] = [];
    const wanted: unknown[] = [];
    const error = { code: -32020, message: "They do not agree." };
    for (const verdict of [error, undefined]) {
      pipeline.handle({
        caller: { ...caller, era: "modern" },
        message,
        scope: undefined,
        headerMismatch: (declared) => {
          wanted.push(...declared);
          return verdict;
        },
        reply: (reply) => replies.push(reply),
        onCancel: undefined,
      });
    }
    expect(asked).toEqual(["send", "send"]);
    expect(wanted).toEqual(Array(2).fill({ header: "mcp-param-region", path: ["region"] }));
    expect(replies).toMatchObject([{ kind: "error", error }, { kind: "bytes" }]);
    expect(mail.called).toEqual(["send"]);
  });

  it("of a tool in quarantine is refused, and the list leaves it out", async () => {
    const { pipeline, mail, quarantined } = twoServers();
    const agent = new Agent({ pipeline }, "ada");
    quarantined.add("send");
    pipeline.pinsChanged("mail");
    expect(await names(agent)).not.toContain("mail__send");
    expect(await agent.call("mail__send").code()).toBe(-31007);
    expect(mail.called).toEqual([]);
  });

  it("that waited while its tool changed is refused, costs no budget, and so is who waited for its reply [host-12]", async () => {
    const { pipeline, mail, cache, quarantined } = twoServers();
    cache.setServer("mail", new Set([ownToolName("read")]));
    const windowMs = 60_000;
    const servers = [{ name: "mail", budget: { calls: 3, windowMs } }];
    pipeline.setBudgets(compileBudgets({ roles: {}, servers }, undefined));
    const held: UpstreamCall[] = [];
    mail.send = (call) => void held.push(call);
    const agent = new Agent({ pipeline }, "ada");
    const calls = [agent.call("mail__send"), agent.call("mail__read"), agent.call("mail__read")];
    expect(held.map(({ isOfTool, refusal }) => [isOfTool, refusal !== undefined])).toEqual(Array(2).fill([true, true]));
    for (const call of held) expect(call.refusal?.()).toBeUndefined();
    for (const tool of ["send", "read"]) quarantined.add(tool);
    for (const call of held.splice(0)) call.reply(faultReply(call.refusal?.() ?? new Fault("unavailable", "sent")));
    for (const call of calls) expect(await call.code()).toBe(-31007);
    // The one that followed was not sent by itself.
    expect(held).toEqual([]);
    quarantined.clear();
    for (let i = 0; i < 3; i++) agent.call("mail__send");
    expect(held).toHaveLength(3);
    expect(await agent.call("mail__send").code()).toBe(-31006);
  });

  it("that the cache can answer does not reach the server a second time", async () => {
    const { pipeline, mail, cache } = twoServers();
    cache.setServer("mail", new Set([ownToolName("read")]));
    mail.intro = { ...mail.intro, era: "modern" };
    const keep = { resultType: "complete", ttlMs: 1_000, cacheScope: "public" };
    mail.answer = (message) => ({ ...echo("mail", message, keep), era: "modern" });
    const agent = new Agent({ pipeline }, "ada");
    for (const _ of [1, 2]) expect(await agent.call("mail__read").json()).toMatchObject({ name: "read" });
    expect(mail.called).toEqual(["read"]);
    // What the server says of its tools makes what it answered before old.
    pipeline.fromServers.onListChanged("mail", ["tools"]);
    await agent.call("mail__read").json();
    expect(mail.called).toEqual(["read", "read"]);
  });

  it("by a method that only looks like one we know, or without its id, reaches no tool [host-11] [only-is-all]", async () => {
    const { pipeline, mail } = twoServers({ reader: { deny: ["mail/send"] } });
    const agent = new Agent({ pipeline }, "ada", "reader", "mail");
    const params = { name: "send", arguments: {} };
    for (const method of [
      "Tools/Call",
      "tools/call ",
      "tools.call",
      "\ttools/call\0",
      "ｔools/call",
      "tools//call",
      `tools/call${" ".repeat(300)}`,
    ]) {
      expect(await agent.send(method, params).code()).toBe(-32601);
    }
    for (const method of ["tools/call", "TOOLS/call", "tasks/cancel"]) {
      pipeline.handleNotification(agent, notification(method, params), "mail");
    }
    expect(mail.received).toEqual([]);
    // What nobody could take for another is passed on as ever.
    await agent.send("x/tools/call/again", params).json();
    pipeline.handleNotification(agent, notification("notifications/x"), "mail");
    expect(mail.received.map(({ method }) => method)).toEqual(["x/tools/call/again", "notifications/x"]);
  });

  it("to a server that is gone says so", async () => {
    const { pipeline, servers } = twoServers();
    servers.get = () => undefined;
    expect(await new Agent({ pipeline }, "ada").call("mail__read").code()).toBe(-31001);
  });
});

describe("lists", () => {
  it("of all servers are merged; at /mcp/<server> there are its own alone, under its own names", async () => {
    const { pipeline } = twoServers();
    const everything = ["files__read", "files__write", "mail__read", "mail__send"];
    expect(await names(new Agent({ pipeline }, "ada"))).toEqual(everything);
    expect(await names(new Agent({ pipeline }, "bob", "default", "mail"))).toEqual(["read", "send"]);
  });

  it("that a server changes are announced to the agents that may see it, and to no others", async () => {
    const { pipeline } = twoServers({ reader: { deny: ["mail"] } });
    const [ada, reader] = [new Agent({ pipeline }, "ada"), new Agent({ pipeline }, "reader", "reader")];
    const elsewhere = new Agent({ pipeline }, "bob", "default", "files");
    pipeline.fromServers.onList("mail", "tools", tools("read", "send", "delete"));
    expect(ada.heardMethods()).toEqual(["notifications/tools/list_changed"]);
    expect([...reader.heard, ...elsewhere.heard]).toEqual([]);
    expect(await names(ada)).toContain("mail__delete");
    // The same list again is no change.
    pipeline.fromServers.onList("mail", "tools", tools("read", "send", "delete"));
    expect(ada.heard).toHaveLength(1);
  });
});

it("a session's log level and subscriptions reach the servers, and end with it", async () => {
  const { pipeline, mail, servers } = twoServers();
  mail.intro = { ...mail.intro, capabilities: { logging: {}, resources: {} } };
  pipeline.fromServers.onIntro("mail", mail.intro, mail, undefined);
  const agent = new Agent({ pipeline }, "ada");
  await agent.send("logging/setLevel", { level: "error" }).answer();
  await agent.send("resources/subscribe", { uri: "mail://inbox" }).answer();
  expect(mail.told).toEqual([["logging/setLevel", { level: "error" }]]);
  pipeline.fromServers.onNotification(
    "mail",
    notification("notifications/resources/updated", { uri: "mail://inbox" }),
    undefined,
  );
  expect(agent.heardMethods()).toEqual(["notifications/resources/updated"]);
  agent.close();
  expect(mail.told.at(-1)).toEqual(["resources/unsubscribe", { uri: "mail://inbox" }]);
  expect(servers.closedSessions).toEqual(["ada"]);
});

it("a session that is restored has its log level and its subscriptions, and servers that are up are told [restart-unseen]", async () => {
  const { pipeline, mail } = twoServers();
  mail.intro = { ...mail.intro, capabilities: { logging: {}, resources: {} } };
  pipeline.fromServers.onIntro("mail", mail.intro, mail, undefined);
  const restored = { logLevel: "error", subscribed: new Map([["mail", new Set(["mail://inbox"])]]) };
  const heard: string[] = [];
  const kept: unknown[] = [];
  const session: Caller = {
    ...CALLER,
    ...restored,
    sessionKey: "ada",
    notify: ({ method }) => void heard.push(method),
    setSubscribed: (subscribed) => void kept.push(structuredClone(subscribed)),
  };
  pipeline.sessionOpened(session, undefined);
  expect(mail.told).toEqual([
    ["logging/setLevel", { level: "error" }],
    ["resources/subscribe", { uri: "mail://inbox" }],
  ]);
  pipeline.fromServers.onNotification(
    "mail",
    notification("notifications/resources/updated", { uri: "mail://inbox" }),
    undefined,
  );
  expect(heard).toEqual(["notifications/resources/updated"]);
  pipeline.sessions.subscribe("ada", "mail", "mail://sent");
  pipeline.sessions.unsubscribe("ada", "mail", "mail://inbox");
  expect(kept).toEqual([
    new Map([["mail", new Set(["mail://inbox", "mail://sent"])]]),
    new Map([["mail", new Set(["mail://sent"])]]),
  ]);
  pipeline.sessionClosed(session);
  expect(mail.told.at(-1)).toEqual(["resources/unsubscribe", { uri: "mail://sent" }]);
});

it("a modern agent's subscription at a server that is away is made when it is there [eras-meet]", async () => {
  const { pipeline, mail } = twoServers();
  mail.intro = { ...mail.intro, capabilities: { resources: { subscribe: true } } };
  pipeline.fromServers.onIntro("mail", mail.intro, mail, undefined);
  mail.send = (call) => call.reply(faultReply(new Fault("unavailable", "It is starting.")));
  const message = { method: "resources/subscribe", params: { uri: "mail://inbox" } };
  const subscribe = (era: "legacy" | "modern") => {
    const agent = new Agent({ pipeline }, era);
    const sent = agent.send(message.method, message.params);
    pipeline.handle(Object.assign(sent, { caller: { ...sent.caller, era } }));
    return sent.answer();
  };
  // A legacy agent is told that it is not subscribed; a modern one has no way to hear of that later.
  expect(await subscribe("legacy")).toMatchObject({ error: { code: -31001 } });
  pipeline.fromServers.onIntro("mail", mail.intro, mail, undefined);
  expect(mail.told).toEqual([]);
  await subscribe("modern");
  pipeline.fromServers.onIntro("mail", mail.intro, mail, undefined);
  expect(mail.told).toEqual([["resources/subscribe", { uri: "mail://inbox" }]]);
});

describe("a server of another kind, beside one that is not", () => {
  function withMailbox() {
    const [files, box] = [new StandInServer("files"), new MailboxServer("box")];
    const whole = setUpPipeline([files, box], { reader: { deny: ["box/post"] } });
    whole.pipeline.fromServers.onList("files", "tools", tools("read"));
    return { files, box, ...whole };
  }

  it("gets the calls for its tools, and answers them in its own time", async () => {
    const { pipeline, box } = withMailbox();
    box.join(pipeline, "post");
    const agent = new Agent({ pipeline }, "ada");
    expect(await names(agent)).toEqual(["files__read", "box__post"]);
    const sent = agent.call("box__post", { text: "hello" });
    expect(await agent.call("files__read").json()).toMatchObject({ server: "files" });
    expect([box.waiting, sent.replies.length]).toEqual([1, 0]);
    box.fetch();
    expect(await sent.json()).toEqual({ server: "box", name: "post", arguments: { text: "hello" } });
  });

  it("is under the same rules, and calls to it can be taken back", async () => {
    const { pipeline, box } = withMailbox();
    box.join(pipeline, "post");
    expect(await new Agent({ pipeline }, "reader", "reader").call("box__post").code()).toBe(-31007);
    expect(box.waiting).toBe(0);
    const sent = new Agent({ pipeline }, "ada").call("box__post");
    sent.onCancel?.("enough");
    expect(await sent.answer()).toMatchObject({ error: { code: -31008, message: "enough" } });
    expect(box.waiting).toBe(0);
  });

  it("is waited for by whoever calls what it may yet list", async () => {
    const { pipeline, box } = withMailbox();
    const agent = new Agent({ pipeline }, "ada");
    const early = agent.call("box__post");
    box.join(pipeline, "post");
    await box.firstTry;
    await Promise.resolve();
    box.fetch();
    expect(await early.json()).toMatchObject({ server: "box", name: "post" });
    expect(agent.heardMethods()).toEqual(["notifications/tools/list_changed"]);
  });

  it("is not waited for by whoever calls what it cannot list [one-bad-server]", async () => {
    const { pipeline, box } = withMailbox();
    const agent = new Agent({ pipeline }, "ada");
    for (const name of ["boks__post", "post", "files__raed"]) {
      expect(await agent.call(name).answer()).toMatchObject({ error: { message: `Unknown tool: ${name}` } });
    }
    expect(box.listed).toBe(false);
  });

  it("is said to be the reason where its tools are not known after its first try", async () => {
    const { pipeline, box } = withMailbox();
    const early = new Agent({ pipeline }, "ada").call("box__post");
    box.giveUp();
    expect(await early.answer()).toMatchObject({ error: { message: expect.stringContaining(box.trouble) } });
  });
});

it("what was charged for a call that the outbox refuses is given back", async () => {
  const { pipeline, mail } = twoServers();
  const servers = [{ name: "mail", budget: { calls: 1, windowMs: 60_000 } }];
  pipeline.setBudgets(compileBudgets({ roles: {}, servers }, undefined));
  pipeline.sender.outbox = {
    take: () => {
      throw new Fault("invalid", "This key was used for another call.");
    },
  };
  const agent = new Agent({ pipeline }, "ada");
  for (let call = 0; call < 3; call++) expect(await agent.call("mail__send").code()).toBe(-32602);
  pipeline.sender.outbox = undefined;
  await agent.call("mail__send").json();
  expect(mail.called).toEqual(["send"]);
});
