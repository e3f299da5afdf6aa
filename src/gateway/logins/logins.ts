// Logins at servers, as the operator asks for them: begun, finished, ended. What a login is belongs to credentials/; here
// is what it means to the rest of the gateway.

import type { Catalog } from "../../catalog/catalog.js";
import type { Target } from "../../contracts/server-spec.js";
import type { EndedLogin, LoginHandler } from "../../contracts/service.js";
import type { CredentialStatus } from "../../contracts/status.js";
import { ControlError, type ControlRoutes } from "../../control/server.js";
import type { Credentials } from "../../credentials/credentials.js";
import type { BegunLogin, LoginAnswer, LoginSource } from "../../credentials/login-source.js";
import type { Pipeline } from "../../pipeline/pipeline.js";
import { isObject } from "../../protocol/jsonrpc.js";
import { isLoopback } from "../../runtime/addresses.js";
import { nearest } from "../../runtime/nearest.js";
import { LoginQuestions } from "./login-questions.js";

interface Named {
  readonly name: string;
  readonly target: Target;
}

/** What a login concerns of the stages of a gateway. */
interface LoginStages {
  readonly credentials: Credentials;
  readonly servers: {
    readonly all: Iterable<{ readonly spec: Named }>;
    supervised(name: string): unknown;
    reload(name: string): Promise<void>;
  };
  readonly catalog: Pick<Catalog, "remove">;
  readonly cache: { invalidate(server: string): void };
  readonly lists: { forget(server: string): void };
  readonly records: { readonly audit: { login(login: EndedLogin): void } | undefined };
  readonly pipeline: {
    readonly sessions: Pick<Pipeline["sessions"], "listChanged">;
    readonly sender: { logins: LoginHandler | undefined };
  };
}

export class Logins {
  readonly #stages: LoginStages;
  readonly #configured: () => readonly Named[];
  readonly #questions: LoginQuestions;

