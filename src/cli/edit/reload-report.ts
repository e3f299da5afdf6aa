// What came of reading the config again: what changed, what of it cannot be used, and what waits.

import type { GatewayStatus } from "../../contracts/status.js";
import { Exit, type ExitCode } from "../line/errors.js";
import { type Io, note, print, printJson } from "../line/io.js";
import { quarantineText, restartText } from "../text/status.js";

/** The gateway's answer to a reload. */
export type ReloadAnswer = GatewayStatus & { readonly changes: readonly string[] };

export function tellReload({ changes, config, servers }: ReloadAnswer, isJson: boolean, io: Io): ExitCode {
  const { keptEntries = {} } = config;
  const wrong = servers.filter(({ state }) => state === "misconfigured");
  // What stands in the file is not what runs, and whoever edited it is here to hear of it.
  const exit = Object.keys(keptEntries).length === 0 ? Exit.ok : Exit.failure;
  const quarantined = servers.filter((server) => server.quarantined > 0);
  if (isJson) {
    const { warnings, unusedPatterns, waitsForRestart } = config;
    const hidden = Object.fromEntries(quarantined.map((server) => [server.name, server.quarantined]));
    const misconfigured = Object.fromEntries(wrong.map(({ name, lastError }) => [name, lastError]));
    printJson(io, {
      ...{ changes, keptEntries, misconfigured, waitsForRestart, warnings, unusedPatterns },
      quarantined: hidden,
    });
    return exit;
  }
  print(io, `Read the config again: ${changes.length === 0 ? "nothing changed" : changes.join("; ")}.`);
  for (const [name, why] of Object.entries(keptEntries)) {
    note(io, `${name}: its new entry is not used, the one before goes on: ${why}`);
  }
  for (const { name, lastError = "" } of wrong) note(io, `${name}: misconfigured: ${lastError}`);
  if (config.waitsForRestart.length > 0) note(io, restartText(config.waitsForRestart));
  for (const text of [...config.warnings, ...config.unusedPatterns]) note(io, `warning: ${text}`);
  for (const server of quarantined) note(io, quarantineText(server));
  return exit;
}
