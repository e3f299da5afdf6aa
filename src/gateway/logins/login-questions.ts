// A login that this gateway waits for itself: in the middle of a call, where an agent that can send its user to a page is
// asked to and the call goes on when the browser has come back; or of an operator who begins it on their page. One login is
// under way at a server, however many wait for it; each agent is asked once.

import { randomUUID } from "node:crypto";
import type { Caller } from "../../contracts/caller.js";
import type { AgentCall, EndedLogin, LoginHandler, LoginOutcome, LoginWantedBy } from "../../contracts/service.js";
import type { BegunLogin, LoginAnswer } from "../../credentials/login-source.js";
import { Fault } from "../../protocol/errors.js";
import { isObject } from "../../protocol/jsonrpc.js";
import { makeMessage, makeNotification, type RequestMessage } from "../../protocol/message.js";
import { faultReply } from "../../protocol/reply.js";

/** As long as an address is good for. */
const LOGIN_MS = 5 * 60_000;
/** Calls that wait for one login. Each holds its agent's connection; more than that come from a loop. */
const MAX_WAITING = 100;
/** The login may be made otherwise meanwhile, by `toolway login`, or be of no use any more. */
const LOOK_MS = 250;

/** What is needed of a server's login. */
export interface LoginInCall {
  readonly redirectPort: number | undefined;
  /** How many logins were finished, and are used by now. */
  readonly finished: number;
  /** Nobody needs it any more: its entry is another, or the gateway closes. */
  readonly isStopped: boolean;
  begin(redirectUri: string): Promise<BegunLogin>;
  finish(answer: LoginAnswer): Promise<void>;
}

/** Where the browser comes back to. */
interface Callback {
  readonly redirectUri: string;
  answerTo(state: string): Promise<LoginAnswer>;
  tell(failure: string | undefined): void;
  close(): void;
}

interface QuestionParts {
  /** Undefined where nobody logs in at this server. */
  readonly loginOf: (server: string) => LoginInCall | undefined;
  /** Whether agents are on this machine, where the browser has to come back to. */
  readonly isNear: () => boolean;
  readonly listen: (port: number | undefined) => Promise<Callback>;
  readonly log: (text: string) => void;
  /** Told once of each that ended here; one that was made otherwise meanwhile is told by whoever made it. */
  readonly ended: (login: EndedLogin) => void;
}

/** One login that is under way, and who waits for it. */
interface UnderWay {
  waiting: number;
  /** Resolves with the address once the authorization server is found. */
  readonly begun: Promise<string>;
  /** Whether somebody logged in. */
  readonly done: Promise<boolean>;
  /** By session: whether its user went to the page. */
  readonly asked: Map<string, Promise<boolean>>;
  /** Somebody is on the page: the login goes on, however long that takes them and their agent waits. */
  isVisited: boolean;
  /** `elsewhere`: somebody has logged in otherwise. */
  end(outcome: LoginOutcome | "elsewhere"): void;
}

export class LoginQuestions implements LoginHandler {
  readonly #parts: QuestionParts;
  readonly #underWay = new Map<string, UnderWay>();

  constructor(parts: QuestionParts) {
    this.#parts = parts;
  }

