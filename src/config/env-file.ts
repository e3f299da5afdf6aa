// Reads the `NAME=value` lines of an envFile, as dotenv writes them. Lines it cannot read are passed over.

export function parseEnvFile(text: string): Record<string, string> {
  const values: Record<string, string> = {};
  const line =
    /^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*("(?:\\[\s\S]|[^"\\])*"|'[^']*'|[^\r\n]*)/gm;
  for (const [, name, raw] of text.replace(/^\uFEFF/, "").matchAll(line)) {
    if (name !== undefined && raw !== undefined) values[name] = unquote(raw);
  }
  return values;
}

function unquote(raw: string): string {
  if (raw.startsWith("'") && raw.endsWith("'") && raw.length > 1) return raw.slice(1, -1);
  if (raw.startsWith('"') && raw.endsWith('"') && raw.length > 1) {
    const escapes: Record<string, string> = { n: "\n", r: "\r", t: "\t" };
    return raw.slice(1, -1).replace(/\\([\s\S])/g, (_, char: string) => escapes[char] ?? char);
  }
  return raw.replace(/(^|[ \t])#.*$/, "").trim();
}