  /**
   * `configured`: the servers of the config, for where none is started. `endpoint`: where agents come in; undefined
   * where they do over pipes alone.
   */
  constructor(
    stages: LoginStages,
    configured: () => readonly Named[],
    { endpoint, log }: { endpoint(): string | undefined; readonly log: { warn(text: string): void } },
  ) {
    this.#stages = stages;
    this.#configured = configured;
    this.#questions = new LoginQuestions({
      loginOf: (server) => this.#find(server),
      isNear: () => {
        const url = endpoint();
        return url === undefined || isLoopback(new URL(url).hostname);
      },
      // Loaded when the first is asked for: a start has no file more to open.
      listen: async (port) => (await import("../../credentials/callback.js")).listenForCallback(port),
      log: (text) => log.warn(text),
      ended: (login) => this.#stages.records.audit?.login(login),
    });
    stages.pipeline.sender.logins = this.#questions;
  }

  /** Undefined where there is no such server, or nobody logs in at it. */
  #find(server: string): LoginSource | undefined {
    const spec = [...this.#stages.servers.all].find((one) => one.spec.name === server)?.spec;
    return spec === undefined ? undefined : this.#stages.credentials.loginOf(server, spec.target);
  }

  /** The port on 127.0.0.1 that the browser has to come back to; undefined: any. */
  redirectPort(server: string): number | undefined {
    return this.#of(server).login.redirectPort;
  }

  /** `redirectUri`: where the browser comes back to, on this machine. */
  begin(server: string, redirectUri: string): Promise<BegunLogin> {
    const { login } = this.#of(server);
    const url = URL.canParse(redirectUri) ? new URL(redirectUri) : undefined;
    if (url?.protocol !== "http:" || url.hostname !== "127.0.0.1") {
      throw new ControlError("invalid", "A browser comes back to http://127.0.0.1, and nowhere else.");
    }
    return login.begin(redirectUri);
  }

  /** The same, with the gateway itself at the place that the browser comes back to. Resolves with what a person opens. */
  async open(server: string): Promise<{ readonly address: string }> {
    const { redirectPort } = this.#of(server).login;
    try {
      const address = await this.#questions.open(server);
      if (address !== undefined) return { address };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
      const why = `The port ${redirectPort ?? 0} on 127.0.0.1, to which the browser comes back, is taken.`;
      throw new ControlError("unavailable", `${why} End what uses it, or change "redirectPort" in the config.`);
    }
    throw new ControlError(
      "unavailable",
      `${JSON.stringify(server)} is not started: \`toolway login\` needs no server.`,
    );
  }

  async finish(server: string, answer: LoginAnswer): Promise<CredentialStatus | undefined> {
    const { login, target } = this.#of(server);
    const told = (outcome: "ok" | "failed") => this.#stages.records.audit?.login({ server, outcome, by: "operator" });
    await login.finish(answer).catch((error: unknown) => {
      told("failed");
      throw error;
    });
    told("ok");
    return this.#stages.credentials.status(target);
  }

  /** Whether there was a login. */
  async logout(server: string): Promise<boolean> {
    const wasIn = await this.#of(server).login.logout();
    const { catalog, cache, lists, pipeline, servers } = this.#stages;
    // Whoever was logged in is gone: what they could see is shown to nobody any more.
    cache.invalidate(server);
    lists.forget(server);
    for (const kind of catalog.remove(server)) pipeline.sessions.listChanged(kind, [server]);
    if (servers.supervised(server) !== undefined) await servers.reload(server);
    return wasIn;
  }

  #of(server: string): { readonly login: LoginSource; readonly target: Target } {
    const used = [...this.#stages.servers.all].map(({ spec }) => spec);
    const servers = used.length > 0 ? used : this.#configured();
    const target = servers.find(({ name }) => name === server)?.target;
    if (target === undefined) {
      const names = servers.map(({ name }) => name);
      const near = nearest(server, names);
      const known = names.length === 0 ? "" : ` There ${names.length === 1 ? "is" : "are"} ${names.join(", ")}.`;
      const hint = near === undefined ? known : ` Did you mean ${near}?`;
      throw new ControlError("not-found", `There is no server ${JSON.stringify(server)} that can be used.${hint}`);
    }
    const login = this.#stages.credentials.loginOf(server, target);
    if (login !== undefined) return { login, target };
    const what =
      target.kind === "http" || target.kind === "sse" ? 'Add "auth": "oauth" to its entry.' : "It has no address.";
    throw new ControlError(
      "invalid",
      `Nobody logs in at ${JSON.stringify(server)}: its entry asks for no login. ${what}`,
    );
  }
}

/**
 * `GET /servers/:server/login`, `POST …/login` with `{redirectUri}`, `POST …/login/finish`, `POST …/login/open`, which takes
 * no address, `POST …/logout`.
 */
export function loginRoutes(logins: Logins): ControlRoutes {
  const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
  const bodyOf = (body: unknown) => (isObject(body) ? body : {});
  return {
    "GET /servers/:server/login": ({ params }) => ({ redirectPort: logins.redirectPort(params["server"] ?? "") }),
    "POST /servers/:server/login": ({ params, body }) =>
      logins.begin(params["server"] ?? "", textOf(bodyOf(body)["redirectUri"]) ?? ""),
    "POST /servers/:server/login/open": ({ params }) => logins.open(params["server"] ?? ""),
    "POST /servers/:server/login/finish": async ({ params, body }) => {
      const { state, code, iss, error } = bodyOf(body);
      const answer = { state: textOf(state) ?? "", code: textOf(code), iss: textOf(iss), error: textOf(error) };
      return { credential: await logins.finish(params["server"] ?? "", answer) };
    },
    "POST /servers/:server/logout": async ({ params }) => ({
      wasLoggedIn: await logins.logout(params["server"] ?? ""),
    }),
  };
}
