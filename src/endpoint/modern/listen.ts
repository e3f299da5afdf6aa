// One subscriptions/listen: what the agent asked to hear of, the acknowledgement, and what it is then told. Which
// changes reach its agent at all is the service's to decide; what of them this listener asked for is decided here.

import type { NotificationText } from "../../contracts/caller.js";
import type { Fault } from "../../protocol/errors.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { makeNotification, withChanges } from "../../protocol/message.js";
import { Meta } from "../../protocol/modern.js";
import { coversUri } from "../../protocol/resource-uris.js";
import type { EndpointLimits } from "../session/limits.js";
import type { Outlet } from "./outlet.js";
import type { Listening, Presence } from "./presence.js";

export interface ListenFilter {
  /** Members of the filter that stand for a list each. */
  readonly lists: ReadonlySet<ListFlag>;
  readonly uris: readonly string[];
}

type ListFlag = keyof typeof LISTS;

/** Member of the filter → the capability that it needs. */
const LISTS = {
  toolsListChanged: "tools",
  promptsListChanged: "prompts",
  resourcesListChanged: "resources",
} as const;

const FLAGS = Object.keys(LISTS) as ListFlag[];

const FLAG_OF: Readonly<Record<string, ListFlag>> = Object.fromEntries(
  FLAGS.map((flag) => [`notifications/${LISTS[flag]}/list_changed`, flag]),
);

/** What is heard before the acknowledgement waits for it; the same said twice waits once. */
const MAX_EARLY = 256;

/** The filter, or what is wrong with it. */
export function readFilter(params: JsonObject | undefined, maxUris: number): ListenFilter | string {
  const filter = params?.["notifications"];
  if (!isObject(filter)) return 'subscriptions/listen needs "notifications": what to listen to.';
  const lists = new Set<ListFlag>();
  for (const flag of FLAGS) {
    const value = filter[flag];
    if (value !== undefined && typeof value !== "boolean") return `notifications.${flag} is true or false.`;
    if (value === true) lists.add(flag);
  }
  const uris = filter["resourceSubscriptions"] ?? [];
  if (!Array.isArray(uris) || !uris.every((uri) => typeof uri === "string")) {
    return "notifications.resourceSubscriptions is an array of URIs.";
  }
  if (uris.length > maxUris) return `One subscriptions/listen has at most ${maxUris} resources.`;
  return { lists, uris: [...new Set(uris)] };
}

export class ListenRequest implements Listening {
  readonly #presence: Presence;
  readonly #outlet: Outlet;
  readonly #limits: EndpointLimits;
  readonly #lists = new Set<ListFlag>();
  readonly #uris = new Set<string>();
  /** What is held back until the acknowledgement has gone out; undefined from then on. */
  #early: Map<string, NotificationText> | undefined = new Map();
  #over = false;

  constructor(presence: Presence, outlet: Outlet, limits: EndpointLimits) {
    this.#presence = presence;
    this.#outlet = outlet;
    this.#limits = limits;
    presence.listeners.add(this);
    outlet.opened?.();
    outlet.onGone = () => this.#end();
  }

  /** Begins with the acknowledgement; before that, only servers that are asked to subscribe are waited for. */
  async begin({ lists, uris }: ListenFilter, capabilities: JsonObject): Promise<void> {
    for (const flag of lists) {
      const capability = capabilities[LISTS[flag]];
      if (isObject(capability) && capability["listChanged"] === true) this.#lists.add(flag);
    }
    const { resources } = capabilities;
    if (uris.length > 0 && isObject(resources) && resources["subscribe"] === true) await this.#subscribe(uris);
    if (!this.#over) this.#acknowledge();
  }

  async #subscribe(uris: readonly string[]): Promise<void> {
    for (const uri of uris) this.#uris.add(uri);
    let timer: NodeJS.Timeout | undefined;
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#limits.listenAckMs).unref();
    });
    const all = uris.map(async (uri) => {
      const honoured = await this.#presence.subscribe(uri);
      if (!honoured && this.#uris.delete(uri)) this.#presence.unsubscribe(uri);
    });
    await Promise.race([Promise.all(all), enough]);
    clearTimeout(timer);
  }

  #acknowledge(): void {
    const notifications: JsonObject = {};
    for (const flag of this.#lists) notifications[flag] = true;
    if (this.#uris.size > 0) notifications["resourceSubscriptions"] = [...this.#uris];
    const early = this.#early?.values() ?? [];
    this.#early = undefined;
    this.#tell(makeNotification("notifications/subscriptions/acknowledged", { notifications }));
    for (const one of early) this.#tell(one);
  }

  hear(notification: NotificationText, uri: string | undefined): void {
    const { method, text } = notification;
    const flag = FLAG_OF[method];
    const wanted =
      flag === undefined
        ? method === "notifications/resources/updated" && uri !== undefined && this.#watches(uri)
        : this.#lists.has(flag);
    if (!wanted) return;
    if (this.#early === undefined) this.#tell(notification);
    else if (this.#early.size < MAX_EARLY) this.#early.set(text, notification);
  }

  /** The update may be of a part of what was subscribed to. */
  #watches(uri: string): boolean {
    return coversUri(this.#uris, uri);
  }

  #tell(notification: NotificationText): void {
    const id = JSON.stringify(this.#outlet.message.id);
    this.#outlet.notify(withChanges(notification, { meta: [[Meta.subscriptionId, id]] }));
  }

  /** Ends gracefully, so that the agent may listen anew. */
  close(_fault: Fault): void {
    if (this.#over) return;
    this.#end();
    const _meta = {
      [Meta.subscriptionId]: this.#outlet.message.id,
      [Meta.serverInfo]: this.#presence.serverInfo,
    };
    this.#outlet.reply({ kind: "result", result: { resultType: "complete", _meta } });
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#outlet.onGone = undefined;
    this.#presence.listeners.delete(this);
    for (const uri of this.#uris) this.#presence.unsubscribe(uri);
    this.#uris.clear();
  }
}
