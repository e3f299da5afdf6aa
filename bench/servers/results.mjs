// Results of three kinds in three sizes, as real servers give them. Pure. The tool `prose_16` gives 16 KiB of prose.

const KIB = 1024;
const SIZES = [16, 128, 1024];

const row = (id) => ({ id, name: `row ${id}`, value: id * 3.5, tags: ["a", "b"], note: "some text here" });
const rows = (bytes, each) => Array.from({ length: Math.floor(bytes / each) }, (_, id) => row(id));
const text = (value) => ({ content: [{ type: "text", text: value }] });

const KINDS = {
  prose: (bytes) => text("the quick brown fox jumps over a lazy dog ".repeat(bytes / 42)),
  json: (bytes) => text(JSON.stringify(rows(bytes, 150), undefined, 2)),
  rows: (bytes) => ({ content: [], structuredContent: { rows: rows(bytes, 85) } }),
};

export const RESULT_TOOLS = Object.keys(KINDS).flatMap((kind) => SIZES.map((kib) => `${kind}_${kib}`));

/** The result of a tool; undefined for any other tool. */
export function resultOf(tool) {
  if (!RESULT_TOOLS.includes(tool)) return undefined;
  const [kind, kib] = tool.split("_");
  return KINDS[kind](Number(kib) * KIB);
}

/** In words, for the tables. */
export function titleOf(tool) {
  const [kind, kib] = tool.split("_");
  return kindAndSize({ prose: "prose", json: "JSON as text", rows: "rows with ids" }[kind], Number(kib));
}

export function kindAndSize(kind, kib) {
  return `${kind}, ${kib === 1024 ? "1 MiB" : `${kib} KiB`}`;
}
