// Who of several gateways does what must be done by one: queues are spread over partitions, and each partition has one owner
// at a time, which alone may act for it.

import type { Store } from "../store.js";

/** What runs at the owner of a partition. */
export interface PartitionKeeper {
  /** The partition is ours, and so is its store: a former owner can write nothing to it any more. */
  taken(partition: number, store: Store): Promise<void>;
  /**
   * Nothing may be begun for it from now on. What is resolved when all has come to rest is waited for: as long as calls in flight have
   * where it is `isInTime`, given away while nobody else can have it, and some seconds where it was lost.
   */
  lost(partition: number, isInTime: boolean): Promise<void>;
}

export interface Partitions {
  /** Fixed when the engine is first used, and kept in it. */
  readonly count: number;
  /** The same at every gateway. */
  of(key: string): number;
  /** The gateway to ask; undefined while there is none. It may know better by the time it is asked. */
  ownerOf(partition: number): string | undefined;
  /** The one question that counts, to be asked right before each act. */
  mayAct(partition: number): boolean;
  /** The same of what goes on while the keeper comes to rest before it is given away; `onLost` is its end. */
  keeps(partition: number): boolean;
  /** Begins to own. Once. */
  run(keeper: PartitionKeeper): void;
  /** The gateways that are there, ourselves among them. */
  gateways(): readonly GatewaySeen[];
  /** Those that were there in the last minute. Of these, one that handed over goes on until its calls have ended. */
  left(): readonly string[];
  /** Called when the owner of a partition is another, or a partition is open here. The returned function ends it. */
  onChange(listener: (partition: number) => void): () => void;
  /**
   * Called when a partition may not be acted for any more, behind its keeper where that comes to rest in time, and waited for some
   * seconds. `isInTime`: nobody else may act for it yet. The returned function ends it.
   */
  onLost(listener: (partition: number, isInTime: boolean) => Promise<void>): () => void;
  /** Hands everything over; resolves when others may take it. It owns nothing afterwards. */
  release(): Promise<void>;
}

/** A gateway, as another sees it. */
export interface GatewaySeen {
  readonly gateway: string;
  /** It hands over, and takes nothing any more. */
  readonly isLeaving: boolean;
  readonly partitions: number;
}
