// The servers of a config as those who walk them all see them. What is started here never answers.

import { expect, it } from "vitest";
import { PlayedLink } from "../../test/fixtures/links/played.js";
import { SUPERVISED } from "../../test/fixtures/spec.js";
import type { ServerSpec } from "../contracts/server-spec.js";
import { ServerPool } from "./servers.js";

const spec = (name: string, path = "/mcp"): ServerSpec => ({
  name,
  target: { kind: "http", url: `http://127.0.0.1:9${path}`, headers: {}, via: undefined },
  isolation: "shared",
  connectTimeoutMs: 15_000,
  callTimeoutMs: 15_000,
  ...SUPERVISED,
});

function pool(): ServerPool {
  const nothing = () => {};
  return new ServerPool({
    context: { now: () => 0, random: () => 0, makeLink: (_, events) => new PlayedLink(events) },
    events: { onIntro: nothing, onList: nothing, onNotification: nothing, onState: nothing },
    clientInfo: { name: "test", version: "1" },
    log: nothing,
  });
}

it("are one array until one of them is another: by a config, by one that cannot be used, by a reload [menu-current]", async () => {
  const servers = pool();
  const seen = () => servers.handles.map(({ name }) => name);
  const areNow = () => expect(servers.handles).toEqual(servers.names.map((name) => servers.get(name)));
  expect(seen()).toEqual([]);
  servers.apply([spec("a"), spec("b")]);
  expect(seen()).toEqual(["a", "b"]);
  expect(servers.handles).toBe(servers.handles);
  const [before] = servers.handles;
  servers.apply([spec("a", "/other"), spec("c")], [{ name: "wrong", why: "it has no url" } as never]);
  expect(seen()).toEqual(["a", "c", "wrong"]);
  expect(servers.handles[0]).not.toBe(before);
  areNow();
  const changed = servers.handles[0];
  void servers.reload("a").catch(() => {});
  expect(servers.handles[0]).not.toBe(changed);
  areNow();
  await servers.close();
  areNow();
});
