// What servers say of their own accord: who they are, what they have, and messages to agents. The catalog, the pins and the
// cache know of it first; then those who are concerned are told.

import type { Cache } from "../cache/cache.js";
import type { Catalog } from "../catalog/catalog.js";
import { bytesOf } from "../catalog/items.js";
import type { Caller } from "../contracts/caller.js";
import type { Pins } from "../contracts/pins.js";
import type { Servers } from "../contracts/servers.js";
import type { Freshness, Listed, ListKind, ServerIntro, Upstream, UpstreamEvents } from "../contracts/upstream.js";
import type { NotificationMessage, RequestMessage } from "../protocol/message.js";
import type { Access } from "./access.js";
import { type AgentNotifications, Announcements } from "./agent-notifications.js";
import { withToolsChange } from "./menu-changes.js";
import { isServedBy, type Subscriptions } from "./subscriptions.js";
import type { Tasks } from "./tasks.js";

interface FromServersParts {
  readonly catalog: Catalog;
  readonly pins: Pins;
  readonly cache: Cache;
  readonly access: Access;
  readonly sessions: AgentNotifications;
  readonly tasks: Tasks;
  /** They are attached once they exist, and say nothing before. */
  readonly servers: () => Servers;
  readonly subscriptions: () => Subscriptions;
  readonly now: () => number;
  /** Called when what is known of a server has changed: keep its snapshot. */
  readonly onKnown: (server: string) => void;
  readonly log: (level: "warn", text: string) => void;
  /** A text of the server's without the secrets of its entry. Where it is absent, the text is logged as it is. */
  readonly redact: ((server: string, text: string) => string) | undefined;
}

export class FromServers implements UpstreamEvents {
  readonly #parts: FromServersParts;
  readonly #announcements = new Announcements();

  constructor(parts: FromServersParts) {
    this.#parts = parts;
  }

  onIntro(server: string, intro: ServerIntro, connection: Upstream, owner: Caller | undefined): void {
    const { catalog, subscriptions, onKnown } = this.#parts;
    catalog.setIntro(server, intro);
    subscriptions().repeat(server, intro, connection, owner);
    onKnown(server);
  }

  onSession(server: string, intro: ServerIntro, connection: Upstream): void {
    this.#parts.subscriptions().repeat(server, intro, connection, undefined);
  }

  listRefusal(server: string, kind: ListKind, items: readonly Listed[]): string | undefined {
    return this.#parts.catalog.room.refusal(server, kind, bytesOf(items));
  }

  onList(server: string, kind: ListKind, items: readonly Listed[], freshness?: Freshness): void {
    const { catalog, pins, access, sessions, log, redact, onKnown, now } = this.#parts;
    // This comes before the catalog has them, so that no agent sees a changed definition.
    const pinned = kind === "tools" && pins.check(server, items).differs;
    if (pinned) catalog.clearPages();
    const setList = () => catalog.setList(server, kind, items, freshness);
    const isNarrowed = kind === "tools" && access.menus !== undefined;
    const changed = isNarrowed ? withToolsChange(sessions, server, setList) : setList();
    // With its tools, what is left of a server may have become more or less.
    if (changed && isNarrowed) catalog.clearPages();
    for (const remark of catalog.takeRemarks())
      log("warn", `server "${server}": ${redact?.(server, remark) ?? remark}`);
    if (changed) onKnown(server);
    else if (!pinned) {
      if (this.#announcements.unchanged(server, kind, now())) sessions.listAnnounced(kind, server);
      return;
    }
    this.#announcements.changed(server, kind);
    this.#invalidate(server, [kind]);
    sessions.listChanged(kind, [server]);
  }

  onNotification(
    server: string,
    message: NotificationMessage,
    caller: Caller | undefined,
    connection?: Upstream,
  ): void {
    const { cache, servers, tasks, sessions } = this.#parts;
    const uri = message.method === "notifications/resources/updated" ? message.params?.["uri"] : undefined;
    if (typeof uri === "string") cache.invalidate(server, { uri });
    const handle = servers().get(server);
    if (tasks.notified(server, message, caller, handle?.isolation === "session")) return;
    sessions.notify(server, message, caller, (session) => isServedBy(session, handle, connection));
  }

  aboutTask<M extends RequestMessage | NotificationMessage>(server: string, message: M, caller: Caller): M | undefined {
    return this.#parts.tasks.aboutTask(server, message, caller);
  }

  onListChanged(server: string, kinds: readonly ListKind[]): void {
    this.#announcements.announced(server, kinds);
    this.#invalidate(server, kinds);
  }

  onState(): void {}

  /** What was answered before may be out of date, whatever the new list says. */
  #invalidate(server: string, kinds: readonly ListKind[]): void {
    for (const kind of kinds) {
      if (kind !== "prompts") this.#parts.cache.invalidate(server, kind === "tools" ? "tools" : "resources");
    }
  }
}