  take(call: AgentCall, server: string, again: () => void, giveUp: () => void): boolean {
    const { caller } = call;
    // Who writes down what begins stands for an agent on another machine.
    if (!takesPages(caller) || caller.beforeSend !== undefined || !this.#parts.isNear()) return false;
    const login = this.#parts.loginOf(server);
    if (login === undefined) return false;
    const underWay =
      this.#underWay.get(server) ?? this.#begin(server, login, { by: "call", principal: caller.principal });
    if (underWay.waiting >= MAX_WAITING) return false;
    underWay.waiting++;
    let isOver = false;
    const settle = (act: () => void) => {
      if (isOver) return;
      isOver = true;
      call.onCancel = undefined;
      act();
      if (--underWay.waiting === 0 && !underWay.isVisited) underWay.end("cancelled");
    };
    call.onCancel = (reason) =>
      settle(() => call.reply(faultReply(new Fault("cancelled", reason ?? `${call.message.method} was taken back.`))));
    void underWay.done.then((isIn) => settle(isIn ? again : giveUp));
    void this.#ask(caller, server, underWay).then((isWilling) => {
      if (!isWilling) settle(giveUp);
    });
    return true;
  }

  /**
   * Begun by a person who goes there now: resolves with the address that they open. Undefined where nobody logs in at this
   * server. It goes on when they have left, for as long as the address is good; calls that wait for a login go on with it.
   */
  open(server: string): Promise<string> | undefined {
    const login = this.#parts.loginOf(server);
    if (login === undefined) return undefined;
    const underWay = this.#underWay.get(server) ?? this.#begin(server, login, { by: "operator" });
    underWay.isVisited = true;
    return underWay.begun;
  }

  /** Whether the agent's user goes to the page. Never rejects. */
  #ask(caller: Caller, server: string, underWay: UnderWay): Promise<boolean> {
    const { sessionKey } = caller;
    const before = underWay.asked.get(sessionKey);
    if (before !== undefined) return before;
    const taken = new AbortController();
    void underWay.done.then(() => taken.abort());
    const pageId = caller.era === "legacy" ? randomUUID() : undefined;
    const asked = underWay.begun
      .then((address) => caller.ask(question(server, address, pageId), taken.signal))
      .then(({ result }) => {
        const isWilling = isObject(result) && result["action"] === "accept";
        if (isWilling) underWay.isVisited = true;
        return isWilling;
      })
      // One that does not answer any more because somebody has logged in is not asked for.
      .catch(() => taken.signal.aborted);
    underWay.asked.set(sessionKey, asked);
    if (pageId !== undefined) void Promise.all([asked, underWay.done]).then(() => complete(caller, pageId));
    return asked;
  }

  #begin(server: string, login: LoginInCall, wanted: LoginWantedBy): UnderWay {
    const before = login.finished;
    let callback: Callback | undefined;
    let isEnded = false;
    let isAnswered = false;
    let end: UnderWay["end"] = () => {};
    const done = new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => end("timeout"), LOGIN_MS).unref();
      const look = setInterval(() => {
        // What the browser brought back ends it by itself.
        if (login.finished !== before && !isAnswered) end("elsewhere");
        else if (login.isStopped) end("cancelled");
      }, LOOK_MS).unref();
      end = (outcome) => {
        if (isEnded) return;
        isEnded = true;
        clearTimeout(timer);
        clearInterval(look);
        callback?.close();
        if (this.#underWay.get(server) === underWay) this.#underWay.delete(server);
        if (outcome !== "elsewhere") this.#parts.ended({ server, outcome, ...wanted });
        resolve(outcome === "ok" || outcome === "elsewhere");
      };
    });
    const begin = async (): Promise<string> => {
      const page = await this.#parts.listen(login.redirectPort);
      callback = page;
      // Nobody waits any more.
      if (isEnded) page.close();
      const { address, state } = await login.begin(page.redirectUri);
      void page.answerTo(state).then((answer) => {
        isAnswered = true;
        return login.finish(answer).then(
          () => {
            page.tell(undefined);
            end("ok");
          },
          (error: Error) => {
            page.tell(error.message);
            failed(error);
          },
        );
      });
      return address;
    };
    const failed = (error: Error): void => {
      this.#parts.log(`server "${server}": a login that was begun failed: ${error.message}`);
      end("failed");
    };
    const begun = begin();
    begun.catch(failed);
    const underWay: UnderWay = { waiting: 0, begun, done, asked: new Map(), isVisited: false, end };
    this.#underWay.set(server, underWay);
    return underWay;
  }
}

function takesPages({ capabilities }: Caller): boolean {
  const { elicitation } = capabilities;
  return isObject(elicitation) && isObject(elicitation["url"]);
}

function question(server: string, url: string, pageId: string | undefined): RequestMessage {
  const message = `"${server}" needs a login. Log in on this page; the call goes on when that is done.`;
  const params = { mode: "url", message, url, ...(pageId === undefined ? {} : { elicitationId: pageId }) };
  return makeMessage({ jsonrpc: "2.0", id: 0, method: "elicitation/create", params }) as RequestMessage;
}

/** The legacy era is told when a page has served its purpose. */
function complete(caller: Caller, elicitationId: string): void {
  const method = "notifications/elicitation/complete";
  const params = { elicitationId };
  caller.notify(makeNotification(method, params));
}
