// The public API of the package `toolway`.

export type { ConfigInput } from "./config/load.js";
export { ConfigError } from "./config/mistakes.js";
export type { AcceptedPin, PinDiff, PinLine } from "./contracts/pins.js";
export type { GatewayStatus, ServerState, ServerStatus } from "./contracts/status.js";
export type { ContentBlock, ToolResult } from "./contracts/tool-result.js";
export type { StreamedAnswer, WaitOptions, WholeAnswer } from "./executor/client/answers.js";
export { type ConnectOptions, connectExecutor, type ExecutorClient } from "./executor/client/connect.js";
export type { HttpHeader } from "./executor/wire/protocol.js";
export {
  ExecutorError,
  type ExecutorErrorCode,
  type ExecutorLog,
  type ExecutorRequest,
} from "./executor/wire/types.js";
export { createGateway, type GatewayInput, type GatewayOptions } from "./gateway/create.js";
export type { Gateway, ToolListing } from "./gateway/gateway.js";
export { CallError } from "./gateway/program-call.js";
export type { PinChange } from "./gateway/state/stored-pins.js";
export { createHost, type HostOptions } from "./host/create.js";
export { HostCallError } from "./host/errors.js";
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
} from "./host/host.js";
export type { HostPins } from "./host/pins.js";
export { createLog, type Log, type LogOptions } from "./observe/log.js";
export type { OpenTelemetryApi } from "./observe/telemetry/opentelemetry.js";
export type { Guard, GuardVerdict } from "./policy/guard.js";
export { Fault, type FaultCode } from "./protocol/errors.js";
export type { JsonObject } from "./protocol/jsonrpc.js";
export { StateDirError } from "./runtime/state-dir.js";
