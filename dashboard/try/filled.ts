// What a form is to begin with, passed from one view to another in memory: arguments are in no address.

let filled: { readonly tool: string; readonly value: unknown } | undefined;

export function fill(tool: string, json: string | undefined): void {
  try {
    filled = json === undefined ? undefined : { tool, value: JSON.parse(json) as unknown };
  } catch {
    filled = undefined;
  }
}

/** Once: whoever comes to the form by another way finds it empty. */
export function takeFilled(tool: string): unknown {
  const value = filled?.tool === tool ? filled.value : undefined;
  filled = undefined;
  return value;
}
