// The marks of a state and of the engine of its config: which there are, and taking one away.

import type { EngineSettings } from "../../contracts/settings.js";
import { markOf, type StateMark, setMark } from "../state/mark.js";
import { EngineSide } from "./engine-side.js";
import { MoveError, QUEUES } from "./kinds.js";
import { LocalSide } from "./local-side.js";
import type { MovePlaces } from "./move.js";
import type { Side } from "./side.js";

export type StatePlace = "local" | "engine";

export interface MarkFound {
  readonly place: StatePlace;
  readonly where: string;
  readonly mark: StateMark;
  /** What waits there to be sent, and would be. */
  readonly queued: number;
}

/** The engine is looked at where there is one. */
export interface MarkPlaces extends Omit<MovePlaces, "engine"> {
  readonly engine: EngineSettings | undefined;
}

/** Of the place that is named, or of both. */
export async function findMarks(places: MarkPlaces, only: StatePlace | undefined): Promise<readonly MarkFound[]> {
  const found: MarkFound[] = [];
  for (const place of ["local", "engine"] as const) {
    if (only !== undefined && only !== place) continue;
    if (place === "engine" && places.engine === undefined) continue;
    await withSide(place, places, true, async (side) => {
      const mark = side.shared && markOf(side.shared);
      if (mark === undefined) return;
      let queued = 0;
      for (const kind of QUEUES) {
        for (const items of (await side.queue(kind)).values())
          queued += items.filter((item) => kind.isWaiting(item.texts())).length;
      }
      found.push({ place, where: side.where, mark, queued });
    });
  }
  return found;
}

export async function clearMark(places: MarkPlaces, place: StatePlace): Promise<void> {
  await withSide(place, places, false, async (side) => {
    if (side.shared !== undefined) await setMark(side.shared, undefined);
  });
}

async function withSide(
  place: StatePlace,
  { stateDir, engine, ...rest }: MarkPlaces,
  readOnly: boolean,
  act: (side: Side) => Promise<void>,
): Promise<void> {
  if (place === "engine" && engine === undefined) throw new MoveError('The config has no "engine".');
  const side =
    place === "local" || engine === undefined
      ? await LocalSide.open(stateDir, { readOnly })
      : await EngineSide.open(engine, rest);
  try {
    await act(side);
  } finally {
    await side.close();
  }
}
