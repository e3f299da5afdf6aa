// What a gateway keeps of its calls for whoever looks: the last of them and those under way.

import type { CallRecords } from "../../observe/metrics/call-records.js";
import type { CallObserver } from "../../observe/observed-call.js";

export interface LookoutParts {
  readonly records: CallRecords;
  readonly observer: CallObserver;
}

export class Lookout {
  readonly records: CallRecords;
  readonly observer: CallObserver;

  constructor({ records, observer }: LookoutParts) {
    this.records = records;
    this.observer = observer;
  }

  async close(): Promise<void> {
    this.records.flush();
  }
}
