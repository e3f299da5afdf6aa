// The public API of the package `toolway`.

export type { ConfigInput } from "./config/load.js";
export { ConfigError } from "./config/mistakes.js";
export { type ConnectOptions, connectExecutor, type ExecutorClient } from "./connect-executor.js";
export type { GatewayStatus, ServerState, ServerStatus } from "./control/status.js";
export { createGateway, type GatewayInput, type GatewayOptions } from "./create-gateway.js";
export { createHost, type HostOptions } from "./create-host.js";
export type { StreamedAnswer, WaitOptions, WholeAnswer } from "./executor/client-answers.js";
export type { HttpHeader } from "./executor/protocol.js";
export { ExecutorError, type ExecutorErrorCode, type ExecutorLog, type ExecutorRequest } from "./executor/types.js";
export type { Gateway, ToolListing } from "./gateway.js";
export { HostCallError } from "./host-call.js";
export type {
  DiscoveredServer,
  DiscoverOptions,
  HostCallOptions,
  HostedStatus,
  HostSpec,
  HostTool,
  SpawnedServer,
  SpawnOptions,
  ToolHost,
} from "./host-library.js";
export { CallError } from "./local-call.js";
export { createLog, type Log, type LogOptions } from "./observe/log.js";
export type { OpenTelemetryApi } from "./observe/opentelemetry.js";
export type { Guard, GuardVerdict } from "./policy/guard.js";
export { Fault, type FaultCode } from "./protocol/errors.js";
export { StateDirError } from "./runtime/state-dir.js";
