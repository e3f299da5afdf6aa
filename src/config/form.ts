// Forms: what a value of the config may be, as plain data with the types that follow from it. What is checked and said
// of a value is expected.ts, what editors are told json-schema.ts. A schema library did the same, and loading it took
// longer than the rest of a start.

export type Scalar = "string" | "number" | "boolean" | "null";

export type Shape =
  | { readonly kind: "text"; readonly min: number; readonly max: number }
  | { readonly kind: "whole"; readonly min: number; readonly max: number }
  | { readonly kind: "flag" }
  | { readonly kind: "word"; readonly words: readonly string[]; readonly orFlag: boolean }
  | { readonly kind: "scalar"; readonly types: readonly Scalar[] }
  | { readonly kind: "list"; readonly of: AnyForm }
  | { readonly kind: "record"; readonly of: AnyForm }
  | { readonly kind: "object"; readonly fields: Fields; readonly strict: boolean; readonly id: string | undefined };

export interface Form<Out, In = Out> {
  readonly shape: Shape;
  /** What the key means, for editors and docs. */
  readonly meaning: string | undefined;
  readonly isOptional: boolean;
  /** What stands in for an absent value, and is read as if it were there. */
  readonly fallback: unknown;
  /** Never there: only carries the types. */
  readonly types?: { readonly out: Out; readonly in: In };
}

export type AnyForm = Form<unknown, unknown>;
export type Fields = Readonly<Record<string, AnyForm>>;

export type OutOf<F> = F extends Form<infer Out, infer _In> ? Out : never;
export type InOf<F> = F extends Form<infer _Out, infer In> ? In : never;

type Flat<T> = { [K in keyof T]: T[K] };
type UndefinedKeys<T> = { [K in keyof T]-?: undefined extends T[K] ? K : never }[keyof T];
type Loosened<T> = Flat<{ [K in Exclude<keyof T, UndefinedKeys<T>>]: T[K] } & { [K in UndefinedKeys<T>]?: T[K] }>;
type ObjectOut<F extends Fields> = Loosened<{ [K in keyof F]: OutOf<F[K]> }>;
type ObjectIn<F extends Fields> = Loosened<{ [K in keyof F]: InOf<F[K]> }>;

interface ScalarTypes {
  readonly string: string;
  readonly number: number;
  readonly boolean: boolean;
  readonly null: null;
}

function form<Out, In = Out>(shape: Shape): Form<Out, In> {
  return { shape, meaning: undefined, isOptional: false, fallback: undefined };
}

export function text({ min = 0, max = Number.POSITIVE_INFINITY } = {}): Form<string> {
  return form({ kind: "text", min, max });
}

/** Beyond the safe integers two numbers of a file could be one. */
export function whole({ min, max = Number.MAX_SAFE_INTEGER }: { min: number; max?: number }): Form<number> {
  return form({ kind: "whole", min, max });
}

export function flag(): Form<boolean> {
  return form({ kind: "flag" });
}

export function word<const W extends string>(words: readonly W[]): Form<W> {
  return form({ kind: "word", words, orFlag: false });
}

/** For a key of ours that another client has as a switch: its value is let pass, and mistakes are told of our words. */
export function wordOrFlag<const W extends string>(words: readonly W[]): Form<W | boolean> {
  return form({ kind: "word", words, orFlag: true });
}

export function scalar<const S extends Scalar>(...types: readonly S[]): Form<ScalarTypes[S]> {
  return form({ kind: "scalar", types });
}

export function list<Out, In>(of: Form<Out, In>): Form<Out[], In[]> {
  return form({ kind: "list", of });
}

export function record<Out, In>(of: Form<Out, In>): Form<Record<string, Out>, Record<string, In>> {
  return form({ kind: "record", of });
}

/** Ours alone: an unknown key is a mistake. `id` names it where the JSON Schema refers to it. */
export function strict<F extends Fields>(fields: F, id?: string): Form<ObjectOut<F>, ObjectIn<F>> & { fields: F } {
  return { ...form<ObjectOut<F>, ObjectIn<F>>({ kind: "object", fields, strict: true, id }), fields };
}

/** Shared with other clients: unknown keys are not judged here. */
export function loose<F extends Fields>(
  fields: F,
  id?: string,
): Form<ObjectOut<F>, ObjectIn<F> & { readonly [key: string]: unknown }> & { fields: F } {
  return { ...form({ kind: "object", fields, strict: false, id }), fields };
}

export function required<Out, In>(given: Form<Out, In>, meaning: string): Form<Out, In> {
  return { ...given, meaning };
}

export function optional<Out, In>(given: Form<Out, In>, meaning: string): Form<Out | undefined, In | undefined> {
  return { ...given, meaning, isOptional: true } as Form<Out | undefined, In | undefined>;
}

export function defaulted<Out, In>(
  given: Form<Out, In>,
  fallback: NoInfer<In>,
  meaning: string,
): Form<Out, In | undefined> {
  return { ...given, meaning, isOptional: true, fallback } as Form<Out, In | undefined>;
}
