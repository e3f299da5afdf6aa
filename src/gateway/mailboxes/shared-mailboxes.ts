// Puts together the mailboxes that this gateway or broker shares with others on one engine. Loaded only where the config has both.

import type { GatewayEngine } from "../../contracts/engine/engine.js";
import type { MailboxesStatus } from "../../contracts/status.js";
import type { Peer, PeerOptions } from "../../mailbox/broker/peer-connection.js";
import type { Paired, Pairings } from "../../mailbox/pairing/pairings.js";
import { SharedBroker, SharedOperator, SharedPeerConnection } from "../../mailbox/shared/index.js";
import type { Log } from "../../observe/log.js";
import { systemClock } from "../../runtime/clock.js";
import type { HeldBytes } from "../../runtime/memory/held-bytes.js";
import { SharedRoom } from "../../runtime/memory/shared-room.js";
import type { BrokerModule, OpenMailboxes } from "./mailboxes.js";

/**
 * Of what the gateway may hold for others (`limits.heldBytes`), so much again is for mail that is stored: on an engine it is in memory
 * too. A character outside Latin-1 has its whole text take twice its bytes: with that it is as much as all else that is held.
 */
const MAIL_TO_HELD = 1 / 2;

const REDEEM = "mail.redeem";
const REDEEM_MS = 5_000;

interface SharedMailboxesParts {
  readonly engine: GatewayEngine;
  readonly broker: BrokerModule;
  readonly pairings: Pairings;
  readonly knows: (owner: string) => boolean;
  readonly log: Log;
  readonly held: HeldBytes;
  readonly pair: NonNullable<PeerOptions["pair"]>;
  /** Of what is in hand here, with who is connected. */
  readonly own: () => MailboxesStatus | undefined;
}

export async function openSharedMailboxes(parts: SharedMailboxesParts): Promise<OpenMailboxes> {
  const { engine, pairings, knows, log, held, pair, own: ownStatus } = parts;
  const { openBroker, openLocalLine, PeerConnection } = parts.broker;
  const { self, peers } = engine;
  const room = new SharedRoom(() => held.limit * MAIL_TO_HELD);
  const broker = new SharedBroker({
    self,
    peers,
    partitions: await engine.mailPartitions(),
    now: systemClock.now,
    open: (store, mayAct) => openBroker({ store, log, knows, mayAct, room }),
    serve: (own, socket, peer: Peer, onEnd) =>
      // Who it is was proved at the broker to which it came, which says so to others too.
      new PeerConnection(socket, {
        broker: own,
        log,
        held,
        peer,
        identify: () => undefined,
        onEnd,
        onRefused() {},
        pair,
      }),
  });
  const operator = new SharedOperator({
    peers,
    here: () => broker.operators(),
    others: () => broker.others(),
    own: ownStatus,
  });
  const unanswer = peers.answer(REDEEM, async (_, body) => {
    const { code, name } = JSON.parse(Buffer.from(body).toString()) as { code: string; name?: string };
    const paired: Paired = pairings.knows(code) ? await pairings.redeem(code, name) : { kind: "wrong" };
    return Buffer.from(JSON.stringify(paired));
  });
  return {
    operator,
    pairings,
    openLocalLine,
    begin: (socket, { peer, identify, onEnd, onRefused }) =>
      new SharedPeerConnection(socket, { broker, peer, identify, held, onEnd, onRefused }),
    async redeem(code, name) {
      if (pairings.isPaused || pairings.knows(code)) return pairings.redeem(code, name);
      const body = Buffer.from(JSON.stringify({ code, name }));
      for (const other of broker.others()) {
        const asked = peers.ask(other, REDEEM, body, { timeoutMs: REDEEM_MS });
        const paired = await asked
          .then((answer) => JSON.parse(Buffer.from(answer).toString()) as Paired)
          .catch(() => {});
        if (paired?.kind === "paired") return paired;
      }
      return pairings.redeem(code, name);
    },
    leave: () => broker.leave(),
    async close() {
      unanswer();
      operator.close();
      await broker.close();
    },
  };
}
