// Opens the audit log of a gateway: its folder, where it ended the last time, and what its lines need. It is loaded where
// the config has one.

import { join } from "node:path";
import type { AuditConfig } from "../../config/config.js";
import { AuditLog } from "../../observe/audit/audit-log.js";
import { AuditWriter } from "../../observe/audit/writer.js";
import type { Log } from "../../observe/log.js";
import type { RedactName } from "../../observe/safe-names.js";
import { Fault } from "../../protocol/errors.js";
import { systemClock } from "../../runtime/clock.js";
import { lockStateDir } from "../../runtime/state-dir.js";
import type { GatewayState } from "../state/state.js";

const HEAD = "head";

/** An audit log that can be written; begun once what it must not show is known. */
export interface OpenedAudit {
  readonly dir: string;
  begin(redact: RedactName): AuditLog;
}

/** Throws what is in the way: a gateway that is to keep an audit log does not start without one. */
export async function openAudit(config: AuditConfig, state: GatewayState, log: Log): Promise<OpenedAudit> {
  const dir = config.path ?? (state.dir === undefined ? undefined : join(state.dir, "audit"));
  if (dir === undefined) {
    throw new Fault("invalid", 'An audit log needs a place: "path" in "audit", or a state directory.');
  }
  // The state directory is ours alone anyway; any other folder may be another gateway's, too.
  const lock = config.path === undefined ? undefined : await lockStateDir(dir);
  const anchor = ({ seq, hash }: { seq: number; hash: string }) =>
    log.info(`audit anchor ${seq}:${hash}`, { seq, hash });
  const writer = await AuditWriter.open({
    ...config,
    dir,
    wall: systemClock.wall,
    kept: state.audit.get(HEAD),
    rotated: anchor,
  }).catch(async (error: unknown) => {
    await lock?.release();
    throw new Fault("unavailable", `The audit log in ${dir} cannot be written: ${(error as Error).message}.`, {
      cause: error,
      remedy: 'Make room or give the gateway the right to write there, or take "audit" out of the config.',
    });
  });
  await state.audit.put(HEAD, writer.head);
  return {
    dir,
    begin: (redact) =>
      new AuditLog({
        writer: {
          append: (bodies) => writer.append(bodies),
          get head() {
            return writer.head;
          },
          close: async () => {
            await writer.close();
            await lock?.release();
          },
        },
        onFull: config.onFull,
        arguments: { mode: config.arguments, key: state.auditKey },
        redact,
        wall: systemClock.wall,
        keepHead: (head) => state.audit.put(HEAD, head),
        anchor,
        told: (level, text) => log[level](text),
      }),
  };
}
