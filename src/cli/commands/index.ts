// All commands, in the order of the help. A new verb is a file beside this one and a line here.

import type { Command } from "../line/command.js";
import { add } from "./add.js";
import { asksAnswer, asksList } from "./asks.js";
import { auditSearch, auditVerify } from "./audit.js";
import { broker } from "./broker.js";
import { call } from "./call.js";
import { calls } from "./calls.js";
import { complete, completionOf } from "./completion.js";
import { configCheck, configSchema } from "./config.js";
import { contextSet, contextShow, contextUnset } from "./context.js";
import { dashboard } from "./dashboard.js";
import { doctor } from "./doctor.js";
import { down } from "./down.js";
import { drain } from "./drain.js";
import { engineKey } from "./engine.js";
import { list, remove } from "./entries.js";
import { executor } from "./executor.js";
import { importConfigs } from "./import.js";
import { inspect } from "./inspect.js";
import { join } from "./join.js";
import { logLevel } from "./log-level.js";
import { login, logout } from "./login.js";
import { logs } from "./logs.js";
import {
  mailboxDead,
  mailboxDrop,
  mailboxList,
  mailboxPair,
  mailboxRetry,
  mailboxShow,
  mailboxWatch,
} from "./mailbox.js";
import { metrics } from "./metrics.js";
import {
  outboxDrop,
  outboxHold,
  outboxList,
  outboxRelease,
  outboxResolve,
  outboxRetry,
  outboxShow,
  outboxWatch,
} from "./outbox.js";
import { pinsAccept, pinsDiff, pinsForget, pinsList, pinsReject } from "./pins.js";
import { ps } from "./ps.js";
import { record } from "./record.js";
import { gatewayForRuns, run } from "./run.js";
import { serve } from "./serve.js";
import { reload, start, stop } from "./server-verbs.js";
import { setup } from "./setup.js";
import { share } from "./share.js";
import { stateDump, stateMove, stateUnmark } from "./state.js";
import { status } from "./status.js";
import { stdio } from "./stdio.js";
import { tokenCreate, tokenHeader, tokenList, tokenRedeem, tokenRevoke, tokenRotate, tokenShow } from "./token.js";
import { tools } from "./tools.js";
import { top } from "./top.js";
import { version } from "./version.js";

/** Words that hold verbs, with what the help says of them. */
export const groups: Readonly<Record<string, string>> = {
  mailbox: "Mailboxes: what waits in them, and what failed.",
  outbox: "Calls that are kept while their servers are away.",
  asks: "Calls of shared tools that wait for a person's word.",
  pins: "Tools whose definition changed, and what was accepted.",
  context: "What is known of a principal's situation, for menus.",
  token: "Tokens, and the roles they carry.",
  audit: "What was called and done, in a log that cannot be changed unseen.",
  engine: "The NATS that several gateways share.",
  config: "Checks a config, and prints its JSON Schema.",
  state: "What the gateway keeps: a look at it, and moving it.",
};

export const commands: readonly Command[] = [
  run,
  serve,
  stdio,
  tools,
  inspect,
  call,
  status,
  ps,
  down,
  drain,
  logs,
  calls,
  record,
  top,
  metrics,
  logLevel,
  auditSearch,
  auditVerify,
  dashboard,
  reload,
  stop,
  start,
  login,
  logout,
  doctor,
  importConfigs,
  add,
  list,
  remove,
  setup,
  executor,
  broker,
  share,
  join,
  mailboxList,
  mailboxShow,
  mailboxDead,
  mailboxRetry,
  mailboxDrop,
  mailboxWatch,
  mailboxPair,
  asksList,
  asksAnswer,
  outboxList,
  outboxShow,
  outboxRetry,
  outboxDrop,
  outboxResolve,
  outboxHold,
  outboxRelease,
  outboxWatch,
  pinsList,
  pinsDiff,
  pinsAccept,
  pinsReject,
  pinsForget,
  contextShow,
  contextSet,
  contextUnset,
  tokenCreate,
  tokenList,
  tokenShow,
  tokenHeader,
  tokenRotate,
  tokenRevoke,
  tokenRedeem,
  configCheck,
  configSchema,
  stateDump,
  stateMove,
  stateUnmark,
  engineKey,
  completionOf(() => ({ commands, groups })),
  version,
  complete,
  gatewayForRuns,
];
