// The metrics at the operator's door: in the form that who asks can read, and small on the wire. What they are is given.

import type { IncomingMessage, ServerResponse } from "node:http";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

export type MetricsForm = "prometheus" | "openmetrics";
/** The text in one form, which is the same for a moment. */
export type MetricsText = (form: MetricsForm) => Promise<string>;

const zip = promisify(gzip);

const TYPES: Readonly<Record<MetricsForm, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};
/** What is shorter gains nothing. */
const MIN_ZIPPED = 1_024;

/** OpenMetrics where it is wanted as much as the older text or more: `*` is the older one, which every reader knows. */
export function metricsForm(accept: string | undefined): MetricsForm {
  let [open, plain] = [0, 0];
  for (const range of (accept ?? "").split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const weight = Number(parameters.find((one) => one.startsWith("q="))?.slice(2) ?? 1);
    const version = parameters.find((one) => one.startsWith("version="))?.slice("version=".length);
    if (type === "application/openmetrics-text" && (version ?? "1.0.0") === "1.0.0") open = Math.max(open, weight);
    else if (type === "text/plain") plain = Math.max(plain, weight);
  }
  return open > 0 && open >= plain ? "openmetrics" : "prometheus";
}

export class MetricsAnswers {
  readonly #text: MetricsText;
  /** The last of each form, so that two who ask for the same text zip it once. */
  readonly #zipped = new Map<MetricsForm, { readonly text: string; readonly bytes: Promise<Buffer> }>();

  constructor(text: MetricsText) {
    this.#text = text;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = metricsForm(request.headers.accept);
    const text = await this.#text(form);
    const takesZip = /\bgzip\b(?!;\s*q=0(\.0*)?\s*(,|$))/i.test(String(request.headers["accept-encoding"] ?? ""));
    const isZipped = takesZip && text.length >= MIN_ZIPPED;
    const body = isZipped ? await this.#zip(form, text) : Buffer.from(text);
    response.writeHead(200, {
      "Content-Type": TYPES[form],
      "Content-Length": body.length,
      "Cache-Control": "no-store",
      Vary: "Accept, Accept-Encoding",
      ...(isZipped ? { "Content-Encoding": "gzip" } : {}),
    });
    response.end(request.method === "HEAD" ? undefined : body);
  }

  #zip(form: MetricsForm, text: string): Promise<Buffer> {
    const kept = this.#zipped.get(form);
    if (kept?.text === text) return kept.bytes;
    const bytes = zip(text);
    this.#zipped.set(form, { text, bytes });
    return bytes;
  }
}
