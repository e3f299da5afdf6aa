// Names that must not be taken for one another. Policy, pins and the cache know a tool by the name that its server has
// for it; agents know it by the name that the menu shows. The types differ for the compiler alone: at run time both are
// plain strings. They are made where names come in: from lists, from the config, from disk and from agents.

declare const own: unique symbol;
declare const tool: unique symbol;
declare const exposed: unique symbol;

/** The name, URI, URI template or task id by which a server itself knows what it has. */
export type OwnName = string & { readonly [own]: true };

/** The server's own name of a tool. */
export type OwnToolName = OwnName & { readonly [tool]: true };

/** The name of a tool or a prompt as agents see it. */
export type ExposedName = string & { readonly [exposed]: true };

export function ownName(name: string): OwnName {
  return name as OwnName;
}

export function ownToolName(name: string): OwnToolName {
  return name as OwnToolName;
}

export function exposedName(name: string): ExposedName {
  return name as ExposedName;
}
