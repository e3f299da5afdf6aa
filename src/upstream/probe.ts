// Starts one server by itself, asks what it has, and stops it again: what `toolway doctor` does.

import { ownToolName } from "../contracts/names.js";
import type { ServerSpec } from "../contracts/server-spec.js";
import type { Listed, ServerIntro } from "../contracts/upstream.js";
import { refusedKey } from "../protocol/definitions/key-argument.js";
import { judge } from "../protocol/definitions/mend.js";
import { Fault, type FaultReason } from "../protocol/errors.js";
import type { Era } from "../protocol/modern.js";
import { faultReply } from "../protocol/reply.js";
import { messageOf } from "../runtime/expected-error.js";
import { redactorFor } from "../runtime/redact/secrets-of.js";
import { within } from "../runtime/wait.js";
import { sentence } from "../runtime/words/sentence.js";
import { Connection } from "./connection/connection.js";
import { EVERY_CAPABILITY } from "./era/handshake.js";
import type { Link, LinkEvents } from "./link/link.js";
import { cardWithoutSecrets, withoutSecrets } from "./link/safe-fault.js";
import { hasList, readList } from "./lists/read.js";
import { Breaker } from "./supervise/breaker.js";

export interface ProbeResult {
  readonly ok: boolean;
  readonly era: Era | undefined;
  readonly version: string | undefined;
  readonly serverInfo: { readonly name?: string; readonly version?: string } | undefined;
  /** The server's own names of its tools. */
  readonly tools: readonly string[];
  /**
   * What clients would refuse in the definitions of its tools, and agents see mended or not at all; that a schema forbids
   * the key of an outbox; and that a child offers both eras, of which it can be spoken to in one.
   */
  readonly problems: readonly string[];
  readonly readyMs: number | undefined;
  readonly error: ProbeError | undefined;
  readonly stderr: readonly string[];
  readonly noise: { readonly count: number; readonly sample: string | undefined };
}

export interface ProbeError {
  readonly code: string;
  readonly reason: FaultReason | undefined;
  /** What happened; what to do about it stands in `remedy`. */
  readonly message: string;
  readonly remedy: string | undefined;
}

export interface ProbeContext {
  readonly makeLink: (spec: ServerSpec, events: LinkEvents) => Link;
  readonly clientInfo: { readonly name: string; readonly version: string };
  readonly now: () => number;
  /** Gets what tells the last lines that a child has written so far. */
  readonly watch?: ((stderr: () => readonly string[]) => void) | undefined;
}

export async function probeServer(spec: ServerSpec, context: ProbeContext, signal: AbortSignal): Promise<ProbeResult> {
  const { now } = context;
  const redactor = redactorFor(spec.target);
  const noise = { count: 0, sample: undefined as string | undefined };
  const deadline = within(spec.connectTimeoutMs, signal);
  const startedMs = now();
  const connection = connectionTo(spec, context, noise);
  context.watch?.(() => connection.describe().stderr ?? []);
  // A server that answers something else and then nothing leaves no work behind, and the deadline keeps no process
  // alive: without this, it would end before its report.
  const awake = setInterval(() => {}, spec.connectTimeoutMs);
  let intro: ServerIntro | undefined;
  let readyMs: number | undefined;
  let tools: string[] = [];
  let problems: string[] = [];
  let error: ProbeResult["error"];
  try {
    intro = await connection.open(deadline);
    readyMs = Math.round(now() - startedMs);
    if (hasList(intro.capabilities, "tools")) {
      const listed = await readList(connection, "tools", deadline);
      tools = listed.flatMap(({ value: { name } }) => (typeof name === "string" && name !== "" ? [name] : []));
      problems = listed.flatMap((tool) => [...problemsOf(tool), ...keyProblems(tool, spec)]);
    }
  } catch (cause) {
    error = explain(cause instanceof Error ? withoutSecrets(cause, redactor) : cause, spec, signal);
    if (intro !== undefined) error = ofItsList(error, spec);
  } finally {
    clearInterval(awake);
  }
  const stderr = connection.describe().stderr ?? [];
  await connection.close();
  if (spec.target.kind === "stdio" && spec.era === undefined && intro?.era === "modern") {
    if (await isLegacyToo({ ...spec, era: "legacy" }, context, deadline)) problems = [...problems, BOTH_ERAS];
  }
  return {
    ok: error === undefined,
    era: intro === undefined ? undefined : (intro.era ?? "legacy"),
    version: intro?.version,
    serverInfo: intro?.serverInfo && cardWithoutSecrets(intro.serverInfo, redactor),
    tools,
    problems,
    readyMs,
    error,
    stderr,
    noise: { ...noise, sample: noise.sample && redactor.redact(noise.sample, true) },
  };
}

