// All commands, in the order of the help. A new verb is a file beside this one and a line here.

import type { Command } from "../line/command.js";
import { call } from "./call.js";
import { complete } from "./complete.js";
import { completionOf } from "./completion.js";
import { configCheck } from "./config-check.js";
import { configSchema } from "./config-schema.js";
import { doctor } from "./doctor.js";
import { executor } from "./executor.js";
import { importConfigs } from "./import.js";
import { pinsAccept } from "./pins-accept.js";
import { pinsDiff } from "./pins-diff.js";
import { pinsList } from "./pins-list.js";
import { reload } from "./reload.js";
import { serve } from "./serve.js";
import { start } from "./start.js";
import { stateDump } from "./state-dump.js";
import { status } from "./status.js";
import { stdio } from "./stdio.js";
import { stop } from "./stop.js";
import { tokenCreate } from "./token-create.js";
import { tokenList } from "./token-list.js";
import { tokenRevoke } from "./token-revoke.js";
import { tokenShow } from "./token-show.js";
import { tools } from "./tools.js";
import { version } from "./version.js";

/** Words that hold verbs, with what the help says of them. */
export const groups: Readonly<Record<string, string>> = {
  pins: "Tools whose definition changed, and what was accepted.",
  token: "Tokens, and the roles they carry.",
  config: "Checks a config, and prints its JSON Schema.",
  state: "What the gateway keeps on disk.",
};

export const commands: readonly Command[] = [
  serve,
  stdio,
  tools,
  call,
  status,
  reload,
  stop,
  start,
  doctor,
  importConfigs,
  executor,
  pinsList,
  pinsDiff,
  pinsAccept,
  tokenCreate,
  tokenList,
  tokenShow,
  tokenRevoke,
  configCheck,
  configSchema,
  stateDump,
  completionOf(() => ({ commands, groups })),
  version,
  complete,
];
