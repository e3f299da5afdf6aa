// Where a collector takes spans and where it takes metrics, from the one address of the config. Pure.

const TRACES = "/v1/traces";
const METRICS = "/v1/metrics";

export interface CollectorPlaces {
  readonly traces: string;
  /** Undefined where the address does not say: it has a path of its own, which is meant for spans. */
  readonly metrics: string | undefined;
}

/** `otlp` is an address that was checked. */
export function placesOf(otlp: string): CollectorPlaces {
  const url = new URL(otlp);
  const at = (path: string) => {
    const place = new URL(url);
    place.pathname = path;
    return place.href;
  };
  const { pathname } = url;
  if (pathname === "" || pathname === "/") return { traces: at(TRACES), metrics: at(METRICS) };
  if (!pathname.endsWith(TRACES)) return { traces: otlp, metrics: undefined };
  return { traces: otlp, metrics: at(pathname.slice(0, -TRACES.length) + METRICS) };
}
