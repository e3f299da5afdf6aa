// What verbs ask of the engine that several gateways share. They know it by this file alone, and load it when asked.

import type { EngineSettings } from "../../contracts/settings.js";
import type { GatewayStatus } from "../../contracts/status.js";
import { findGateway } from "../../control/client.js";
import type { EngineReport, ExamineOptions } from "../../gateway/engine/examine.js";

export type { EngineReport, Times } from "../../gateway/engine/examine.js";
export { makeEngineKey } from "../../gateway/engine/keys.js";

export async function examineEngine(settings: EngineSettings, options: ExamineOptions): Promise<EngineReport> {
  const examining = await import("../../gateway/engine/examine.js");
  return examining.examineEngine(settings, options);
}

/** How other gateways differ from the one that runs in this directory, as that one sees them; none where none runs. */
export async function configDifferences(stateDir: string): Promise<readonly string[]> {
  const running = await findGateway(stateDir);
  const status = await running?.get<GatewayStatus>("/status");
  return status?.engine?.differences ?? [];
}
