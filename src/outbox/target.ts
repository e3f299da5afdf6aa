// Which server a write is for, where gateways of several configs keep writes together: it goes to the one that its name meant where
// it was taken, and waits at a gateway where that name means another.

import type { WriteFacts } from "./lanes/write.js";
import type { DeliveryVerdict, OutboxParts } from "./parts.js";

export function isMeant({ server, target }: WriteFacts, targetOf: OutboxParts["targetOf"]): boolean {
  return target === undefined || targetOf === undefined || targetOf(server) === target;
}

/** Whether a write may go now. What is meant for another server waits as for a quarantine: it is looked at again by itself. */
export function verdictOn(facts: WriteFacts, { judge, targetOf }: OutboxParts): DeliveryVerdict {
  return isMeant(facts, targetOf) ? judge(facts) : { kind: "quarantine", why: otherTarget(facts.server) };
}

export function otherTarget(server: string): string {
  return (
    `"${server}" means another server at the gateway that keeps this write now than where it was taken. ` +
    "Give all gateways the same config: then it goes on by itself"
  );
}
