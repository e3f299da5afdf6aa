// `toolway share` at the operator's socket: the tools are shared for as long as its connection is open. Lines of JSON: first
// what to share where, then the plan, states and questions out, answers in.

import type { Duplex } from "node:stream";
import type { Config, ShareConfig } from "../../config/config.js";
import type { CallStart, Principal } from "../../contracts/caller.js";
import { ownToolName } from "../../contracts/names.js";
import type { ShareLine, SharePlan } from "../../contracts/status.js";
import type { Access } from "../../pipeline/access.js";
import { Fault } from "../../protocol/errors.js";
import { jsonHead } from "../../protocol/json-head.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { LineSplitter } from "../../runtime/line-splitter.js";
import { KIB } from "../../runtime/sizes.js";
import { demandWanted, refused } from "./asks.js";
import type { Share, ShareHooks } from "./open-share.js";

export interface ShareGateway {
  begin(settings: ShareConfig, hooks: ShareHooks): Promise<Share>;
  end(share: Share, drainMs: number): Promise<void>;
  plan(): Promise<SharePlan>;
  readonly drainMs: number;
}

/** What `toolway share` says is short. */
const MAX_LINE_BYTES = 64 * KIB;
/** A person who is there answers within this; a worker that waits is told then. */
const ASK_MS = 30_000;
/** The plan is told when the servers have been tried, and after this time at the latest. */
export const PLAN_WAIT_MS = 20_000;
/** Questions that a person has before them. */
const MAX_ASKED = 64;
/** Workers and tools for which "always" was said. */
const MAX_ALWAYS = 1_000;
/** What is shown of the arguments. */
const MAX_SHOWN_CHARS = 4 * KIB;

export function serveShare(socket: Duplex, gateway: ShareGateway): void {
  new ShareSocket(socket, gateway);
}

class ShareSocket {
  readonly #socket: Duplex;
  readonly #gateway: ShareGateway;
  readonly #asked = new Map<number, (answer: unknown) => void>();
  readonly #always = new Set<string>();
  #share: Promise<Share | undefined> | undefined;
  #asks = 0;
  #isEnded: boolean = false;

  constructor(socket: Duplex, gateway: ShareGateway) {
    this.#socket = socket;
    this.#gateway = gateway;
    const lines = new LineSplitter(
      { onLine: (line) => this.#line(line.toString()), onOversize: () => this.#end() },
      MAX_LINE_BYTES,
    );
    socket.on("data", (chunk: Buffer) => lines.push(chunk));
    socket.once("end", () => this.#end());
    socket.once("close", () => this.#end());
  }

  #line(text: string): void {
    let said: unknown;
    try {
      said = JSON.parse(text);
    } catch {
      said = undefined;
    }
    if (!isObject(said)) this.#end();
    else if (this.#share === undefined) this.#share = this.#begin(said);
    else if (typeof said["id"] === "number") this.#asked.get(said["id"])?.(said["answer"]);
  }

  async #begin({ broker, as, token, canAsk }: JsonObject): Promise<Share | undefined> {
    try {
      const settings = { broker: String(broker), as: String(as), token: typeof token === "string" ? token : undefined };
      const ask =
        canAsk === true
          ? (who: Principal, start: CallStart, leftMs: number, signal: AbortSignal) =>
              this.#ask(who, start, leftMs, signal)
          : undefined;
      const share = await this.#gateway.begin(settings, {
        ask,
        onState: (state) => this.#send({ kind: "state", ...state }),
      });
      this.#gateway.plan().then(
        (plan) => this.#send({ kind: "sharing", ...plan }),
        () => {},
      );
      return share;
    } catch (error) {
      this.#send({ kind: "error", message: (error as Error).message });
      this.#socket.end();
      return undefined;
    }
  }

  /** Resolves where the person says yes. Rejects with a Fault `denied`. */
  async #ask(principal: Principal, start: CallStart, leftMs: number, signal: AbortSignal): Promise<void> {
    const { server = "", tool = "", message } = start;
    const key = JSON.stringify([principal.id, server, tool]);
    if (this.#always.has(key)) return;
    if (this.#isEnded) throw gone(tool);
    if (this.#asked.size >= MAX_ASKED) throw refused(tool, `has ${MAX_ASKED} questions to answer already`);
    demandWanted(signal);
    const id = ++this.#asks;
    const { id: worker, role } = principal;
    const args = jsonHead(message.params?.["arguments"] ?? {}, MAX_SHOWN_CHARS)[0];
    const waitMs = Math.min(ASK_MS, Math.max(0, leftMs));
    const answer = await new Promise<unknown>((resolve) => {
      const giveUp = () => end(undefined);
      const end = (said: unknown) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", giveUp);
        resolve(said);
      };
      const timer = setTimeout(giveUp, waitMs);
      signal.addEventListener("abort", giveUp);
      this.#asked.set(id, end);
      this.#send({ kind: "ask", id, worker: worker.replace(/^mailbox\//, ""), role, server, tool, arguments: args });
    });
    this.#asked.delete(id);
    this.#send({ kind: "asked", id });
    if (answer === "always" && this.#always.size < MAX_ALWAYS) this.#always.add(key);
    if (answer === "yes" || answer === "always") return;
    if (answer !== undefined) throw refused(tool, "was asked, and said no");
    if (this.#isEnded) throw gone(tool);
    demandWanted(signal);
    throw refused(tool, `was asked, and did not answer within ${Math.round(waitMs / 100) / 10} s`);
  }

  #send(line: ShareLine): void {
    if (!this.#socket.writableEnded && !this.#socket.destroyed) this.#socket.write(`${JSON.stringify(line)}\n`);
  }

  /** It has gone: calls under way may end, and nothing new is taken. */
  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    for (const answer of this.#asked.values()) answer(undefined);
    void this.#close().finally(() => this.#socket.end());
  }

  async #close(): Promise<void> {
    const share = await this.#share;
    if (share !== undefined) await this.#gateway.end(share, this.#gateway.drainMs);
  }
}

function gone(tool: string): Fault {
  return new Fault("denied", `The person who shares "${tool}" would be asked, and has just stopped to. Not run.`);
}

/** Of a tool, what has to be known for a plan. */
interface ListedTool {
  readonly name: string;
  readonly server: string;
  readonly ownName: string;
  readonly quarantined?: string;
}

/** What is shared, and with whom: what the operator is shown when a gateway begins to share its tools. */
export function planOf(
  config: Config,
  servers: readonly string[],
  listed: readonly ListedTool[],
  access: Access,
): SharePlan {
  // What is quarantined is shared with nobody.
  const tools = listed.filter(({ quarantined }) => quarantined === undefined);
  const nameOf = ({ name, ownName }: ListedTool) => (servers.length === 1 ? ownName : name);
  // Menus are of principals, and one may be called as a role is: what a role has is told without them.
  const sees = (role: string) => (tool: ListedTool) =>
    access.decideUnderWay({ id: role, role }, tool.server, ownToolName(tool.ownName)).kind === "allow";
  const isAsked = ({ server, ownName }: ListedTool) => {
    const entries = config.servers.find(({ name }) => name === server)?.tools;
    return entries !== undefined && Object.hasOwn(entries, ownName) && entries[ownName]?.ask === true;
  };
  return {
    servers: servers.map((name) => ({ name, tools: tools.filter(({ server }) => server === name).length })),
    tools: tools.map(nameOf),
    roles: Object.keys(config.roles).map((role) => ({ role, tools: tools.filter(sees(role)).length })),
    unlistedRoles: config.unlistedRoles,
    asked: tools.filter(isAsked).map(nameOf),
  };
}
