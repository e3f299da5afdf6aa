// What verbs ask of the engine that several gateways share. They know it by this file alone, and load it when asked.

import type { EngineSettings } from "../../contracts/settings.js";
import type { EngineReport, ExamineOptions } from "../../gateway/engine/examine.js";

export type { EngineReport, Times } from "../../gateway/engine/examine.js";
export { makeEngineKey } from "../../gateway/engine/keys.js";

export async function examineEngine(settings: EngineSettings, options: ExamineOptions): Promise<EngineReport> {
  const examining = await import("../../gateway/engine/examine.js");
  return examining.examineEngine(settings, options);
}
