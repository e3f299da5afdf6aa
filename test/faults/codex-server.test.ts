// The real `codex exec-server` under our suites: what our own executor is held to, and what our client has to live
// with. In the full runs only: Codex is a large download.

import { describe } from "vitest";
import { findCodex } from "../codex/binary.js";
import { startCodexExecServer } from "../codex/exec-server.js";
import { wireSuite } from "../codex/wire-suite.js";
import { full } from "./length.js";
import { report } from "./measure.js";

const codex = full ? await findCodex() : { path: undefined, missing: "in the full runs only" };
if (full && codex.path === undefined) report("codex exec-server", `skipped: ${codex.missing}`);

describe.skipIf(codex.path === undefined)("the real codex exec-server", () => {
  wireSuite("codex exec-server", () => startCodexExecServer());
});
