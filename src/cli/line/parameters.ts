// The parameters of a tool as its schema declares them: for people who look at them, and for checking what they typed
// before a server is asked. Only the outermost members are read; what is inside a value is the server's to judge.

import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { nearest } from "../../runtime/nearest.js";
import { quotedWord } from "../../runtime/words/shell-word.js";
import { usageError } from "./errors.js";

export interface Parameter {
  readonly name: string;
  /** `string`, `"a" | "b"`, `array of number`; `any` where the schema does not say. */
  readonly type: string;
  readonly required: boolean;
  readonly description: string | undefined;
  readonly schema: JsonObject;
}

/** More words of an enum than this help nobody. */
const MAX_WORDS = 8;

export function parametersOf(schema: unknown): Parameter[] {
  const properties = isObject(schema) && isObject(schema["properties"]) ? schema["properties"] : {};
  const required = requiredOf(schema);
  const names = [...new Set([...Object.keys(properties), ...required])];
  return names.map((name) => {
    const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const described = isObject(own) ? own : {};
    const { description } = described;
    return {
      name,
      type: typeOf(described),
      required: required.includes(name),
      description: typeof description === "string" ? description : undefined,
      schema: described,
    };
  });
}

function requiredOf(schema: unknown): string[] {
  const required = isObject(schema) ? schema["required"] : undefined;
  return Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
}

function typeOf(schema: JsonObject): string {
  const { type, items, enum: words } = schema;
  if (Array.isArray(words) && words.length > 0) {
    const shown = words.slice(0, MAX_WORDS).map((word) => JSON.stringify(word));
    return [...shown, ...(words.length > MAX_WORDS ? ["…"] : [])].join(" | ");
  }
  if ("const" in schema) return JSON.stringify(schema["const"]);
  const several = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(several))
    return [...new Set(several.map((one) => (isObject(one) ? typeOf(one) : "any")))].join(" | ");
  if (type === "array" && isObject(items)) return `array of ${typeOf(items)}`;
  if (Array.isArray(type)) return type.join(" | ");
  return typeof type === "string" ? type : "any";
}

/**
 * Throws where arguments are missing, or are there that the schema forbids. Gives a sentence for each that it does not
 * know and does not forbid.
 */
export function checkArguments(tool: string, args: JsonObject, schema: unknown): string[] {
  const parameters = parametersOf(schema);
  const names = parameters.map(({ name }) => name);
  const missing = parameters.filter(({ name, required }) => required && !Object.hasOwn(args, name));
  if (missing.length > 0) {
    const each = missing.map(({ name, type }) => `${name} (${type})`).join(", ");
    throw usageError(
      `${tool} needs ${each}.`,
      `For instance ${missing.map(({ name }) => `--arg ${name}=…`).join(" ")}; \`toolway inspect ${quotedWord(tool)}\` shows all parameters.`,
    );
  }
  const unknown = isComposed(schema) ? [] : Object.keys(args).filter((name) => !names.includes(name));
  const meant = (name: string): string => {
    const near = nearest(name, names);
    return near === undefined ? `It has ${names.join(", ") || "no parameters"}.` : `Did you mean ${near}?`;
  };
  const [first] = unknown;
  if (first !== undefined && isObject(schema) && schema["additionalProperties"] === false)
    throw usageError(`${tool} takes no argument ${first}.`, meant(first));
  // A schema without properties says nothing of what there is.
  return names.length === 0
    ? []
    : unknown.map((name) => `${tool} does not declare an argument ${name}. ${meant(name)}`);
}

/** A schema that declares arguments elsewhere, too, is the server's to apply: what may fit it is let through. */
function isComposed(schema: unknown): boolean {
  return isObject(schema) && ELSEWHERE.some((key) => key in schema);
}

const ELSEWHERE = ["patternProperties", "allOf", "anyOf", "oneOf", "$ref", "if", "dependentSchemas"];

/** The shortest call that the schema allows, as the words of a command of ours. */
export function exampleCall(tool: string, schema: unknown): string {
  const parameters = parametersOf(schema);
  const shown = parameters.some(({ required }) => required) ? parameters.filter(({ required }) => required) : [];
  return ["call", quotedWord(tool), ...shown.map((one) => `--arg ${quotedWord(`${one.name}=${exampleOf(one)}`)}`)].join(
    " ",
  );
}

/** What the schema itself gives as an example, else something of its type. */
function exampleOf({ name, schema }: Parameter): string {
  const { examples, enum: words, type } = schema;
  const given = [schema["default"], Array.isArray(examples) ? examples[0] : undefined, schema["const"]];
  const value = given.find((one) => one !== undefined) ?? (Array.isArray(words) ? words[0] : undefined);
  if (value !== undefined) return typeof value === "string" ? value : JSON.stringify(value);
  const kind = Array.isArray(type) ? type[0] : type;
  switch (kind) {
    case "number":
    case "integer":
      return typeof schema["minimum"] === "number" ? String(schema["minimum"]) : "1";
    case "boolean":
      return "true";
    case "array":
      return "[]";
    case "object":
      return "{}";
    default:
      return name.toUpperCase();
  }
}
