// Which server a write is for. It goes to the one that its name meant where it was taken: gateways of several configs keep writes
// together, and one that is alone may have another config by then.

import type { KeptWrite } from "./lanes/lane.js";
import type { WriteFacts } from "./lanes/write.js";
import type { DeliveryVerdict, OutboxParts } from "./parts.js";

export function isMeant({ server, target }: WriteFacts, targetOf: OutboxParts["targetOf"]): boolean {
  return target === undefined || targetOf === undefined || targetOf(server) === target;
}

/** Whether a write may go now. What is meant for another server waits as for a quarantine: it is looked at again by itself. */
export function verdictOn(write: KeptWrite, parts: OutboxParts): DeliveryVerdict {
  const { facts } = write;
  const { judge, targetOf, passOn } = parts;
  if (isMeant(facts, targetOf)) return judge(facts);
  if (passOn !== undefined) return { kind: "quarantine", why: otherTarget(facts.server) };
  // A gateway alone has one config: what never left goes where that says now. What may have been done is done nowhere else.
  if (!write.maybe || targetOf?.(facts.server) === undefined) return judge(facts);
  const text =
    `"${facts.server}" is another server in the config now than when it was sent there, and it may have been done: ` +
    "with the entry as it was it goes on by itself";
  return { kind: "quarantine", why: text };
}

export function otherTarget(server: string): string {
  return (
    `"${server}" means another server at the gateway that keeps this write now than where it was taken. ` +
    "Give all gateways the same config: then it goes on by itself"
  );
}