function connectionTo(
  spec: ServerSpec,
  { makeLink, clientInfo, now }: ProbeContext,
  noise: { count: number; sample: string | undefined },
): Connection {
  return new Connection(
    {
      spec,
      owner: undefined,
      offer: { clientInfo, capabilities: EVERY_CAPABILITY },
      now,
      noise,
      makeLink: (events) => makeLink(spec, events),
      breaker: new Breaker(spec.supervision.breaker),
    },
    {
      isRepeatable: () => false,
      onLost: (call, fault) => call.reply(faultReply(fault)),
      onNotification: () => {},
      onUnsent: (call, fault) => call.reply(faultReply(fault)),
      onClosed: () => {},
    },
  );
}

const BOTH_ERAS =
  "It offers both protocol eras, and is spoken to in the modern one. If its tools ask the user by requests of their " +
  'own, which that era does not have, set "era": "legacy".';

/** A child says which eras it has by taking the handshake of one: it is started once more for the other. */
async function isLegacyToo(spec: ServerSpec, context: ProbeContext, deadline: AbortSignal): Promise<boolean> {
  const connection = connectionTo(spec, context, { count: 0, sample: undefined });
  try {
    await connection.open(deadline);
    return true;
  } catch {
    return false;
  } finally {
    await connection.close();
  }
}

function problemsOf({ json, value }: Listed): string[] {
  const { name } = value;
  if (typeof name !== "string" || name === "") return ["A tool is left out: it has no name."];
  const judged = judge("tools", json, value);
  const wrong = judged.kind === "unusable" ? [`it is left out: ${judged.why}`] : [];
  return [...wrong, ...(judged.kind === "mended" ? judged.mended.notes : [])].map(
    (one) => `Tool ${JSON.stringify(name.slice(0, 80))}: ${one}.`,
  );
}

function keyProblems({ value: { name, inputSchema } }: Listed, spec: ServerSpec): string[] {
  const key = typeof name === "string" ? spec.outbox?.get(ownToolName(name))?.key : undefined;
  const refused = key?.in === "argument" ? refusedKey(spec.name, String(name), inputSchema, key.path) : undefined;
  return refused === undefined ? [] : [refused];
}

/** It came up, so that what went wrong is about its tools: what a server says of that seldom says so itself. */
function ofItsList(error: ProbeError, { connectTimeoutMs }: ServerSpec): ProbeError {
  const { code, message, reason = "server-error" } = error;
  const why = code === "timeout" ? `no answer within ${connectTimeoutMs} ms.` : sentence(message);
  return { ...error, reason, message: `Its tools could not be read: ${why}` };
}

function explain(cause: unknown, spec: ServerSpec, signal: AbortSignal): ProbeError {
  if (cause instanceof Fault) {
    const { reason, remedy, fact } = cause;
    // What a start failed for may be said as of a call; it is none.
    return { code: cause.code === "outcome-unknown" ? "unavailable" : cause.code, reason, message: fact, remedy };
  }
  if (cause instanceof Error && cause.name === "TimeoutError" && !signal.aborted) {
    const message = `It was not ready within ${spec.connectTimeoutMs} ms.`;
    return { code: "timeout", reason: undefined, message, remedy: undefined };
  }
  const message = messageOf(cause);
  return { code: "unavailable", reason: undefined, message, remedy: undefined };
}
