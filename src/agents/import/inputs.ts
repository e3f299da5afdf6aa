// What VS Code asks a person for, in the file that the servers are taken into: the same inputs, declared there as their own
// file has them. Two files may mean two things by one id; the second is called by another then.

import { isDeepStrictEqual } from "node:util";
import { inputVariable } from "../../config/inputs/inputs.js";
import { jsonCopy } from "../../runtime/words/json-values.js";
import type { ClientFields } from "./values.js";

/** `${input:api-key}` */
const INPUT = /\$\{input:([^}]*)\}/g;

export class TakenInputs {
  /** What each id means in the new file; undefined for one that is used there and not declared. */
  readonly #meanings = new Map<string, ClientFields | undefined>();
  readonly #existing: ReadonlySet<string>;

  /** `declared` are the inputs of the new file, and `servers` those that it has. */
  constructor(declared: ReadonlyMap<string, ClientFields>, servers: unknown) {
    for (const id of idsIn(servers)) this.#meanings.set(id, undefined);
    for (const [id, input] of declared) this.#meanings.set(id, withoutUnused(input));
    this.#existing = new Set(declared.keys());
  }

  /** The id under which the new file has what another file means by this one. */
  idFor(id: string, declared: ClientFields | undefined): string {
    const meaning = declared === undefined ? undefined : withoutUnused(declared);
    for (let number = 1; ; number++) {
      const as = number === 1 ? id : `${id}-${number}`;
      if (!this.#meanings.has(as)) this.#meanings.set(as, meaning);
      if (isSameInput(this.#meanings.get(as), meaning)) return as;
    }
  }

  /** Those that the servers use and the new file does not declare yet. */
  toDeclare(servers: unknown): ClientFields[] {
    const ids = idsIn(servers).filter((id) => !this.#existing.has(id));
    return ids.flatMap((id) => {
      const input = this.#meanings.get(id);
      return input === undefined ? [] : [{ ...input, id }];
    });
  }

  /** The variables that answer what a server asks for, where nothing else stands for the answer. */
  unanswered(server: unknown): string[] {
    return idsIn(server)
      .filter((id) => usualAnswer(this.#meanings.get(id)) === undefined)
      .map(inputVariable);
  }
}

/** What stands for an input that nobody has answered. */
export function usualAnswer(input: ClientFields | undefined): string | undefined {
  const usual = input?.["password"] === true ? undefined : input?.["default"];
  return typeof usual === "string" ? usual : undefined;
}

/** Writes every `${input:…}` of a text with the id that `change` gives it. */
export function renameInputs(text: string, change: (id: string) => string): string {
  return text.replaceAll(INPUT, (_, id: string) => `\${input:${change(id)}}`);
}

/** The inputs of a file, by their ids. The first of an id counts. */
export function inputsOf(declared: unknown): Map<string, ClientFields> {
  const inputs = new Map<string, ClientFields>();
  for (const one of Array.isArray(declared) ? declared : []) {
    const id: unknown = typeof one === "object" && one !== null ? one.id : undefined;
    if (typeof id === "string" && !inputs.has(id)) inputs.set(id, one as ClientFields);
  }
  return inputs;
}

function idsIn(servers: unknown): string[] {
  return [...new Set([...(JSON.stringify(servers) ?? "").matchAll(INPUT)].map(([, id = ""]) => id))];
}

/** The default of a password is not used here, and does not belong into one more file. */
function withoutUnused(input: ClientFields): ClientFields {
  if (input["password"] !== true) return input;
  const { default: _unused, ...rest } = input;
  return rest;
}

function isSameInput(one: ClientFields | undefined, other: ClientFields | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return isDeepStrictEqual(jsonCopy({ ...one, id: "" }), jsonCopy({ ...other, id: "" }));
}
