// The answers to inputs that a person gave `toolway doctor`: sealed by the gateway's key, in one file of its state
// directory. It is no part of the store, which a gateway that runs has for itself.

import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSealer, openKey } from "../../runtime/seal.js";
import { ensureStateDir } from "../../runtime/state-dir.js";

const FILE = "inputs.json";

/** What is sealed for one input does not open as the answer to another. */
const purposeOf = (id: string): string => `input ${id}`;

/** Empty where none are kept, or what is there is not ours. */
export function answersIn(stateDir: string): ReadonlyMap<string, string> {
  const answers = new Map<string, string>();
  const sealed = sealedIn(stateDir);
  if (sealed.length === 0) return answers;
  const sealer = sealerOf(stateDir);
  for (const [id, text] of sealed) {
    const answer = typeof text === "string" ? sealer.unseal(purposeOf(id), text) : undefined;
    if (typeof answer === "string") answers.set(id, answer);
  }
  return answers;
}

/** Throws where it cannot be kept: it is too long, or the directory is not ours to write. */
export function keepAnswer(stateDir: string, id: string, answer: string): void {
  ensureStateDir(stateDir);
  const text = sealerOf(stateDir).seal(purposeOf(id), answer);
  const all = Object.fromEntries([...sealedIn(stateDir).filter(([other]) => other !== id), [id, text]]);
  const path = join(stateDir, FILE);
  const next = `${path}.${process.pid}`;
  try {
    writeFileSync(next, `${JSON.stringify(all, null, 2)}\n`, { mode: 0o600 });
    renameSync(next, path);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  }
}

function sealerOf(stateDir: string): ReturnType<typeof createSealer> {
  return createSealer(openKey(join(stateDir, "sealing-key")));
}

function sealedIn(stateDir: string): [string, unknown][] {
  try {
    const value: unknown = JSON.parse(readFileSync(join(stateDir, FILE), "utf8"));
    return typeof value === "object" && value !== null ? Object.entries(value) : [];
  } catch {
    return [];
  }
}
