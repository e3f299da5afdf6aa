// Two gateways, each a process, on one engine with one login: when the token has ended, one of them renews it for both, because the
// refresh token that it shows is good once.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { authorityOfTest, logInByHand } from "../e2e/authority.js";
import { connect } from "../e2e/eras.js";
import { startGateway } from "../e2e/harness.js";
import { statusOf } from "../e2e/operator.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `one login of two gateways, ${NO_NATS}` : "one login of two gateways";
/** At each gateway, all at once. */
const CALLS = 50;

describe.skipIf(natsPrograms.length === 0)(title, () => {
  it("is renewed once for a hundred calls at both, again and again, and nobody has to log in [engine-logins]", async () => {
    const [nats, authority] = [await startNats(), await authorityOfTest()];
    const key = join(temporaryFolder("toolway-logins-"), "key");
    writeFileSync(key, makeEngineKey(), { mode: 0o600 });
    const config = {
      mcpServers: { linear: { url: authority.url, auth: "oauth", trust: "always" } },
      engine: { nats: nats.urls, key: { file: key }, replicas: 1 },
    };
    const both = [await startGateway(config), await startGateway(config)] as const;
    await logInByHand(both[0], "linear");
    const agents = await Promise.all(both.map((gateway) => connect("legacy", gateway)));
    // The second hears of the login from the engine.
    await Promise.all(agents.map((agent) => agent.waitFor("read")));
    const grants = ["authorization_code"];
    // A refresh token is another after each renewal: one that was shown twice would end the whole login.
    for (let round = 1; round <= 3; round++) {
      await authority.tell("expire");
      const calls = agents.flatMap((agent, at) =>
        Array.from({ length: CALLS }, (_, n) => agent.text("read", { n: `${round}-${at}-${n}` })),
      );
      const all = await Promise.all(calls);
      expect(new Set(all).size).toBe(2 * CALLS);
      grants.push("refresh_token");
      const told = await authority.tell("look");
      expect([told.grants, told.calls]).toEqual([grants, round * 2 * CALLS]);
    }
    for (const gateway of both) {
      await until("it to be ready", async () => (await statusOf(gateway, "linear")).state === "ready");
      expect((await statusOf(gateway, "linear")).credential).toMatchObject({ state: "known", needsLogin: false });
    }
  }, 120_000);
});
