// What a gateway keeps of its calls for whoever looks: the last of them, those under way, and the past.

import type { CallRecords } from "../../observe/metrics/call-records.js";
import type { CallObserver } from "../../observe/observed-call.js";
import { systemClock } from "../../runtime/clock.js";
import { SavedHistory } from "./saved-history.js";

export interface LookoutParts {
  readonly records: CallRecords;
  readonly observer: CallObserver;
  /** Undefined where nothing outlives the process. */
  readonly stateDir: string | undefined;
  readonly warn: (text: string) => void;
}

export class Lookout {
  readonly records: CallRecords;
  readonly observer: CallObserver;
  readonly #saved: SavedHistory;

  constructor({ records, observer, stateDir, warn }: LookoutParts) {
    this.records = records;
    this.observer = observer;
    this.#saved = new SavedHistory({ history: records.history, stateDir, clock: systemClock, warn });
  }

  async close(): Promise<void> {
    this.records.flush();
    await this.#saved.close();
  }
}
