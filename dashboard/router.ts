// Addresses of views: a path, and filters in its query. Links are followed without a load.

import { computed, signal } from "@preact/signals";
import { decoded } from "../src/runtime/words/percent.js";

const here = signal(new URL(location.href));

/** What somebody typed may be no code at all: then it stands for itself, and the view says that there is no such thing. */
export const path = computed(() => here.value.pathname.split("/").slice(1).map(decoded));
export const query = computed(() => here.value.searchParams);

export function go(href: string): void {
  history.pushState(null, "", href);
  here.value = new URL(location.href);
}

/** Sets a filter of this view without a step in the history. */
export function setQuery(name: string, value: string): void {
  const next = new URL(location.href);
  if (value === "") next.searchParams.delete(name);
  else next.searchParams.set(name, value);
  history.replaceState(null, "", next);
  here.value = next;
}

addEventListener("popstate", () => {
  here.value = new URL(location.href);
});

addEventListener("click", (event) => {
  const anchor = (event.target as Element | null)?.closest?.("a");
  if (anchor === null || anchor === undefined || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (anchor.origin !== location.origin || anchor.target !== "") return;
  event.preventDefault();
  go(anchor.href);
});
