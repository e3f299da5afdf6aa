// What verbs ask of a state that is moved. They know it by this file alone, and load it when asked.

import type { MarkFound, MarkPlaces, StatePlace } from "../../gateway/move/marks.js";
import type { MoveOptions, MoveReport } from "../../gateway/move/move.js";

export type { MarkFound, MarkPlaces, StatePlace } from "../../gateway/move/marks.js";
export type { MoveReport } from "../../gateway/move/move.js";

export async function moveState(options: MoveOptions): Promise<MoveReport> {
  const moving = await import("../../gateway/move/move.js");
  return moving.moveState(options);
}

export async function findMarks(places: MarkPlaces, only: StatePlace | undefined): Promise<readonly MarkFound[]> {
  const marks = await import("../../gateway/move/marks.js");
  return marks.findMarks(places, only);
}

export async function clearMark(places: MarkPlaces, place: StatePlace): Promise<void> {
  const marks = await import("../../gateway/move/marks.js");
  await marks.clearMark(places, place);
}
