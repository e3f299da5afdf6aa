// Which link a server's entry means.

import type { ServerSpec } from "../upstream.js";
import { openHttpLink } from "./http.js";
import type { Link, LinkEvents } from "./link.js";
import { SseLink } from "./sse.js";
import { type StdioContext, StdioLink } from "./stdio.js";

export function linkMaker(context: StdioContext): (spec: ServerSpec, events: LinkEvents) => Link {
  return (spec, events) => {
    const { target } = spec;
    switch (target.kind) {
      case "stdio":
        return new StdioLink(target, events, context);
      case "sse":
        return new SseLink(target, events);
      case "http":
        return openHttpLink(target, events);
    }
  };
}
