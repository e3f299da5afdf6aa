// The person before the browser, for the suite's auth scenarios: logs in at the suite's server through the gateway
// whenever that says that a login is needed. The suite's pages consent by themselves, and lead back at once.

/** What the suite expects of a client that names itself by a document. */
const CLIENT_METADATA_URL = "https://conformance-test.local/client-metadata.json";
/** Nobody comes back to it: what the browser would bring is in the address. */
const REDIRECT_URI = "http://127.0.0.1:41999/callback";
/** A person who was sent to a login so often for one thing does not go again. */
const MOST_LOGINS = 3;
/** A scenario has 30 s; a server that wants no login is ready long before. */
const NEED_MS = 10_000;
const LOOK_MS = 25;

/** The `auth` of the server's entry: a client that the scenario has registered is named in its context. */
export function authFor({ client_id: clientId, client_secret: clientSecret }) {
  if (clientId === undefined) return { oauth: { clientMetadataUrl: CLIENT_METADATA_URL } };
  return { oauth: { clientId, ...(clientSecret === undefined ? {} : { clientSecret }) } };
}

export class Person {
  #logins = 0;

  constructor(gateway, server, note) {
    this.gateway = gateway;
    this.server = server;
    this.note = note;
  }

  /** Whether the login came to an end that lets the agent go on. */
  async logIn() {
    if (this.#logins++ >= MOST_LOGINS) return false;
    try {
      const { address, state } = await this.gateway.logins.begin(this.server, REDIRECT_URI);
      const answer = await fetch(address, { redirect: "manual" });
      await answer.text();
      const back = new URL(answer.headers.get("location") ?? "", REDIRECT_URI).searchParams;
      const brought = (name) => back.get(name) ?? undefined;
      const [code, iss, error] = ["code", "iss", "error"].map(brought);
      await this.gateway.logins.finish(this.server, { state: brought("state") ?? state, code, iss, error });
      this.note(`login ${this.#logins} is done`);
      return true;
    } catch (error) {
      this.note(`login ${this.#logins}: ${error.message}`);
      return false;
    }
  }

  /** Waits until the server is there; logs in where that is what it waits for. False where it will not come. */
  async untilReady() {
    const deadline = Date.now() + NEED_MS;
    while (Date.now() < deadline) {
      const [{ state, listsFromBefore, credential }] = this.gateway.status().servers;
      if (state === "ready" && !listsFromBefore) return true;
      if (credential?.needsLogin && !(await this.logIn())) return false;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    this.note(`not ready: ${JSON.stringify(this.gateway.status().servers)}`);
    return false;
  }

  /** Whether a call that failed so can be made again, now that somebody has logged in. */
  async mended({ message }) {
    return /needs login/.test(message) && (await this.logIn());
  }
}
