// How a request at an executor fails: what is told of it, in words for people and a code for programs. A URL is told
// without its query, which may hold secrets.

import { safeUrl } from "../../runtime/redact/safe-url.js";
import { DestinationRefused } from "../allow/destinations.js";
import { type FailureData, RpcCode } from "../wire/protocol.js";

/** What is to be answered instead of a response, or after the part of it that came. */
export interface RequestFailure {
  readonly rpcCode: number;
  readonly message: string;
  readonly data: FailureData;
}

/** What OpenSSL and Node call a certificate that nobody vouches for here. */
const UNTRUSTED = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/** A failure that the executor itself decided on. */
export function failure(code: string, message: string, written: boolean): RequestFailure {
  return { rpcCode: RpcCode.failed, message: `http/request failed: ${message}`, data: { code, written } };
}

/** What the network, TLS, HTTP's parser or the rules said. `inBody`: the head of the answer was there. */
export function failureOf(error: unknown, url: URL, inBody: boolean, written: boolean): RequestFailure {
  if (error instanceof DestinationRefused) return failure("forbidden", error.message, written);
  const { code, message } = told(error);
  const where = safeUrl(url);
  if (code === "HPE_HEADER_OVERFLOW") return failure("limit", `the headers of ${where} are too large`, written);
  if (inBody) return failure(code, `the body of ${where} broke off: ${message}`, written);
  if (UNTRUSTED.has(code)) {
    const advice = "if its authority is to be trusted, start the executor with NODE_EXTRA_CA_CERTS set to its file";
    return failure(code, `the certificate of ${url.host} is not trusted (${message}): ${advice}`, written);
  }
  if (code === "EPROTO") return failure(code, `${url.host} does not speak TLS as it should: is it https?`, written);
  return failure(code, `${message} (${where})`, written);
}

function told(error: unknown): { code: string; message: string } {
  // Several addresses were tried: each has its own error, the whole has no message.
  const first: unknown = error instanceof AggregateError ? (error.errors[0] ?? error) : error;
  if (!(first instanceof Error)) return { code: "ERROR", message: String(first) };
  const { code } = first as NodeJS.ErrnoException;
  return { code: typeof code === "string" ? code : "ERROR", message: first.message };
}
