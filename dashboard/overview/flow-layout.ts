// Where the lines of the flow stand: agents on the left, servers on the right, each as tall as its calls. It decides only.

import type { FlowLine } from "../../src/contracts/control/flow.js";

export interface FlowEnd {
  readonly name: string;
  readonly calls: number;
  readonly errors: number;
  /** Its middle. */
  readonly y: number;
}

export interface FlowBand {
  readonly agent: string;
  readonly server: string;
  readonly calls: number;
  readonly errors: number;
  readonly fromY: number;
  readonly toY: number;
  readonly width: number;
}

export interface FlowPicture {
  readonly height: number;
  readonly agents: readonly FlowEnd[];
  readonly servers: readonly FlowEnd[];
  readonly bands: readonly FlowBand[];
}

/** As tall as a line of text, so that no two names meet. */
const ROW = 26;
/** Of the thickest line; the thinnest is still seen. */
const MAX_WIDTH = 16;
const MIN_WIDTH = 1.5;

export function agentName({ agent, client }: Pick<FlowLine, "agent" | "client">): string {
  return client === undefined ? agent : `${client} (${agent})`;
}

export function flowPicture(lines: readonly FlowLine[]): FlowPicture {
  const agents = summed(lines, agentName);
  const servers = summed(lines, ({ server }) => server);
  const height = Math.max(agents.size, servers.size, 1) * ROW;
  const left = placed(agents, height);
  const right = placed(servers, height);
  const most = Math.max(1, ...lines.map(({ calls }) => calls));
  return {
    height,
    agents: [...left.values()],
    servers: [...right.values()],
    bands: lines.map((line) => ({
      agent: agentName(line),
      server: line.server,
      calls: line.calls,
      errors: line.errors,
      fromY: left.get(agentName(line))?.y ?? 0,
      toY: right.get(line.server)?.y ?? 0,
      width: Math.max(MIN_WIDTH, (line.calls / most) * MAX_WIDTH),
    })),
  };
}

function summed(lines: readonly FlowLine[], nameOf: (line: FlowLine) => string): Map<string, Omit<FlowEnd, "y">> {
  const all = new Map<string, { name: string; calls: number; errors: number }>();
  for (const line of lines) {
    const name = nameOf(line);
    const one = all.get(name) ?? { name, calls: 0, errors: 0 };
    one.calls += line.calls;
    one.errors += line.errors;
    all.set(name, one);
  }
  return new Map([...all].sort(([, a], [, b]) => b.calls - a.calls));
}

function placed(ends: ReadonlyMap<string, Omit<FlowEnd, "y">>, height: number): Map<string, FlowEnd> {
  const step = height / Math.max(1, ends.size);
  return new Map([...ends].map(([name, end], i) => [name, { ...end, y: (i + 0.5) * step }]));
}
