// Reads a V8 CPU profile: whose self time each sample is, and on whose behalf. Pure; it starts nothing.

/** V8's own names for time outside of JavaScript. */
const OUTSIDE = new Map([
  ["(program)", "system calls, libuv"],
  ["(garbage collector)", "garbage collection"],
  ["(root)", "system calls, libuv"],
]);

/** The parts of node that a call goes through; what is not named here is "node: other". */
const NODE_PARTS = [
  [/^node:(_http|internal\/http|http)/, "node: http"],
  [/^node:(net|internal\/(net|stream_base_commons|socket))/, "node: net"],
  [/^node:(internal\/streams|stream|_stream)/, "node: streams"],
  [
    /^node:(internal\/(timers|process\/task_queues|async_hooks|promise_hooks|async_local)|timers|async_hooks)/,
    "node: loop",
  ],
  [/^node:(internal\/(crypto)|crypto)/, "node: crypto"],
  [/^node:(buffer|internal\/buffer|string_decoder|internal\/encoding)/, "node: buffers"],
  [/^node:(events|internal\/event)/, "node: events"],
  [/^node:(internal\/(child_process)|child_process)/, "node: child processes"],
];

/**
 * Where a function is: `file` for the finer table, `part` for the coarser one, and whether it is ours.
 * @param {{ functionName: string, url: string }} frame
 */
export function placeOf({ functionName, url }) {
  const outside = OUTSIDE.get(functionName);
  if (url === "" && outside !== undefined) return { part: outside, file: outside, ours: false };
  if (url.startsWith("wasm:")) return { part: "package undici", file: "undici (llhttp in wasm)", ours: false };
  if (url === "") return { part: "native functions", file: `native: ${functionName || "(anonymous)"}`, ours: false };
  const module = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\/(.*)$/.exec(url);
  if (module !== null) return { part: `package ${module[1]}`, file: `${module[1]}/${module[2]}`, ours: false };
  const own = /\/dist\/(?:(.*?)\/)?([^/]+\.m?js)$/.exec(url);
  if (own !== null) {
    const folder = own[1]?.split("/")[0];
    const file = folder === undefined ? own[2] : `${own[1]}/${own[2]}`;
    return { part: folder === undefined ? own[2] : `${folder}/`, file, ours: true };
  }
  if (url.endsWith("/profile-hook.mjs")) return { part: "the profiler", file: "the profiler", ours: false };
  const node = NODE_PARTS.find(([pattern]) => pattern.test(url));
  if (node !== undefined) return { part: node[1], file: url, ours: false };
  return { part: url.startsWith("node:") ? "node: other" : url, file: url, ours: false };
}

/**
 * Sums a profile up. `self`: time in the thing's own code. `charged`: with what it calls of node, packages and native
 * code, up to the next function of ours; what nobody of ours called stays with itself.
 * @param {{ nodes: any[], samples: number[], timeDeltas: number[] }} profile
 * @param {"part" | "file" | "function"} by
 * @returns {{ busyUs: number, idleUs: number, rows: { name: string, ours: boolean, selfUs: number, chargedUs: number }[] }}
 */
export function sumUp(profile, by) {
  const places = new Map();
  const ownerOf = new Map();
  const byId = new Map(profile.nodes.map((node) => [node.id, node]));
  const nameOf = ({ callFrame }) => {
    const place = placeOf(callFrame);
    const line = `${place.file}:${callFrame.lineNumber + 1}`;
    const name = by === "function" ? `${callFrame.functionName || "(anonymous)"}  ${line}` : place[by];
    return { name: by === "function" && callFrame.url === "" ? place.file : name, ours: place.ours };
  };
  // Parents come before their children in the walk, so an owner is known when its children ask for it.
  const walk = [[profile.nodes[0], undefined]];
  for (let next = walk.pop(); next !== undefined; next = walk.pop()) {
    const [node, above] = next;
    const place = nameOf(node);
    const owner = place.ours || above === undefined ? place : above;
    places.set(node.id, place);
    ownerOf.set(node.id, owner);
    for (const child of node.children ?? []) walk.push([byId.get(child), owner.ours ? owner : undefined]);
  }
  const rows = new Map();
  const row = ({ name, ours }) => {
    const found = rows.get(name) ?? { name, ours, selfUs: 0, chargedUs: 0 };
    rows.set(name, found);
    return found;
  };
  let busyUs = 0;
  let idleUs = 0;
  for (const [at, id] of profile.samples.entries()) {
    // A delta is the time since the sample before: it belongs to that one.
    const us = Math.max(0, profile.timeDeltas[at + 1] ?? 0);
    if (byId.get(id).callFrame.functionName === "(idle)") {
      idleUs += us;
      continue;
    }
    busyUs += us;
    row(places.get(id)).selfUs += us;
    row(ownerOf.get(id)).chargedUs += us;
  }
  return { busyUs, idleUs, rows: [...rows.values()].sort((a, b) => b.chargedUs - a.chargedUs || b.selfUs - a.selfUs) };
}
