// The search menu's two tools at work: find_tools answers from the catalog, call_tool stands for another call.

import type { Catalog } from "../catalog/catalog.js";
import { findResult, parseFindArguments, unwrapCall } from "../catalog/search.js";
import type { View } from "../catalog/view.js";
import type { AgentCall } from "../contracts/service.js";
import { CallWrapper } from "./call-wrapper.js";

/** Rejects where the search itself failed; the call has then not been answered. */
export async function findTools(call: AgentCall, catalog: Catalog, view: View): Promise<void> {
  const wanted = parseFindArguments(call.message.params?.["arguments"]);
  const found = typeof wanted === "string" ? wanted : await catalog.find(wanted.query, wanted.limit, view);
  call.reply({ kind: "result", result: findResult(found) });
}

/** call_tool{name, arguments} becomes the call that it stands for; policy sees that one. */
export function foundCall(call: AgentCall): AgentCall {
  return new CallWrapper(call, unwrapCall(call.message));
}
